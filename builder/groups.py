"""Groups of similar graphs, the basis of the splits.

A family is an exact sequence of operators. The same model with another head, dtype or depth has
another family, so splits by family alone would leak. Two graphs are linked here if

- they have the same family, or
- they are the same model (`model_key`: the same source, and names that differ only in head, size
  or variant), or
- they have the same published name, whatever the source and framework, or
- the cosine of their operator histograms is at least `MIN_COSINE`, and at least `MIN_SHARED` of
  the distinct neighbourhoods of one graph occur in the other. A neighbourhood is an operator
  together with the operators that produce its operands, or
- the cosine of their histograms of core operators (`canonical.core_operators`) is at least
  `MIN_COSINE`, and their numbers of parameters differ by at most `MAX_PARAMS_RATIO`.

`split_groups` extends a dataset: connected graphs form a group, named after the smallest family it
had when it was first seen, and the name determines the split (`analysis.splits.split_of`). No graph
moves: a graph keeps a known group, and a new graph joins the group of its links. A new graph that
is linked to groups of different splits would leak, so it gets no group. `partition.choose_groups`
chooses the groups of a first version, since such links connect half of a large dataset.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from graphnet_datasets.analysis.splits import split_of

from .canonical import core_operators

pc: Any = pyarrow.compute

MIN_COSINE = 0.98
MIN_SHARED = 0.7
"""Both are below the limits for a held-out graph and a training graph: 0.99 and 0.8."""

MAX_PARAMS_RATIO = 1.01

COLUMNS = ("id", "family", "source", "model_name", "num_inputs", "num_params", "ops")
"""The columns of the `graphs` table that determine groups."""

_BLOCK = 512
_ODD = np.uint64(0x9E3779B97F4A7C15)
_PUNCTUATION = re.compile(r"[^a-z0-9]")
_CLASS = re.compile(
    r"(?:Pre)?(?:For[A-Z]|With[A-Z]|Model|Backbone|PreTrainedModel|LMHead|Text|Vision|Audio"
    r"|Encoder|Decoder|Head)"
)


def split_groups(
    graphs: pa.Table, known_groups: Mapping[str, str] | None = None
) -> list[str | None]:
    """Return the group of each graph, or None if it is linked to groups of different splits.

    `graphs` has the columns of `COLUMNS`; `known_groups` maps ids of graphs to the groups that
    they keep. Neither the order nor the number of rows affects known graphs.

    >>> ops = [[{"target": name, "operands": [0]} for name in names] for names in
    ...     (["torch.relu"], ["torch.relu"], ["torch.sin", "torch.cos"])]
    >>> table = pa.table({"id": ["a", "b", "c"], "family": ["1", "2", "3"], "source": ["x"] * 3,
    ...     "model_name": ["a", "b", "c"], "num_inputs": [1] * 3, "num_params": [0] * 3,
    ...     "ops": ops})
    >>> split_groups(table), split_groups(table, {"b": "2"})
    (['1', '1', '3'], ['2', '2', '3'])
    """
    ids: list[str] = graphs["id"].to_pylist()
    families = graphs["family"].to_pylist()
    groups: list[str | None] = [(known_groups or {}).get(sample_id) for sample_id in ids]
    is_done = [group is not None for group in groups]
    if all(is_done):
        return groups
    links = near_links(graphs)
    order = sorted(range(len(ids)), key=lambda index: (families[index], ids[index]))
    # First join graphs that are linked to known groups, directly or through other graphs.
    waiting = {neighbour for index in order if is_done[index] for neighbour in links[index]}
    _join(waiting, links, groups, is_done, ids, families)
    for index in order:
        if not is_done[index]:  # the smallest family of its group: smaller ones are done
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
    """Assign graphs linked to grouped graphs to these groups, in order of their ids.

    A graph linked to several groups of one split joins the group of its family, else the smallest.
    """
    waiting = {index for index in waiting if not is_done[index]}
    while waiting:
        index = min(waiting, key=ids.__getitem__)
        waiting.discard(index)
        is_done[index] = True
        near = sorted(
            {group for neighbour in links[index] if (group := groups[neighbour]) is not None}
        )
        if len({split_of(group) for group in near}) != 1:
            continue  # linked to two splits: it gets no group and propagates none
        same = (
            groups[neighbour]
            for neighbour in links[index]
            if families[neighbour] == families[index]
        )
        groups[index] = min((group for group in same if group is not None), default=near[0])
        waiting |= {int(neighbour) for neighbour in links[index] if not is_done[neighbour]}


def near_links(graphs: pa.Table) -> list[npt.NDArray[np.int64]]:
    """Return the positions of the graphs linked to each graph."""
    labels = model_labels(graphs)
    links: list[npt.NDArray[np.int64]] = []
    for row, similar in enumerate(similar_links(graphs)):
        is_linked = (labels[:, row, None] == labels).any(axis=0)
        is_linked[similar] = True
        is_linked[row] = False
        links.append(np.flatnonzero(is_linked))
    return links


def model_labels(graphs: pa.Table) -> npt.NDArray[np.int64]:
    """Return the family, model and published name of each graph as numbers, of shape (3, graphs).

    Graphs with an equal number in a row are linked.
    """
    names = graphs["model_name"].to_pylist()
    pairs = zip(graphs["source"].to_pylist(), names, strict=True)
    return np.stack(
        [
            _numbers(graphs["family"].to_pylist()),
            _numbers([model_key(source or "", name or "") for source, name in pairs]),
            _numbers([_PUNCTUATION.sub("", (name or "").lower()) for name in names]),
        ]
    )


def similar_links(graphs: pa.Table) -> list[npt.NDArray[np.int64]]:
    """Return the positions of the graphs whose operators link them to each graph."""
    num_params = graphs["num_params"]
    histogram = core_histograms(graphs["ops"])
    links: list[npt.NDArray[np.int64]] = []
    for start, cosine, shared in similarities(graphs):
        is_near = (cosine >= MIN_COSINE) & (shared >= MIN_SHARED)
        is_near |= near_copies(histogram, num_params, np.arange(start, start + len(cosine)))
        for row, near in enumerate(is_near):
            near[start + row] = False
            links.append(np.flatnonzero(near))
    return links


def near_copies(
    histogram: npt.NDArray[np.float64], num_params: pa.ChunkedArray, rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return whether graphs have as many parameters and nearly the same core operators.

    `histogram` is that of `core_histograms`. The result has the shape (rows, graphs); `MIN_COSINE`
    and `MAX_PARAMS_RATIO` are the limits.
    """
    logarithm = np.log(np.maximum(pc.fill_null(num_params, 0).to_numpy().astype(np.float64), 1))
    is_as_large = np.abs(logarithm[rows, None] - logarithm) <= math.log(MAX_PARAMS_RATIO)
    return is_as_large & (histogram[rows] @ histogram.T >= MIN_COSINE)


