"""The scripts in `benchmarks/` are measured with by hand: that they start is held here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "benchmarks"
# In a process of its own: some set the environment or open a cache before they import.
IMPORT_ALL = """
import pathlib, runpy, sys
for script in sorted(pathlib.Path(sys.path[0]).glob("*.py")):
    found = runpy.run_path(str(script), run_name=script.stem)
    assert callable(found["main"]) and found["__doc__"], script
    print(script.stem)
"""


def test_every_benchmark_can_be_imported(tmp_path: Path) -> None:
    code = f"import sys; sys.path[0] = {str(FOLDER)!r}\n{IMPORT_ALL}"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted(path.stem for path in FOLDER.glob("*.py"))
