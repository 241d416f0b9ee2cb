"""Descriptions of inspected compilers in the user's cache, so that a repeated run starts no worker.

The version and the options of a compiler are part of a run's id. A worker finds them, because
compilers import their framework. A description is reused as long as everything that determines it
is the same: the request, the environment, the installed distributions, the C++ compiler, and the
source of this library's compilers or of the user's own.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...atomic import write_text
from ...compilers import Compiler, find_entry, source_hash
from ...decoding import read_text
from ...errors import GraphNetError
from ...user_cache import cache_directory, file_identity
from ..records.records import hash_json
from .jobs import CandidateCompiler

FOLDER = "candidates"
_COMPILERS = Path(sys.modules[Compiler.__module__].__file__ or "").parent


def candidate_key(candidate: CandidateCompiler, device: str, environment: str) -> str:
    """Return a hash of everything that determines the description of a compiler on a device."""
    entry = find_entry(candidate.compiler, candidate.framework)
    is_builtin = entry.origin == "built in"
    return hash_json(
        {
            "request": [candidate.compiler, candidate.framework, dict(candidate.options), device],
            "reference": entry.reference,
            "source": "" if is_builtin else source_hash(entry.reference),
            "library": [file_identity(path) for path in sorted(_COMPILERS.glob("*.py"))],
            "environment": environment,
            "distributions": _distributions(),
            "programs": [
                file_identity(shutil.which(name) or f"no {name}")
                for name in (os.environ.get("CXX", "g++"), "clang++")
            ],
        }
    )


def load_candidate(key: str, candidate: CandidateCompiler) -> CandidateCompiler | None:
    """Return the described compiler, None without a description."""
    try:
        fields = json.loads(read_text(cache_directory(FOLDER) / f"{key}.json"))
        return dataclasses.replace(
            candidate,
            options=dict(fields["options"]),
            version=str(fields["version"]),
            source=str(fields["source"]),
        )
    except (OSError, ValueError, KeyError, TypeError, GraphNetError):
        return None


def store_candidate(key: str, candidate: CandidateCompiler) -> None:
    """Store the description of a compiler; a cache that cannot be written is left alone."""
    fields: Mapping[str, Any] = {
        "options": dict(candidate.options),
        "version": candidate.version,
        "source": candidate.source,
    }
    folder = cache_directory(FOLDER)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{key}.json", json.dumps(fields, sort_keys=True))
    except (OSError, GraphNetError):
        return


def _distributions() -> list[str]:
    """Return the directories of the installed distributions, whose names contain the versions."""
    names = set()
    for folder in sys.path:
        try:
            paths = Path(folder or ".").iterdir()
            names |= {path.name for path in paths if path.suffix in (".dist-info", ".egg-info")}
        except OSError:
            continue
    return sorted(names)