def core_histograms(operators: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """Return how often each graph has each core operator, as unit vectors of shape (graphs, n).

    `operators` is a column of lists of structs with a `target`, and a `count` or none for one call:
    `ops` or `op_histogram`.
    """
    lengths = pc.list_value_length(operators).to_numpy().astype(np.int64)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    flat = pc.list_flatten(operators).combine_chunks()
    names = flat.field("target").dictionary_encode()
    has_counts = flat.type.get_field_index("count") >= 0
    counts = flat.field("count").to_numpy() if has_counts else None
    target = names.indices.to_numpy().astype(np.int64)
    histogram = _counts(owner, target, len(lengths), counts)
    core = [core_operators(target) for target in names.dictionary.to_pylist()]
    number = {name: index for index, name in enumerate(sorted({*itertools.chain(*core)}))}
    weights = np.zeros((histogram.shape[1], max(1, len(number))))
    for row, operators_of_call in enumerate(core):
        for operator in operators_of_call:
            weights[row, number[operator]] += 1
    return _unit(histogram @ weights)


def similarities(
    graphs: pa.Table,
) -> Iterator[tuple[int, npt.NDArray[np.float64], npt.NDArray[np.float64]]]:
    """Yield the first position and similarity matrices of blocks of graphs.

    The matrices contain the cosine of operator histograms, and the larger of the two shares of
    distinct neighbourhoods in common. Both have the shape (block, graphs).
    """
    owner, target, neighbourhood = _operators(graphs)
    count = graphs.num_rows
    histogram = _unit(_counts(owner, target, count))
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
    """Return a model's name without its head, size and variant.

    For a class, this is the part before the head; for a function, the part before a number.

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


def _numbers(labels: Sequence[str]) -> npt.NDArray[np.int64]:
    """Number labels; an empty one is unknown, and has a number of its own."""
    numbers: dict[str, int] = {}
    keys = (label or f"\0{index}" for index, label in enumerate(labels))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _unit(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1)


def _operators(
    graphs: pa.Table,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the graph, name and neighbourhood of each operator of all graphs.

    Names and neighbourhoods are numbered from 0. A 64-bit hash of its names identifies a
    neighbourhood.
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
    # Values are numbered inputs first, so the difference is the operator's position in its graph.
    num_inputs = graphs["num_inputs"].to_numpy().astype(np.int64)
    first = (np.cumsum(lengths) - lengths)[owner]
    position = values - num_inputs[owner][user]
    is_op = position >= 0
    producer = np.full(len(values), -1, dtype=np.int64)
    producer[is_op] = target[first[user][is_op] + position[is_op]]
    place = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    with np.errstate(over="ignore"):
        mixed = _mix((producer + 2).astype(np.uint64) * _ODD + place.astype(np.uint64))
        sums = np.zeros(len(target), dtype=np.uint64)
        np.add.at(sums, user, mixed)
        keys = _mix(sums + _mix(target.astype(np.uint64) + np.uint64(1)))
    return owner, target, np.unique(keys, return_inverse=True)[1].astype(np.int64)


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Spread the bits of numbers (the finaliser of splitmix64, G. Steele et al., 2014)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _counts(
    owner: npt.NDArray[np.int64],
    label: npt.NDArray[np.int64],
    count: int,
    weights: npt.NDArray[np.int32] | None = None,
) -> npt.NDArray[np.float64]:
    """Return how often each graph has each label, as an array of shape (graphs, labels)."""
    num_labels = int(label.max(initial=-1)) + 1
    flat = np.bincount(owner * num_labels + label, weights, minlength=count * num_labels)
    return flat.reshape(count, num_labels).astype(np.float64)
