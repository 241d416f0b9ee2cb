from __future__ import annotations

from graphnet_datasets.analysis.effects import find_effects
from graphnet_datasets.analysis.hashes import all_hashes
from graphnet_datasets.analysis.randomness import random_outputs
from graphnet_datasets.analysis.tags import op_histogram, op_tags
from graphnet_datasets.sample import Op
from graphnet_datasets.sample.arguments import Graph, Ref

from ..sample.test_bodies import DIFFERENCE, PRODUCT, branching


def test_hashes_depend_on_bodies() -> None:
    swapped = Graph(2, (Op("torch.sub", (Ref(1), Ref(0)), (("alpha", 2),)),), (Ref(2),))
    samples = [
        branching(),
        branching(PRODUCT, DIFFERENCE),
        branching(swapped),
        branching(Graph(2, DIFFERENCE.ops, Ref(2))),
    ]
    hashes = [all_hashes(sample) for sample in samples]
    for name in ("structure_hash", "signature_hash"):
        assert len({of_sample[name] for of_sample in hashes}) == len(samples)
    families = [of_sample["family"] for of_sample in hashes]
    assert families[0] == families[2] == families[3]
    assert families[0] != families[1]


def test_hashes_ignore_modules_and_the_order_of_independent_operators_in_bodies() -> None:
    first, second = Op("torch.relu", (Ref(0),), (), None, "a"), Op("torch.sin", (Ref(1),))
    one = Graph(2, (first, second), (Ref(2), Ref(3)))
    other = Graph(2, (second, Op("torch.relu", (Ref(0),))), (Ref(3), Ref(2)))
    assert all_hashes(branching(one)) == all_hashes(branching(other))


def test_a_write_to_an_input_of_a_body_is_a_write_to_the_operands() -> None:
    inside = (Op("torch.neg", (Ref(0),)), Op("torch.Tensor.add_", (Ref(2), 1)))
    assert find_effects(branching(Graph(2, inside, (Ref(3),)))).seen_by_outputs == ()
    outside = (Op("torch.Tensor.view", (Ref(0), -1)), Op("torch.Tensor.add_", (Ref(2), 1)))
    assert find_effects(branching(Graph(2, outside, (Ref(1),)))).seen_by_outputs == (0,)


def test_a_draw_in_a_body_makes_the_output_random() -> None:
    noise = Graph(2, (Op("torch.rand_like", (Ref(0),)),), (Ref(2),))
    assert random_outputs(branching()) == (False,)
    assert random_outputs(branching(noise)) == (True,)


def test_tags_and_counts_include_bodies() -> None:
    product = Graph(2, (Op("torch.matmul", (Ref(0), Ref(1))),), (Ref(2),))
    assert op_tags(branching(product)) == ["matmul"]
    counts = {row["target"]: row["count"] for row in op_histogram(branching(product, product))}
    assert counts == {
        "torch.ops.higher_order.cond": 1, "operator.getitem": 1, "torch.matmul": 2,
    }  # fmt: skip
