"""Groups of graphs that are nearly equal, by which splits are made.

A family is an exact sequence of operators, so the same model with another head, in another dtype or
at another depth is of another family, and splits by family leak. Two graphs are linked here if

- they are of one family, or
- they are the same model (`model_key`: the same source, and a name that differs in its head, its
  size or its variant alone), or
- the cosine of their histograms of operators is at least `MIN_COSINE`, and at least
  `MIN_SHARED` of the different neighbourhoods of one of them occur in the other. A neighbourhood is
  an operator with the operators that its operands come from.

Groups are what is connected by links. A group is named after the least of its families when it is
first seen, and its split follows from its name (`splits.split_of`). As a dataset grows no graph
moves: graphs whose group is known keep it, and a new one joins that of the graphs it is linked to.
One that is linked to groups of two splits would let one leak into the other: it is of none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from .splits import split_of

pc: Any = pyarrow.compute

MIN_COSINE = 0.98
MIN_SHARED = 0.7
"""Both are below what a held-out graph may share with one to train on: 0.99 and 0.8."""

COLUMNS = ("id", "family", "source", "model_name", "num_inputs", "ops")
"""The columns of the `graphs` table that groups are made of."""

_BLOCK = 512
_ODD = np.uint64(0x9E3779B97F4A7C15)
_CLASS = re.compile(
    r"(?:Pre)?(?:For[A-Z]|With[A-Z]|Model|Backbone|PreTrainedModel|LMHead|Text|Vision|Audio"
    r"|Encoder|Decoder|Head)"
)


def split_groups(graphs: pa.Table, known: Mapping[str, str] | None = None) -> list[str | None]:
    """Return the group of each graph, None where it is linked to groups of two splits.

    `graphs` has the columns of `COLUMNS`; `known` maps ids of graphs to their groups, which they
    keep. Neither the order of the rows nor their number matters to graphs that are known.

    >>> ops = [[{"target": name, "operands": [0]} for name in names] for names in
    ...     (["torch.relu"], ["torch.relu"], ["torch.sin", "torch.cos"])]
    >>> table = pa.table({"id": ["a", "b", "c"], "family": ["1", "2", "3"], "source": ["x"] * 3,
    ...     "model_name": ["a", "b", "c"], "num_inputs": [1, 1, 1], "ops": ops})
    >>> split_groups(table), split_groups(table, {"b": "2"})
    (['1', '1', '3'], ['2', '2', '3'])
    """
    ids: list[str] = graphs["id"].to_pylist()
    families = graphs["family"].to_pylist()
    groups: list[str | None] = [(known or {}).get(each) for each in ids]
    is_done = [group is not None for group in groups]
    if all(is_done):
        return groups
    links = near_links(graphs)
    order = sorted(range(len(ids)), key=lambda index: (families[index], ids[index]))
    # First what is linked to graphs that are known, and to what joins them so.
    waiting = {other for index in order if is_done[index] for other in links[index]}
    _join(waiting, links, groups, is_done, ids, families)
    for index in order:
        if not is_done[index]:  # the least family of its group: no smaller one is left
            groups[index], is_done[index] = families[index], True
            _join(set(links[index]), links, groups, is_done, ids, families)
    return groups


def _join(
    waiting: set[int],
    links: Sequence[npt.NDArray[np.int64]],
    groups: list[str | None],
    is_done: list[bool],
    ids: list[str],
    families: list[str],
) -> None:
    """Let graphs that are linked to grouped ones join them, one after another by their ids.

    Linked to several groups of one split, a graph joins that of its family, or else the least.
    """
    waiting = {index for index in waiting if not is_done[index]}
    while waiting:
        index = min(waiting, key=ids.__getitem__)
        waiting.discard(index)
        is_done[index] = True
        near = sorted({group for other in links[index] if (group := groups[other]) is not None})
        if len({split_of(group) for group in near}) != 1:
            continue  # between two splits: it is of no group, and leads nowhere
        same = (groups[other] for other in links[index] if families[other] == families[index])
        groups[index] = min((group for group in same if group is not None), default=near[0])
        waiting |= {int(other) for other in links[index] if not is_done[other]}


def near_links(
    graphs: pa.Table, min_cosine: float = MIN_COSINE, min_shared: float = MIN_SHARED
) -> list[npt.NDArray[np.int64]]:
    """Return for each graph the positions of those that it is linked to."""
    found: list[npt.NDArray[np.int64]] = []
    same = [_numbers(graphs["family"].to_pylist()), _numbers(_model_keys(graphs))]
    for start, cosine, shared in similarities(graphs):
        is_near = (cosine >= min_cosine) & (shared >= min_shared)
        for labels in same:
            is_near |= labels[start : start + len(cosine), None] == labels[None]
        for row, near in enumerate(is_near):
            near[start + row] = False
            found.append(np.flatnonzero(near))
    return found


def similarities(
    graphs: pa.Table,
) -> Iterator[tuple[int, npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Yield, for blocks of graphs, their first position and how near they are to every graph.

    That is the cosine of the histograms of operators, and the larger of the two shares of different
    neighbourhoods that the other graph has too: (block, graphs) each.
    """
    owner, target, neighbourhood = _operators(graphs)
    count = graphs.num_rows
    histogram = _counts(owner, target, count)
    histogram /= np.maximum(np.linalg.norm(histogram, axis=1, keepdims=True), 1)
    presence = np.zeros((count, int(neighbourhood.max(initial=0)) + 1), dtype=np.float32)
    presence[owner, neighbourhood] = 1
    sizes = np.maximum(presence.sum(axis=1), 1).astype(np.float64)
    for start in range(0, count, _BLOCK):
        block = slice(start, start + _BLOCK)
        common = (presence[block] @ presence.T).astype(np.float64)
        yield (
            start,
            histogram[block] @ histogram.T,
            common / np.minimum(sizes[block, None], sizes[None]),
        )


