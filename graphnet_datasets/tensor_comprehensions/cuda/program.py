"""CUDA C of an instance: one kernel for each nest, launched one after the other."""

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
    """One `__global__` function and how it is launched; its arguments are all tensors in order."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class CudaProgram:
    """CUDA C of an instance; the kernels are to be launched in order, on one stream.

    Attributes:
        schedule: the order of execution, checked against the dependences.
    """

    source: str
    kernels: tuple[CudaKernel, ...]
    schedule: Schedule


def write_cuda(instance: Instance, options: Options | None = None) -> CudaProgram:
    """Return the CUDA C of an instance.

    Raises:
        TensorComprehensionError: a tensor is of a 16-bit float, which has no CUDA code yet.
        IllegalScheduleError: the schedule breaks a dependence; this is an error of the generator.
        SchedulingLimitError: the dependences would take too long to find.
    """
    options = options or Options()
    for tensor in instance.tensors:
        if tensor.dtype.is_float and tensor.dtype.bits == 16:
            raise TensorComprehensionError(
                f"`{tensor.name}` is {tensor.dtype.name}; CUDA code is generated for float32 and "
                "float64 only. Convert it before."
            )
    needed = relations(instance)
    groups = fuse(instance, needed.parts[0][1], options.intra_fusion, needed.parallel_loops())
    placed = [coalesce(piece) for nest in gather_nests(instance, groups) for piece in split(nest)]
    schedule = schedule_of(instance, [((), [each], [_order_of(each)]) for each in placed], GPU)
    needed.check(schedule)
    nests = [each.nest for each in placed]
    functions = CudaFunctions()
    names = tensor_names(instance)
    arguments = []
    for tensor in instance.tensors:
        const = "const " if tensor.role == "input" else ""
        arguments.append(f"{const}{c_type(tensor.dtype)} *__restrict__ {names[tensor.name]}")
    bodies, kernels = [], []
    inputs = {each.name for each in instance.inputs} if options.cuda.use_readonly_cache else set()
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
    """Return the order of a kernel: every point of the output at any time, its terms in order.

    How points are shared out over blocks and threads cannot matter then.
    """
    nest = placed.nest
    order = tuple(each.name for each in nest.dims)
    kind = (*nest.updates, *nest.epilogues)[-1].type
    return Plan("scalar", kind, "", 1, (), order, num_parallel=len(order))
