"""Triton source of an instance, with one or two kernels per nest."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ...errors import TensorComprehensionError
from ..codegen.c_types import comment
from ..codegen.coalescing import Coalesced, coalesce
from ..codegen.elements import Nest, elements_of
from ..codegen.nests import gather_nests
from ..codegen.plans import Plan
from ..codegen.program import tensor_names
from ..codegen.schedules import schedule_of
from ..codegen.splitting import split
from ..cuda.functions import GPU
from ..language.instance import Instance
from ..language.types import ScalarType
from ..options import Options
from ..polyhedral import Schedule, relations
from ..polyhedral.fusion import fuse
from .body import Launch, NestWriter
from .contraction import contraction_of
from .functions import Helpers
from .mapping import MAX_PROGRAMS, map_nest

PRELUDE = """\
import triton
import triton.language as tl
from triton.language.extra import libdevice
"""
"""First lines of every generated file."""


@dataclasses.dataclass(frozen=True, slots=True)
class TritonProgram:
    """Triton code of an instance; launches run in order, on one stream.

    Attributes:
        types: types of all arguments, by name.
        partials: number of elements of each temporary beyond those of the instance.
        schedule: execution order, checked against the dependences.
    """

    source: str
    launches: tuple[Launch, ...]
    types: dict[str, ScalarType]
    partials: dict[str, int]
    schedule: Schedule


def write_triton(instance: Instance, options: Options | None = None) -> TritonProgram:
    """Generate the Triton code of an instance.

    Raises:
        TensorComprehensionError: Triton cannot express the instance, because it has a scan or a
            scatter, calls a registered function, or has too many points for one launch.
        IllegalScheduleError: the schedule breaks a dependence, which is a bug of the generator.
        SchedulingLimitError: the dependence analysis exceeds its limit.
    """
    options = options or Options()
    dependences = relations(instance)
    groups = fuse(
        instance, dependences.parts[0][1], options.intra_fusion, dependences.parallel_loops()
    )
    placed = [
        coalesce(piece)
        for group in groups
        for nest in _nests_of(instance, group)
        for piece in _pieces(nest, options)
    ]
    nests = [placed_nest.nest for placed_nest in placed]
    for nest in nests:
        if nest.is_ordered:
            text = instance.statements[nest.statements[0]].text
            raise TensorComprehensionError(
                f"`{text}` is a scan or a scatter, for which no Triton code is generated. Compile "
                'with `Options(gpu="nvrtc")`.'
            )
    schedule = schedule_of(
        instance, [((), [placed_nest], [_order_of(placed_nest)]) for placed_nest in placed], GPU
    )
    dependences.check(schedule)
    names = tensor_names(instance)
    helpers, bodies, launches = Helpers(), [], []
    types = {tensor.name: tensor.dtype for tensor in instance.tensors}
    partials: dict[str, int] = {}
    for place, nest in enumerate(nests):
        mapping = map_nest(nest, options)
        if mapping.num_tiles > MAX_PROGRAMS:
            raise TensorComprehensionError(
                f"`{instance.name}` would need {mapping.num_tiles} programs of Triton in a launch; "
                f"at most {MAX_PROGRAMS} are possible. Use larger blocks or smaller tensors."
            )
        stored = _stored(instance, nests, place)
        writer = NestWriter(nest, mapping, names, stored, helpers, options.triton.input_precision)
        comments = [
            f"#{comment(instance.statements[number].text)[2:]}" for number in nest.statements
        ]
        text, kernels = writer.write(f"tc_kernel_{place}", comments)
        bodies.append(text)
        launches += kernels
        for name, element in writer.partials.items():
            types[name] = element.type
            partials[name] = mapping.split * math.prod(dim.extent for dim in nest.dims)
    source = PRELUDE + helpers.text + "".join(bodies)
    return TritonProgram(source, tuple(launches), types, partials, schedule)


def _nests_of(instance: Instance, group: Sequence[int]) -> list[Nest]:
    """Return the nests of a group; reductions stay apart if one is a product of matrices."""
    joined = gather_nests(instance, [group])
    if any(len(nest.updates) > 1 and contraction_of(nest) is None for nest in joined):
        apart = gather_nests(instance, [group], joins_reductions=False)
        if any(contraction_of(nest) is not None for nest in apart):
            return apart
    return joined


def _pieces(nest: Nest, options: Options) -> list[Nest]:
    """Return the parts of a nest where guards are constant, or the nest with masked reads.

    Parts are worth their launches if the largest is a product and the whole is not: a product under
    a guard is not a product of matrices.
    """
    whole, parts = split(nest, 1), split(nest)
    if options.triton.split_guards:
        return parts
    largest = max(parts, key=lambda part: part.num_points)
    is_better = contraction_of(whole[0]) is None and contraction_of(largest) is not None
    return parts if is_better else whole


def _stored(instance: Instance, nests: Sequence[Nest], place: int) -> frozenset[str]:
    """Return the tensors whose contents are used after a nest."""
    names = {tensor.name for tensor in instance.outputs}
    for other in (*nests[:place], *nests[place + 1 :]):
        for value in other.expressions():
            names |= {element.tensor for element in elements_of(value)}
        names |= {update.target.tensor for update in other.updates if update.start == "memory"}
    return frozenset(names)


def _order_of(placed: Coalesced) -> Plan:
    """Return the order of a kernel: parallel points of the output, each with its terms in order.

    The distribution of points and terms over programs then has no effect on the result, apart from
    the rounding of sums.
    """
    nest = placed.nest
    order = tuple(dim.name for dim in nest.dims)
    kind = (*nest.updates, *nest.epilogues)[-1].type
    return Plan("scalar", kind, "", 1, (), order, num_parallel=len(order))
