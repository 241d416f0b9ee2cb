"""Printer for a Paddle sample as a GraphNet `model.py`, which `source.py` can parse.

The text is intended for people and for GraphNet's own tools; this library never executes it.
"""

from __future__ import annotations

import collections
import keyword
import math
from collections.abc import Iterator
from typing import Any, Literal

from ...errors import SourceError
from ...sample import Op, Sample, Value
from ...sample.arguments import Arg, DictArg, ListArg, Named, Ref, SliceArg, iterate_refs
from ..text_form import TextForm
from .expressions import PLACE_CALLS
from .operators import CORE, GETITEM, OPERATORS
from .value_types import print_type

_INDENT = " " * 8
_NUM_RESULTS = {f"{CORE}rnn": 4}
"""Number of results of operators whose eager form omits the last result."""


FORM = TextForm()
"""The text form of GraphNet's Paddle directories."""


def print_source(sample: Sample, names: Literal["canonical", "source"] = "canonical") -> str:
    """Return the text of `model.py` for a sample.

    Arguments have their canonical names, or their source names if those are distinct identifiers.

    Raises:
        SourceError: a named constant cannot be written in Paddle.

    >>> from graphnet_datasets.sample import Input
    >>> value = Value("float32", (2, 3))
    >>> print(print_source(Sample("a", "paddle", "other", (Input("input", value),),
    ...     (Op("paddle._C_ops.relu", (Ref(0),), (), (value,)),), Ref(1))))
    import paddle
    <BLANKLINE>
    <BLANKLINE>
    class GraphModule(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
    <BLANKLINE>
        def forward(self, input_0):
            # pd_op.relu: (2x3xf32) <- (2x3xf32)
            relu_0 = paddle._C_ops.relu(input_0)
            del input_0
    <BLANKLINE>
            return relu_0
    <BLANKLINE>
    """
    return _Printer(sample, names).text()


def print_model(sample: Sample) -> str:
    """Return the text of a directory's `model.py`, with the source names."""
    return print_source(sample, "source")


def argument_names(sample: Sample, names: Literal["canonical", "source"]) -> tuple[str, ...]:
    """Return the argument names of `forward` in the printed text."""
    if names == "source":
        source_names = tuple(sample_input.source_name for sample_input in sample.inputs)
        usable = all(map(_is_argument_name, source_names)) and len(set(source_names)) == len(
            source_names
        )
        if usable:
            return source_names
    return sample.input_names


def _is_argument_name(name: str) -> bool:
    reserved = {"self", "paddle", "operator", "float", "slice", "complex", "_", "isinstance"}
    return (
        name.isascii()
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and (name not in reserved)
    )