def model_key(source: str, model_name: str) -> str:
    """Return what a model is called without its head, its size and its variant.

    Of a class that is what stands before the head, of a function what stands before a number.

    >>> [model_key("t", name) for name in ("BertForMaskedLM", "BertModel", "BertLMHeadModel")]
    ['t:Bert', 't:Bert', 't:Bert']
    >>> [model_key("timm", name) for name in ("resnet50", "resnet101d", "vit_base_patch16")]
    ['timm:resnet', 'timm:resnet', 'timm:vit_base_patch']
    >>> model_key("torch_geometric", "GCNConv"), model_key("", "")
    ('torch_geometric:GCNConv', '')
    """
    if not model_name:
        return ""
    if model_name[0].isupper():
        match = _CLASS.search(model_name, 1)
        stem = model_name[: match.start()] if match else model_name
    else:
        stem = re.split(r"\d", model_name, maxsplit=1)[0].rstrip("_-.") or model_name
    return f"{source}:{stem}"


def _model_keys(graphs: pa.Table) -> list[str]:
    pairs = zip(graphs["source"].to_pylist(), graphs["model_name"].to_pylist(), strict=True)
    return [
        model_key(source or "", name or "") or f"\0{index}"  # an unknown name is like no other
        for index, (source, name) in enumerate(pairs)
    ]


def _numbers(labels: Sequence[str]) -> npt.NDArray[np.int64]:
    number = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    return np.array([number[label] for label in labels], dtype=np.int64)


def _operators(
    graphs: pa.Table,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return, for each operator of all graphs, its graph, its name and its neighbourhood.

    Both are numbered from 0. A neighbourhood is told by a hash of 64 bits of its names.
    """
    lengths = pc.list_value_length(graphs["ops"]).to_numpy().astype(np.int64)
    owner = np.repeat(np.arange(graphs.num_rows), lengths)
    ops = pc.list_flatten(graphs["ops"])
    names = pc.struct_field(ops, "target").combine_chunks().dictionary_encode()
    target = names.indices.to_numpy().astype(np.int64)
    operands = pc.struct_field(ops, "operands").combine_chunks()
    counts = pc.list_value_length(operands).to_numpy().astype(np.int64)
    values = pc.list_flatten(operands).to_numpy().astype(np.int64)
    user = np.repeat(np.arange(len(target)), counts)
    # Values are numbered inputs first: what is left is the position of an operator of the graph.
    num_inputs = graphs["num_inputs"].to_numpy().astype(np.int64)
    first = (np.cumsum(lengths) - lengths)[owner]
    position = values - num_inputs[owner][user]
    is_op = position >= 0
    producer = np.full(len(values), -1, dtype=np.int64)
    producer[is_op] = target[first[user][is_op] + position[is_op]]
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    with np.errstate(over="ignore"):
        each = _mix((producer + 2).astype(np.uint64) * _ODD + place.astype(np.uint64))
        sums = np.zeros(len(target), dtype=np.uint64)
        np.add.at(sums, user, each)
        keys = _mix(sums + _mix(target.astype(np.uint64) + np.uint64(1)))
    return owner, target, np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread the bits of numbers (the finaliser of splitmix64, G. Steele et al., 2014)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _counts(
    owner: npt.NDArray[np.int64], label: npt.NDArray[np.int64], count: int
) -> npt.NDArray[np.float64]:
    """Return how often each graph has each label: (graphs, labels)."""
    num_labels = int(label.max(initial=0)) + 1
    flat = np.bincount(owner * num_labels + label, minlength=count * num_labels)
    return flat.reshape(count, num_labels).astype(np.float64)
