"""Walks the convolutions of PyTorch Geometric whose arguments are numbers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from ..libraries.imports import optional
from .overrides import read_overrides

NODES, EDGES, CHANNELS = 100, 400, 32
"""Example inputs of the entries tagged `small`."""

CORA = (2708, 10556, 1433)
"""Papers, citations in both directions and words of Cora, the graph of most publications. Each
convolution has a second entry of this size, as the first layer of a network."""

CLASSES = 7
"""Classes of Cora: the output channels of convolutions that can change the number of channels."""

WIDTH_AT_CORA = {"EGConv": 16, "GatedGraphConv": CORA[2]}
"""Output channels of convolutions that do not support as many channels as there are classes."""

ARGUMENTS = {
    "in_channels": CHANNELS, "out_channels": CHANNELS, "channels": CHANNELS, "K": 3,
    "num_relations": 4, "dim": 3,
    "kernel_size": 3, "alpha": 0.1, "num_layers": 2, "filter_size": 3, "edge_dim": 3,
    "hidden_channels": 16, "num_node_types": 3, "num_edge_types": 4, "edge_type_emb_dim": 8,
    "edge_attr_emb_dim": 8,
}  # fmt: skip
"""Constructor arguments of convolutions by name."""

INPUTS = {
    "x": f"normal({NODES},{CHANNELS})",
    "x_0": f"normal({NODES},{CHANNELS})",
    "edge_index": f"ids(2,{EDGES}; {NODES})",
    "hyperedge_index": f"ids(2,{EDGES}; {NODES})",
    "edge_type": f"ids({EDGES}; 4)",
    "node_type": f"ids({NODES}; 3)",
    "edge_attr": f"uniform({EDGES},3; 0, 1)",
    "pos": f"normal({NODES},3)",
}
"""Call arguments of convolutions by name."""


def walk() -> Iterator[str]:
    """Yield catalog lines: each convolution with its required arguments, small and for Cora."""
    convolutions = optional("torch_geometric.nn").conv
    overrides = read_overrides("geometric")
    for name in sorted(convolutions.__all__):
        override = overrides.get(name)
        if override is not None and override.is_left_out:
            continue
        model_class = getattr(convolutions, name)
        if override is not None and override.overrides and override.inputs:
            yield _line(name, override.overrides, override.inputs)
            continue
        needed = _required(inspect.signature(model_class.__init__))
        called = _required(inspect.signature(model_class.forward))
        if "edge_attr" in needed or {"edge_dim", "dim"} & set(needed):
            called = list(dict.fromkeys([*called, "edge_attr"]))
        if not called or not (set(needed) <= ARGUMENTS.keys() and set(called) <= INPUTS.keys()):
            continue
        line_overrides = " ".join(f"{argument}={ARGUMENTS[argument]}" for argument in needed)
        inputs = " ".join(f"{argument}={INPUTS[argument]}" for argument in called)
        if override is not None:
            line_overrides, inputs = override.overrides or line_overrides, override.inputs or inputs
        yield _line(name, line_overrides, inputs)
        if override is None:
            width = WIDTH_AT_CORA.get(name, CLASSES)
            yield _line(name, *at_cora(line_overrides, inputs, width), ending="-cora", tags="")


def at_cora(overrides: str, inputs: str, width: int = CLASSES) -> tuple[str, str]:
    """Return the arguments and inputs of a small entry at the size of Cora.

    >>> at_cora("in_channels=32 out_channels=32 K=3", "x=normal(100,32) edge_index=ids(2,400; 100)")
    ('in_channels=1433 out_channels=7 K=3', 'x=normal(2708,1433) edge_index=ids(2,10556; 2708)')
    """
    nodes, edges, words = CORA
    overrides = re.sub(rf"\bout_channels={CHANNELS}\b", f"out_channels={width}", overrides)
    overrides = re.sub(rf"\b(in_channels|channels)={CHANNELS}\b", rf"\1={words}", overrides)
    sizes = {NODES: nodes, EDGES: edges, CHANNELS: words}
    changed = re.sub(r"\d+(?![\w(=])", lambda size: str(sizes.get(int(size[0]), size[0])), inputs)
    return overrides, changed


def _line(name: str, overrides: str, inputs: str, *, ending: str = "", tags: str = "small") -> str:
    fields = (
        f"torch_geometric/{name}{ending}", "scientific", "torch_geometric", name, overrides, inputs,
        "float32", "eval", "", tags,
    )  # fmt: skip
    return " | ".join(fields)


def _required(signature: inspect.Signature) -> list[str]:
    """Return the required arguments, and the optional arguments that the walk passes."""
    return [
        name
        for name, parameter in signature.parameters.items()
        if name not in ("self", "args", "kwargs")
        and (parameter.default is parameter.empty or name == "edge_type")
    ]