class _Printer:
    def __init__(self, sample: Sample, names: Literal["canonical", "source"]) -> None:
        self.sample = sample
        self.num_inputs = len(sample.inputs)
        self.names: list[str] = list(argument_names(sample, names))
        self.taken = set(self.names)
        self.counts: collections.Counter[str] = collections.Counter()
        self.values = [sample_input.value for sample_input in sample.inputs] + [
            _only(op) for op in sample.ops
        ]
        self.users: list[set[int]] = [set() for _ in self.values]
        for position, op in enumerate(sample.ops):
            for ref in iterate_refs((op.args, op.kwargs)):
                self.users[ref].add(position)
        for ref in iterate_refs(sample.outputs):
            self.users[ref].add(sample.num_ops)
        for op in sample.ops:
            target = op.target
            if target == GETITEM and op.args and isinstance(op.args[0], Ref):
                parent = op.args[0].index - self.num_inputs
                target = sample.ops[parent].target if parent >= 0 else target
            self.names.append(self._new_name(target))

    def text(self) -> str:
        arguments = ", ".join(["self", *self.names[: self.num_inputs]])
        if len(arguments) > 60:
            arguments = (
                "".join(f"\n{_INDENT}{name}," for name in ["self", *self.names[: self.num_inputs]])
                + "\n    "
            )
        lines = [
            "class GraphModule(paddle.nn.Layer):",
            "    def __init__(self):",
            "        super().__init__()",
            "",
            f"    def forward({arguments}):",
        ]
        position = 0
        while position < self.sample.num_ops:
            end = self._end_of_results(position)
            lines += self._statement(position, end)
            freed = self._freed(position, end)
            if freed:
                lines.append(f"{_INDENT}del {', '.join(freed)}")
            lines.append("")
            position = end
        lines += [f"{_INDENT}return {self._arg(self.sample.outputs)}", ""]
        body = "\n".join(lines)
        imports = "import operator\n\n" if "= operator." in body else ""
        return f"{imports}import paddle\n\n\n{body}"

    def _new_name(self, target: str) -> str:
        base = target.rpartition(".")[2].strip("_") or "value"
        while True:
            name = f"{base}_{self.counts[base]}"
            self.counts[base] += 1
            if name not in self.taken:
                self.taken.add(name)
                return name

    def _end_of_results(self, position: int) -> int:
        """Return the end of the `getitem` operators that unpack the operator at `position`.

        They are printed as one unpacking assignment if they select increasing items, are all used,
        and record the same types as the operator.
        """
        op, own = self.sample.ops[position], self.num_inputs + position
        end, last = position + 1, -1
        while (index := self._index_taken(end, own, last, op.results)) is not None:
            end, last = end + 1, index
        is_whole = self.users[own] == set(range(position + 1, end))
        count = self._num_results(op, last)
        return end if is_whole and count > 1 and op.target != GETITEM else position + 1

    def _num_results(self, op: Op, last: int) -> int:
        num_results = last + 1 if op.results is None else len(op.results)
        return max(num_results, _NUM_RESULTS.get(op.target, 0))

    def _index_taken(
        self, position: int, own: int, last: int, results: tuple[Value, ...] | None
    ) -> int | None:
        """Return which result of value `own` the operator at `position` selects.

        Returns None if the operator cannot be part of one unpacking assignment after result `last`.
        """
        if position >= self.sample.num_ops:
            return None
        op = self.sample.ops[position]
        if op.target != GETITEM or op.kwargs or op.args[:1] != (Ref(own),) or len(op.args) != 2:
            return None
        index = op.args[1]
        if type(index) is not int or index <= last or not self.users[self.num_inputs + position]:
            return None
        if results is None:
            return index if op.results is None and index < 64 else None
        return index if index < len(results) and op.results == (results[index],) else None

    def _statement(self, position: int, end: int) -> Iterator[str]:
        op = self.sample.ops[position]
        if op.results is not None:
            results = ", ".join(map(print_type, op.results))
            operands = ", ".join(
                print_type(self.values[ref]) for ref in iterate_refs((op.args, op.kwargs))
            )
            yield f"{_INDENT}# pd_op.{op.target.rpartition('.')[2]}: ({results}) <- ({operands})"
        call = self._call(op)
        if end == position + 1:
            yield f"{_INDENT}{self.names[self.num_inputs + position]} = {call}"
            return
        names_by_index: dict[Any, str] = {
            self.sample.ops[item_position].args[1]: self.names[self.num_inputs + item_position]
            for item_position in range(position + 1, end)
        }
        count = self._num_results(op, max(names_by_index))
        targets = ", ".join(names_by_index.get(index, "_") for index in range(count))
        rest = ", None" * (count - 1)
        tail = " + (None,)" if op.target in _NUM_RESULTS else ""
        yield f"{_INDENT}{targets} = (lambda x, f: f(x))("
        yield f"{_INDENT}    {call},"
        yield f"{_INDENT}    lambda out: out if isinstance(out, (list, tuple)) else (out{rest}),"
        yield f"{_INDENT}){tail}"

    def _freed(self, position: int, end: int) -> list[str]:
        """Return the names that are no longer used after the operators from `position` to `end`."""
        last_uses = self.sample.last_uses
        refs = {
            ref
            for op in self.sample.ops[position:end]
            for ref in iterate_refs((op.args, op.kwargs))
        }
        packed = set() if end == position + 1 else {self.num_inputs + position}
        return [
            self.names[ref] for ref in sorted(refs - packed) if position <= last_uses[ref] < end
        ]

    def _call(self, op: Op) -> str:
        operator = OPERATORS.get(op.target)
        args = [self._arg(arg) for arg in op.args]
        args += [f"{key}={self._arg(arg)}" for key, arg in op.kwargs]
        if operator is not None and op.args and isinstance(op.args[0], Ref):
            method = f"{args[0]}.{op.target.rpartition('.')[2]}"
            if operator.kind == "attribute":
                return method
            if operator.kind == "method":
                return f"{method}({', '.join(args[1:])})"
        return f"{op.target}({', '.join(args)})"

    def _arg(self, arg: Arg | Any) -> str:
        match arg:
            case Ref(index=index):
                return self.names[index]
            case bool() | int() | str() | None:
                return repr(arg)
            case float():
                return repr(arg) if math.isfinite(arg) else f'float("{arg}")'
            case complex():
                return f"complex({self._arg(arg.real)}, {self._arg(arg.imag)})"
            case tuple():
                return f"({', '.join(map(self._arg, arg))}{',' if len(arg) == 1 else ''})"
            case ListArg(items=items):
                return f"[{', '.join(map(self._arg, items))}]"
            case DictArg(items=items):
                return f"{{{', '.join(f'{key!r}: {self._arg(item)}' for key, item in items)}}}"
            case SliceArg():
                return f"slice({', '.join(map(self._arg, (arg.start, arg.stop, arg.step)))})"
            case Named(kind="dtype", name=name):
                return f"paddle.{name}"
            case Named(kind="place", name=name) if name in PLACE_CALLS:
                return PLACE_CALLS[name]
            case Named(kind="place", name=name) if name.startswith("gpu:") and name[4:].isdigit():
                return f"paddle.core.CUDAPlace({name[4:]})"
        if arg is Ellipsis:
            return "..."
        raise SourceError(
            f"`{arg}` in sample `{self.sample.id}` has no spelling in paddle. Replace it by a "
            "dtype, a place or a literal."
        )


def _only(op: Op) -> Value:
    return op.results[0] if op.results is not None and len(op.results) == 1 else Value()
