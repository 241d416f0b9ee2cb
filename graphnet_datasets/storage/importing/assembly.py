"""Assembly of an imported dataset: selection, ids, files and order of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ...isolation import num_processors
from ..mapping import Result
from .outcomes import FolderOutcome

ID_CHARACTERS = 8
"""Characters of the signature appended to an id that another graph already has."""


class _Row(NamedTuple):
    num_ops: int
    id: str
    part: str
    position: int


class Assembly:
    """The rows of a dataset in the order of their folders; equal trees give equal datasets."""

    def __init__(self, keeps_duplicates: bool) -> None:
        self._keeps_duplicates = keeps_duplicates
        self._id_of_signature: dict[str, str] = {}
        self._ids: set[str] = set()
        self._places: dict[tuple[str, str], list[_Row]] = {}

    @property
    def num_rows(self) -> int:
        """The number of rows of the dataset."""
        return sum(map(len, self._places.values()))

    def add(self, result: Result) -> FolderOutcome:
        """Add the result of the next folder, and return its outcome."""
        path, note = result.name, result.notes
        if result.lost:
            return FolderOutcome(path, "failed", reason=result.lost, error_type=result.ending)
        if "error" in note:
            return FolderOutcome(
                path, "failed", reason=note["error"], error_type=note["error_type"]
            )
        signature, own_id = note["signature_hash"], note["id"]
        first = self._id_of_signature.get(signature)
        if first is not None and not self._keeps_duplicates:
            return FolderOutcome(path, "duplicate", id=own_id, duplicate_of=first)
        sample_id = self._free_id(own_id, signature)
        self._ids.add(sample_id)
        self._id_of_signature.setdefault(signature, sample_id)
        config, split = note["place"]
        row = _Row(note["num_ops"], sample_id, str(result.part), result.first_row)
        self._places.setdefault((config, split), []).append(row)
        return FolderOutcome(
            path,
            "duplicate" if first is not None else "imported",
            id=sample_id,
            duplicate_of=first or "",
            renamed_from=own_id if sample_id != own_id else "",
            is_in_table=True,
        )

    def _free_id(self, sample_id: str, signature: str) -> str:
        """Return the id, or a new id derived from the content and the order of folders."""
        if sample_id not in self._ids:
            return sample_id
        candidate = name = f"{sample_id}@{signature[:ID_CHARACTERS]}"
        number = 2
        while candidate in self._ids:
            candidate, number = f"{name}-{number}", number + 1
        return candidate

    def plans(self, out: Path, is_file: bool) -> list[list[dict[str, Any]]]:
        """Return the plans of one file, or of a dataset directory's shards, in a group per job.

        Rows are sorted by number of operators, then by id.
        """
        plans: list[dict[str, Any]] = []
        if is_file:
            rows = [row for rows in self._places.values() for row in rows]
            plans.append({"file": str(out), "rows": _listed(rows)})
        else:
            for (config, split), rows in sorted(self._places.items()):
                folder = str(out.absolute() / config)
                plans.append({"folder": folder, "split": split, "rows": _listed(rows)})
        # One job per processor, because each job imports `datasets` for a second or two.
        return _share_out(plans, num_processors())


def _share_out(plans: list[dict[str, Any]], num_shares: int) -> list[list[dict[str, Any]]]:
    """Distribute the plans over shares with roughly equal numbers of rows."""
    shares: list[list[dict[str, Any]]] = [[] for _ in range(num_shares)]
    sizes = [0] * num_shares
    for plan in sorted(plans, key=lambda plan: -len(plan["rows"])):
        smallest = sizes.index(min(sizes))
        shares[smallest].append(plan)
        sizes[smallest] += len(plan["rows"])
    return [share for share in shares if share]


def _listed(rows: list[_Row]) -> list[tuple[str, int, dict[str, str]]]:
    return [(row.part, row.position, {"id": row.id}) for row in sorted(rows)]
