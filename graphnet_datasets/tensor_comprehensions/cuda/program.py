"""CUDA C source of an instance, with one kernel per nest."""

from __future__ import annotations

import dataclasses

from ...errors import TensorComprehensionError
from ..codegen.c_types import c_type, comment
from ..codegen.coalescing import Coalesced, coalesce
from ..codegen.nests import gather_nests
from ..codegen.plans import Plan
from ..codegen.program import tensor_names
from ..codegen.schedules import schedule_of
from ..codegen.splitting import split
from ..codegen.writer import Context, Writer
from ..language.instance import Instance
from ..options import Options
from ..polyhedral import Schedule, relations
from ..polyhedral.fusion import fuse
from .body import KernelBody
from .functions import GPU, PRELUDE, CudaFunctions
from .mapping import map_nest


@dataclasses.dataclass(frozen=True, slots=True)
class CudaKernel:
    """A `__global__` function and its launch extents; the arguments are all tensors in order."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class CudaProgram:
    """CUDA C of an instance; kernels must be launched in order, on one stream.

    Attributes:
        schedule: execution order, checked against the dependences.
    """

    source: str
    kernels: tuple[CudaKernel, ...]
    schedule: Schedule


def write_cuda(instance: Instance, options: Options | None = None) -> CudaProgram:
    """Generate the CUDA C of an instance.

    Raises:
        TensorComprehensionError: a tensor has a 16-bit float type, which is not supported.
        IllegalScheduleError: the schedule breaks a dependence, which is a bug of the generator.
        SchedulingLimitError: the dependence analysis exceeds its limit.
    """
    options = options or Options()
    for tensor in instance.tensors:
        if tensor.dtype.is_float and tensor.dtype.bits == 16:
            raise TensorComprehensionError(
                f"`{tensor.name}` is {tensor.dtype.name}, but CUDA code is only generated for "
                "float32 and float64. Convert it first, or generate Triton with "
                "`Options().with_triton()`."
            )
    dependences = relations(instance)
    groups = fuse(
        instance, dependences.parts[0][1], options.intra_fusion, dependences.parallel_loops()
    )
    placed = [coalesce(piece) for nest in gather_nests(instance, groups) for piece in split(nest)]
    schedule = schedule_of(
        instance, [((), [placed_nest], [_order_of(placed_nest)]) for placed_nest in placed], GPU
    )
    dependences.check(schedule)
    nests = [placed_nest.nest for placed_nest in placed]
    functions = CudaFunctions()
    names = tensor_names(instance)
    arguments = []
    for tensor in instance.tensors:
        const = "const " if tensor.role == "input" else ""
        arguments.append(f"{const}{c_type(tensor.dtype)} *__restrict__ {names[tensor.name]}")
    bodies, kernels = [], []
    inputs = {other.name for other in instance.inputs} if options.cuda.use_readonly_cache else set()
    for place, nest in enumerate(nests):
        mapping = map_nest(nest, options)
        name = f"tc_kernel_{place}"
        writer = Writer()
        for number in nest.statements:
            writer.line(comment(instance.statements[number].text))
        threads = mapping.block[0] * mapping.block[1] * mapping.block[2]
        head = (
            f'extern "C" __global__ void __launch_bounds__({threads}) '
            f"{name}({', '.join(arguments)})"
        )
        context = Context(GPU, names, functions)
        shared = 0
        with writer.block(head):
            shared = KernelBody(nest, mapping, options, context, writer, inputs).write()
        bodies.append(writer.text)
        kernels.append(CudaKernel(name, mapping.grid, mapping.block, shared))
    return CudaProgram(PRELUDE + functions.text + "".join(bodies), tuple(kernels), schedule)


def _order_of(placed: Coalesced) -> Plan:
    """Return the order of a kernel: parallel points of the output, each with its terms in order.

    The distribution of points over blocks and threads then has no effect on the result.
    """
    nest = placed.nest
    kind = (*nest.updates, *nest.epilogues)[-1].type
    num_parallel = len(nest.order) - len(nest.serial)
    return Plan("scalar", kind, "", 1, (), nest.order, num_parallel=num_parallel)
