"""`python -m builder starter`: make the embedded dataset out of its catalog."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from graphnet_datasets.errors import GraphNetError

from .catalog import read_catalog
from .starter import (
    BUILDER,
    PACKAGE,
    Capture,
    capture_all,
    default_jobs,
    write_dataset,
    write_failures,
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m builder", description=__doc__)
    parser.add_argument("dataset", choices=["starter"])
    parser.add_argument("--catalog", type=Path, default=BUILDER / "starter.txt")
    parser.add_argument("--out", type=Path, default=PACKAGE / "starter" / "graphnet")
    parser.add_argument("--build", type=Path, default=Path("build/starter"), help="cached captures")
    parser.add_argument(
        "--only", default="", help="capture what has this in its name, write nothing"
    )
    parser.add_argument("--jobs", type=int, default=default_jobs())
    parser.add_argument(
        "--allow-failures", action="store_true", help="write the dataset without what failed"
    )
    options = parser.parse_args(arguments)
    try:
        return _build(options)
    except GraphNetError as error:
        print(error, file=sys.stderr)
        return 1


def _build(options: argparse.Namespace) -> int:
    entries = [each for each in read_catalog(options.catalog) if options.only in each.name]
    captures: list[Capture] = []
    for capture in capture_all(entries, options.build, options.jobs):
        captures.append(capture)
        place = f"[{len(captures)}/{len(entries)}]"
        print(place, capture.entry.name, capture.reason or "ok", flush=True)
    num_failures = write_failures(captures, options.build / "failures.json")
    if num_failures:
        print(f"{num_failures} of {len(entries)} entries failed; see {options.build}/failures.json")
    if options.only or (num_failures and not options.allow_failures):
        return int(bool(num_failures))
    counts = write_dataset(captures, options.out)
    print(f"{sum(counts.values())} graphs in {options.out}: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
