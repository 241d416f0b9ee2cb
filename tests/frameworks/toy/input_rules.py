"""The operand of `toy.take` that holds indices."""

from __future__ import annotations

from graphnet_datasets.inputs.rules import InputRules
from graphnet_datasets.sample import Op


class ToyRules(InputRules):
    def indexing(self, op: Op) -> str | None:
        return "1.index/table:0.input" if op.target == "toy.take" else None


RULES: InputRules = ToyRules()
