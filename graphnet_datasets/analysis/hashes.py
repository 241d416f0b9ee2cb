"""Hashes that identify equal samples by text, structure or architecture.

`signature_hash` is the identity of a sample. It depends on operators, literals, edges, the shapes
and dtypes of the inputs, and the order of operators with side effects. It does not depend on names,
devices, the messages of assertions (which contain node names from tracers), or the order of
independent operators. Like Weisfeiler and Lehman's colour refinement (1968), it propagates colours
along the edges forward, backward and forward again. `structure_hash` is the same without shapes.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from ..collector import collecting_seldom
from ..errors import SampleError, raises_only
from ..frameworks import print_source
from ..sample import Input, Sample
from ..sample.arguments import DictArg, Graph, ListArg, Named, Ref, SliceArg
from ..sample.symbols import evaluate
from ..sample.targets import is_assertion
from .effects import NO_COMPUTATION, Effects, find_effects
from .families import collapse_repeats, order_operators, sorted_keywords

_DIGEST_BYTES = 16
_DEVICE_TEXT = re.compile(r"(cpu|cuda|gpu|xpu|mps|npu|meta)(:\d{1,4})?\Z")


@raises_only(SampleError)
def source_hash(sample: Sample) -> str:
    """Return the SHA-256 of the sample's canonical source as 64 hexadecimal digits.

    Raises:
        UnknownOperatorError: An operator has no printed form.
    """
    return hashlib.sha256(print_source(sample).encode()).hexdigest()


@raises_only(SampleError)
def signature_hash(sample: Sample) -> str:
    """Return the identity of the graph, structure and shapes, as 32 hexadecimal digits.

    Symbolic shapes use their sizes at capture. Unused integer arguments are ignored.

    >>> from graphnet_datasets.sample import Op, Value
    >>> def relu(shape, device):
    ...     inputs = (Input("input", Value("float32", shape), device=device),)
    ...     return Sample("a", "torch", "other", inputs, (Op("torch.relu", (Ref(0),)),), Ref(1))
    >>> signature_hash(relu((2,), "cpu")) == signature_hash(relu((2,), "cuda:0"))
    True
    >>> signature_hash(relu((2,), "cpu")) == signature_hash(relu((3,), "cpu"))
    False
    """
    return _Colours(sample).hash(has_shapes=True)


@raises_only(SampleError)
def structure_hash(sample: Sample) -> str:
    """Return the hash of the graph without its input shapes, as 32 hexadecimal digits.

    Operators, literals, edges and dtypes are included, as in the signature.

    >>> from graphnet_datasets.sample import Op, Value
    >>> def relu(shape):
    ...     inputs = (Input("input", Value("float32", shape)),)
    ...     return Sample("a", "torch", "other", inputs, (Op("torch.relu", (Ref(0),)),), Ref(1))
    >>> structure_hash(relu((2,))) == structure_hash(relu((3, 4)))
    True
    """
    return _Colours(sample).hash(has_shapes=False)


@raises_only(SampleError)
def family(sample: Sample) -> str:
    """Return the hash of the sequence of operator names, as 32 hexadecimal digits.

    The names are in canonical topological order, without arguments. Repeated blocks are collapsed,
    so that neither depth nor size matters.

    >>> from graphnet_datasets.sample import Op, Value
    >>> def relus(depth):
    ...     ops = tuple(Op("torch.relu", (Ref(index),)) for index in range(depth))
    ...     inputs = (Input("input", Value("float32", (2,))),)
    ...     return Sample("a", "torch", "other", inputs, ops, Ref(depth))
    >>> family(relus(2)) == family(relus(7))
    True
    """
    return _family(sample, find_effects(sample))


@raises_only(SampleError)
def all_hashes(sample: Sample) -> dict[str, str]:
    """Return `family`, `structure_hash` and `signature_hash` for little more than the cost of one
    hash.

    >>> from graphnet_datasets.sample import Op, Value
    >>> inputs = (Input("input", Value("float32", (2,))),)
    >>> relu = Sample("a", "torch", "other", inputs, (Op("torch.relu", (Ref(0),)),), Ref(1))
    >>> all_hashes(relu)["signature_hash"] == signature_hash(relu)
    True
    """
    with collecting_seldom():
        colours = _Colours(sample)
        return {
            "family": _family(sample, colours.effects),
            "structure_hash": colours.hash(has_shapes=False),
            "signature_hash": colours.hash(has_shapes=True),
        }


def _family(sample: Sample, effects: Effects) -> str:
    ops = sample.ops
    order = order_operators(sample, effects)
    names = [
        " ".join([ops[index].target, *map(family, sample.bodies.get(index, ()))])
        for index in order
        if ops[index].target not in NO_COMPUTATION
    ]
    return _digest("\n".join(collapse_repeats(names)).encode()).hex()


class _Colours:
    """Colours of the values of a sample, or of a body, whose inputs differ by their position."""

    def __init__(self, sample: Sample, *, is_body: bool = False) -> None:
        self.sample = sample
        self.is_body = is_body
        self.num_inputs = len(sample.inputs)
        self.effects = effects = find_effects(sample)
        self.counted = [
            position for position, op in enumerate(sample.ops) if op.target not in NO_COMPUTATION
        ]
        self.labels: dict[int, bytes] = {}
        self.operands: dict[int, list[int]] = {}
        for position in self.counted:
            self._read_op(position, effects)
        text, refs = _encode(sample.outputs)
        refs += [self.num_inputs + position for position in effects.seen_by_outputs]
        self.output_label, self.outputs = _digest(text.encode()), refs

    def _read_op(self, position: int, effects: Effects) -> None:
        op = self.sample.ops[position]
        text, operands = _encode(
            (op.args, sorted_keywords(op.kwargs)), has_message=is_assertion(op.target)
        )
        seen = [self.num_inputs + earlier for earlier in effects.seen[position]]
        # Each operand adds 16 bytes after the label, which contains the number of arguments.
        target = op.target
        if custom := self.sample.custom_operators_by_target.get(target):
            target = f"{custom.name} {custom.schema} {custom.source_hash}"
        for body in self.sample.bodies.get(position, ()):
            target += " " + _Colours(body, is_body=True).hash(has_shapes=False)
        self.labels[position] = _digest(f"{target} {text} {len(seen)}".encode())
        self.operands[position] = operands + seen

    def hash(self, has_shapes: bool) -> str:
        if self.is_body:
            leaves = [_digest(b"argument %d" % place) for place in range(self.num_inputs)]
        else:
            leaves = [self._leaf(item, has_shapes) for item in self.sample.inputs]
        forward = self._forward(leaves)
        backward = self._backward(forward)
        mixed = [_digest(leaf + backward[index]) for index, leaf in enumerate(leaves)]
        final = self._forward(mixed)
        nodes = [
            _digest(final[self.num_inputs + position] + backward[self.num_inputs + position])
            for position in self.counted
        ]
        used = set(self.outputs).union(*self.operands.values())
        nodes += [
            colour
            for index, colour in enumerate(mixed)
            if index in used or self.sample.inputs[index].role not in ("symbol", "scalar")
        ]
        outputs = self.output_label + b"".join([final[ref] for ref in self.outputs])
        return _digest(b"".join(sorted(nodes)) + outputs).hex()

    def _leaf(self, graph_input: Input, has_shapes: bool) -> bytes:
        # Ignore whether a tensor is data or a weight: a graph captured again with its weights as
        # arguments has only data inputs.
        sample = self.sample
        if graph_input.role == "symbol":
            size = evaluate(graph_input.source_name, sample.hints) if has_shapes else ""
            return _digest(f"symbol {size}".encode())
        kind = "scalar" if graph_input.role == "scalar" else "tensor"
        shape = sample.shape_of(graph_input.value) if has_shapes else ""
        return _digest(f"{kind} {graph_input.value.dtype} {shape}".encode())

    def _forward(self, leaves: list[bytes]) -> list[bytes]:
        colours = leaves + [b""] * self.sample.num_ops
        num_inputs, labels = self.num_inputs, self.labels
        for position, operands in self.operands.items():
            colours[num_inputs + position] = _digest(
                labels[position] + b"".join([colours[operand] for operand in operands])
            )
        return colours

    def _backward(self, forward: list[bytes]) -> list[bytes]:
        """Return a colour for each value that depends on its uses."""
        uses: list[list[bytes]] = [[] for _ in forward]
        for place, ref in enumerate(self.outputs):
            uses[ref].append(_digest(b"%d" % place + self.output_label))
        colours = [b""] * len(forward)
        for position in reversed(self.counted):
            value = self.num_inputs + position
            colours[value] = own = _digest(b"".join(sorted(uses[value])))
            user = forward[value] + own
            for place, operand in enumerate(self.operands[position]):
                uses[operand].append(_digest(b"%d" % place + user))
        for index in range(self.num_inputs):
            colours[index] = _digest(b"".join(sorted(uses[index])))
        return colours


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _encode(arg: Any, *, has_message: bool = False) -> tuple[str, list[int]]:
    """Encode an argument as an unambiguous string, and list its references.

    The string contains `R` for each reference, `G` for each body and, with `has_message`, `M` for
    each string.
    """
    parts: list[str] = []
    refs: list[int] = []

    def write(arg: Any) -> None:
        kind = type(arg)
        if kind is Ref:
            parts.append("R")
            refs.append(arg.index)
        elif kind is tuple:
            write_all("()", arg)
        elif kind is int:
            parts.append(f"i{arg};")
        elif kind is str and has_message:
            parts.append("M")
        elif kind is str:
            is_device = len(arg) < 12 and _DEVICE_TEXT.match(arg)
            parts.append("D" if is_device else f"s{len(arg)}:{arg}")
        elif kind is Named:
            is_device = arg.kind in ("device", "place")
            parts.append("D" if is_device else f"N{arg.kind}.{arg.name};")
        elif kind is ListArg:
            write_all("[]", arg.items)
        elif kind is DictArg:
            write_all("{}", arg.items)
        elif kind is SliceArg:
            write_all("<>", (arg.start, arg.stop, arg.step))
        elif kind is Graph:
            parts.append("G")
        else:
            parts.append(f"{kind.__name__[0]}{arg!r};")

    def write_all(brackets: str, items: tuple[Any, ...]) -> None:
        parts.append(brackets[0])
        for item in items:
            write(item)
        parts.append(brackets[1])

    write(arg)
    return "".join(parts), refs
