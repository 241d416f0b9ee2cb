"""The fork server of an import, which needs no framework."""

from ...isolation import serve
from .reading import work

if __name__ == "__main__":
    serve(work)
