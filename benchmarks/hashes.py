"""Time of the hashes, and how many classes they make, on real graphs.

    python benchmarks/hashes.py [DIRECTORY OR ARCHIVE OF GRAPHNET SAMPLES]

Prints one JSON object per hash: milliseconds of CPU time per graph (median, 95th percentile,
largest), the number of graphs and of classes. The last object says how many of 3 renamed and
reordered copies of each graph keep the structure hash, and how many of 4 mutated copies (operator,
literal, edge, dtype) change it.
"""

from __future__ import annotations

import dataclasses
import json
import random
import statistics
import sys
import time
from collections.abc import Callable

from import_directories import folders_of, open_samples

from graphnet_datasets import Sample, read_directory
from graphnet_datasets.analysis.effects import NO_COMPUTATION, find_effects
from graphnet_datasets.analysis.hashes import family, signature_hash, source_hash, structure_hash
from graphnet_datasets.sample import Op
from graphnet_datasets.sample.arguments import Ref, iterate_refs, map_refs

HASHES: tuple[Callable[[Sample], str], ...] = (
    signature_hash,
    structure_hash,
    family,
    source_hash,
)


def measure(samples: list[Sample], function: Callable[[Sample], str]) -> dict[str, object]:
    """Return time and classes of one hash."""
    times_ms, classes = [], set()
    for sample in samples:
        start = time.process_time()
        classes.add(function(sample))
        times_ms.append((time.process_time() - start) * 1e3)
    return {
        "hash": function.__name__,
        "graphs": len(samples),
        "classes": len(classes),
        "median_ms": round(statistics.median(times_ms), 2),
        "p95_ms": round(statistics.quantiles(times_ms, n=20)[-1], 2),
        "largest_ms": round(max(times_ms), 2),
    }


def swap(sample: Sample, generator: random.Random) -> Sample:
    """Return the sample with neighbours exchanged that do not depend on one another."""
    effects = find_effects(sample)
    first = len(sample.inputs)
    order = list(range(sample.num_ops))
    touched = {position for seen in effects.seen for position in seen}
    needs = [
        {ref - first for ref in iterate_refs((op.args, op.kwargs))} | set(effects.seen[position])
        for position, op in enumerate(sample.ops)
    ]
    pure = [
        not needs_of & touched and position not in touched and not effects.seen[position]
        for position, needs_of in enumerate(needs)
    ]
    for _ in range(4 * len(order)):
        at = generator.randrange(len(order) - 1)
        left, right = order[at], order[at + 1]
        if pure[left] and pure[right] and left not in needs[right]:
            order[at], order[at + 1] = right, left
    new = {first + position: first + index for index, position in enumerate(order)}

    def move(ref: int) -> Ref:
        return Ref(new.get(ref, ref))

    ops = tuple(
        dataclasses.replace(
            sample.ops[position],
            args=map_refs(sample.ops[position].args, move),
            kwargs=map_refs(sample.ops[position].kwargs, move),
        )
        for position in order
    )
    inputs = tuple(
        each
        if each.role == "symbol"
        else dataclasses.replace(each, source_name=f"renamed_{index}", device="cuda:1")
        for index, each in enumerate(sample.inputs)
    )
    outputs = map_refs(sample.outputs, move)
    return dataclasses.replace(sample, id="renamed", inputs=inputs, ops=ops, outputs=outputs)


def mutate(sample: Sample, generator: random.Random) -> list[Sample]:
    """Return the sample with one operator, literal, edge and dtype changed."""

    def with_op(position: int, op: Op) -> Sample:
        return dataclasses.replace(
            sample, ops=(*sample.ops[:position], op, *sample.ops[position + 1 :])
        )

    position = generator.choice(
        [index for index, op in enumerate(sample.ops) if op.target not in NO_COMPUTATION]
    )
    op = sample.ops[position]
    changed = [
        with_op(position, dataclasses.replace(op, target="torch.nn.functional.mish")),
        with_op(position, dataclasses.replace(op, args=(*op.args, 1e-7))),
    ]
    users = [index for index, each in enumerate(sample.ops) if list(iterate_refs(each.args))]
    user = generator.choice(users)
    args = sample.ops[user].args
    old = generator.choice(list(iterate_refs(args)))
    new = generator.choice([ref for ref in range(len(sample.inputs) + user) if ref != old])
    moved = map_refs(args, lambda ref: Ref(new if ref == old else ref))
    changed.append(with_op(user, dataclasses.replace(sample.ops[user], args=moved)))
    tensors = [i for i, each in enumerate(sample.inputs) if each.value.dtype == "float32"]
    index = generator.choice(tensors)
    value = dataclasses.replace(sample.inputs[index].value, dtype="float64")
    typed = dataclasses.replace(sample.inputs[index], value=value, data=None)
    inputs = (*sample.inputs[:index], typed, *sample.inputs[index + 1 :])
    return [*changed, dataclasses.replace(sample, inputs=inputs)]


def main() -> None:
    """Measure all hashes on the torch samples."""
    with open_samples(sys.argv[1:]) as root:
        samples = [read_directory(folder)[0] for folder in folders_of(root / "samples")]
    for function in HASHES:
        print(json.dumps(measure(samples, function)), flush=True)
    generator = random.Random(0)  # noqa: S311 - reproducible choices, nothing secret
    kept = changed = 0
    for sample in samples:
        own = signature_hash(sample)
        kept += sum(signature_hash(swap(sample, generator)) == own for _ in range(3))
        changed += sum(signature_hash(each) != own for each in mutate(sample, generator))
    print(
        json.dumps(
            {
                "hash": "signature_hash",
                "renamed_and_reordered": 3 * len(samples),
                "kept": kept,
                "mutated": 4 * len(samples),
                "changed": changed,
            }
        )
    )


if __name__ == "__main__":
    main()
