"""Which packages a wheel holds, and the text of its page on PyPI; all else is in `setup.cfg`.

`metrics/` is at the top of the repository, where users of `evaluate` look for it
(`evaluate.load("metrics/speedup_score")`); it is installed as `graphnet_datasets.metrics`, and that
mapping needs the packages listed.

README links to files beside it. PyPI has no files beside it, so there the links lead to the
repository, whose address stands in `setup.cfg` and nowhere else.
"""

import configparser
import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:|#)([^)]+)\)")


def address():
    """Return the address of the repository."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config["metadata"]["url"].rstrip("/")


def description():
    """Return the text of README with links that lead somewhere from anywhere."""

    def absolute(found):
        mark, text, path = found.groups()
        return f"{mark}{text}({address()}/{'raw' if mark else 'blob'}/main/{path})"

    return LINK.sub(absolute, (ROOT / "README.md").read_text(encoding="utf-8"))


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    project_urls={
        "Source": address(),
        "Documentation": f"{address()}/tree/main/docs",
        "Issues": f"{address()}/issues",
    },
    packages=[
        *find_packages(include=["graphnet_datasets", "graphnet_datasets.*"]),
        "graphnet_datasets.metrics",
        *(f"graphnet_datasets.metrics.{name}" for name in find_packages("metrics")),
    ],
    package_dir={"graphnet_datasets.metrics": "metrics"},
)
