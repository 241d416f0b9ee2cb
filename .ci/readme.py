"""Run README.md literally, from a built wheel, in a fresh environment of each supported Python.

Commands run in the order of the page, in an empty folder. `make` needs a checkout and is left to
`.ci/run`. Set PIP_FIND_LINKS and the like as you would for pip.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphnet_datasets.cli.counting import PARTLY

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13")

_PART = re.compile(
    r"```(?P<language>\w+)\n(?P<block>.*?)```"
    r"|`(?P<command>(?:pip install|graphnet (?:score|report)) [^`]+)`",
    re.DOTALL,
)


def commands(text: str) -> Iterator[str]:
    """Yield the shell commands of a page in their order; the Python blocks become one script.

    A reader pastes the Python blocks into one session, so they run together at the position of the
    last block.
    """
    parts = list(_PART.finditer(text))
    scripts = [part for part in parts if part["language"] == "python"]
    for part in parts:
        if part["command"]:
            yield part["command"]
        elif part["language"] == "console":
            lines = re.findall(r"^\$ (.*)$", part["block"], re.MULTILINE)
            yield from (line for line in lines if not line.startswith("make "))
        elif scripts and part is scripts[-1]:
            yield "python - <<'END'\n" + "\n".join(script["block"] for script in scripts) + "END"


def find_python(version: str) -> str | None:
    """Return the path of an interpreter of this version, in the path or installed by pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    installed = sorted(versions.glob(f"{version}.*/bin/python3"))
    for candidate in (shutil.which(f"python{version}"), *installed):
        # A shim of pyenv may be in the path for a version that is not selected.
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True).returncode == 0:
            return candidate
    return None


def run_page(python: str, wheel: Path, text: str) -> list[str]:
    """Run the commands of a page and return those that fail."""
    failures = []
    with tempfile.TemporaryDirectory(prefix="readme-") as folder:
        place = Path(folder)
        subprocess.run([python, "-m", "venv", str(place / "env")], check=True)
        (place / "work").mkdir()
        links = [str(wheel.parent), *os.environ.get("PIP_FIND_LINKS", "").split()]
        environment = os.environ | {
            "PATH": os.pathsep.join([str(place / "env" / "bin"), os.environ["PATH"]]),
            "PIP_FIND_LINKS": " ".join(links),
            "VIRTUAL_ENV": str(place / "env"),
        }
        for command in commands(text):
            print(f"\n$ {command}", flush=True)
            begin = time.monotonic()
            done = subprocess.run(["bash", "-c", command], cwd=place / "work", env=environment)
            print(f"[exit {done.returncode}, {time.monotonic() - begin:.0f} s]", flush=True)
            if done.returncode not in (0, PARTLY):
                failures.append(command)
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the page under each Python and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="The wheel, as `make packages` builds it.")
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="Versions of Python.")
    options = parser.parse_args(arguments)
    text = (ROOT / "README.md").read_text()
    wheel = options.wheel.resolve(strict=True)
    failures = []
    for version in options.versions:
        python = find_python(version)
        if python is None:
            print(f"Python {version} is not installed; it is left out.")
            continue
        print(f"\n# Python {version}: {python}", flush=True)
        failures += [f"{version}: {command}" for command in run_page(python, wheel, text)]
    print("\nCommands that failed:" if failures else "\nEvery command succeeded.")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
