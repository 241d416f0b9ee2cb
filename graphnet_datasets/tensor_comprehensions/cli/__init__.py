"""The commands of `graphnet tc`."""

from .commands import app

APPS = (app,)
