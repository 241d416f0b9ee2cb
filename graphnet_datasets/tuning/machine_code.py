"""Features of the machine code of a schedule: instruction counts of its loops, without a run.

The assembly is LLVM's for x86-64 in AT&T syntax. A jump to an earlier label closes a loop, and the
number of its iterations follows from the constants of its counter. The hot loop is the innermost
loop with the largest product of iterations and cycles.

Each instruction belongs to one class of `CLASSES`; an arithmetic instruction with an operand in
memory also counts as a load. The features are the counts of each class in one iteration of the hot
loop (`hot_…`), weighted by the iterations of all loops (`total_…`), and in the text (`text_…`),
followed by properties of the hot loop and of the kernel. Cycles are estimates from the throughput
of Zen 4, and the same for every target.

This module reads text only. It neither imports TVM nor runs code.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
import operator
import re
from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import TuningError

MACHINE_CODE_SET = "x86-64-1"
"""Name and version of the features. A change of a feature changes the version."""

MAX_CHARACTERS = 64 * 2**20
"""Maximum length of an assembly text."""

UNKNOWN_TRIPS = 4
"""Assumed iterations of a loop whose counter has no constant bound."""

_MAX_LOG_TRIPS = 60 * math.log(2)
_FMA_LATENCY = 4
_SIGNIFICANT_BITS = 8
_WIDTHS = ("zmm", "ymm", "xmm", "scalar")

CLASSES = (
    *(f"fma_{width}" for width in _WIDTHS),
    *(f"arithmetic_{width}" for width in _WIDTHS),
    *(f"load_{width}" for width in (*_WIDTHS, "integer")),
    *(f"store_{width}" for width in (*_WIDTHS, "integer")),
    *("broadcast", "gather", "shuffle", "divide", "convert", "mask"),
    *("vector_move", "vector_integer"),
    *("spill_load", "spill_store", "integer", "address", "compare", "branch", "call", "prefetch"),
)
"""The classes of instructions.

`load_…` and `store_…` count accesses outside the stack by width, `spill_…` those at a constant
offset from the stack pointer. `broadcast` includes operands that are broadcast from memory.
`integer` is arithmetic and moves in general registers, `address` is `lea`, and `mask` are
instructions on mask registers. `vector_move` includes zeroing.
"""

_PROPERTIES = (
    *("hot_instructions", "hot_cycles", "hot_trips", "hot_runs", "hot_depth", "hot_share"),
    *("hot_accumulators", "hot_chain", "hot_flops", "hot_load_bytes", "hot_store_bytes"),
    *("hot_fma_per_load", "hot_flops_per_cycle", "hot_registers"),
    *("total_cycles", "total_flops", "total_load_bytes", "total_store_bytes"),
    *("total_flops_per_cycle", "total_fma_per_load"),
    *("loops", "inner_loops", "unknown_loops", "depth", "blocks", "text_instructions"),
    "stack_bytes",
)

FEATURE_NAMES = (
    *(f"{scope}_{name}" for scope in ("hot", "total", "text") for name in CLASSES),
    *_PROPERTIES,
)
"""The name of each feature, in order.

`hot_trips` are the iterations of the hot loop, `hot_runs` the number of times that it is entered,
and `hot_share` its share of all cycles. `hot_chain` is the number of dependent multiply-adds in an
iteration, and `hot_accumulators` the number of registers that they add to.
"""

_PACKED = {"zmm": 16, "ymm": 8, "xmm": 4, "scalar": 1}
_BYTES = {"zmm": 64, "ymm": 32, "xmm": 16, "scalar": 4, "integer": 8}
_INDEX = {name: index for index, name in enumerate(CLASSES)}


def _per_class(**values: float) -> np.ndarray:
    """Return a vector over classes; a keyword is a class, or the beginning of several."""
    vector = np.zeros(len(CLASSES))
    for name, value in values.items():
        for index, class_name in enumerate(CLASSES):
            if class_name == name or class_name.startswith(f"{name}_"):
                vector[index] = value
    return vector


_FLOPS = _per_class(
    **{f"fma_{width}": 2 * lanes for width, lanes in _PACKED.items()},
    **{f"arithmetic_{width}": lanes for width, lanes in _PACKED.items()},
)
_LOAD_BYTES = _per_class(**{f"load_{width}": size for width, size in _BYTES.items()})
_STORE_BYTES = _per_class(**{f"store_{width}": size for width, size in _BYTES.items()})
_IS_FMA = _per_class(fma=1)
_IS_LOAD = _per_class(load=1, broadcast=1, gather=1, spill_load=1)
_PORTS = np.stack(
    [
        # Vector units: two of 256 bits.
        _per_class(fma=0.5, arithmetic=0.5, shuffle=0.5, convert=1, divide=5, vector_integer=0.5)
        + _per_class(fma_zmm=0.5, arithmetic_zmm=0.5, gather=8, mask=0.5),
        # Loads: two of 256 bits, or one of 512.
        _per_class(load=0.5, spill_load=0.5, broadcast=0.5, gather=8) + _per_class(load_zmm=0.5),
        _per_class(store=1, spill_store=1) + _per_class(store_zmm=1),
        _per_class(integer=0.25, address=0.25, compare=0.25, branch=0.5, call=20),
        # Decoding: six instructions; memory operands are part of their instruction.
        1 / 6 - _per_class(load=1 / 12, spill_load=1 / 12),
    ]
)
"""Cycles per instruction of each class, for each unit of the processor."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Instruction:
    name: str
    operands: tuple[str, ...]

    @property
    def target(self) -> str:
        """The last operand, which an instruction writes in AT&T syntax, or ""."""
        return self.operands[-1] if self.operands else ""


@dataclasses.dataclass(slots=True)
class _Loop:
    start: int
    stop: int
    """Index after the last instruction."""
    trips: float = UNKNOWN_TRIPS
    is_known: bool = False
    is_inner: bool = True


@dataclasses.dataclass(slots=True)
class _Function:
    name: str
    instructions: list[_Instruction] = dataclasses.field(default_factory=list)
    labels: dict[str, int] = dataclasses.field(default_factory=dict)


def machine_code_features(assembly: str) -> np.ndarray:
    """Return float32 [features] of a kernel's assembly, in the order of `FEATURE_NAMES`.

    Functions that TVM adds to check and convert arguments are left out. Values are rounded to 8
    significant bits, so that they take little space; smaller integers are exact.

    Raises:
        TuningError: the text is too long, or contains no instructions of x86-64.

    >>> text = '''main:
    ...     xorl %eax, %eax
    ... .L1:
    ...     vmovups (%rsi,%rax,4), %zmm1
    ...     vfmadd231ps (%rdi,%rax,4), %zmm1, %zmm0
    ...     addq $16, %rax
    ...     cmpq $1024, %rax
    ...     jne .L1
    ...     vmovups %zmm0, (%rdx)
    ...     retq'''
    >>> features = dict(zip(FEATURE_NAMES, machine_code_features(text).tolist()))
    >>> features["hot_fma_zmm"], features["hot_load_zmm"], features["hot_trips"]
    (1.0, 2.0, 64.0)
    >>> features["total_fma_zmm"], features["text_store_zmm"], features["hot_accumulators"]
    (64.0, 1.0, 1.0)
    """
    if len(assembly) > MAX_CHARACTERS:
        raise TuningError(
            f"An assembly text has {len(assembly):,} characters; at most {MAX_CHARACTERS:,} are "
            "supported. Leave out this candidate."
        )
    functions = _kernels(_functions(assembly))
    operands = (
        operand
        for function in functions
        for instruction in function.instructions
        for operand in instruction.operands
    )
    if not any("%" in operand for operand in operands):  # registers have this prefix
        raise TuningError(
            "An assembly text contains no instructions of x86-64. Pass LLVM's assembly for such a "
            "processor."
        )
    return _rounded(_features([_Analysis(function) for function in functions]))


def _functions(assembly: str) -> list[_Function]:
    """Return the functions with instructions; directives, data and comments are left out."""
    functions: list[_Function] = []
    current: _Function | None = None
    for line in assembly.splitlines():
        code = line.partition("#")[0].strip()
        if not code:
            continue
        if code.endswith(":"):
            label = code[:-1]
            if not _LOCAL_LABEL.match(label):
                current = _Function(label)
                functions.append(current)
            elif current is not None:
                current.labels[label] = len(current.instructions)
            continue
        if code.startswith(".") or current is None:
            continue
        name, _, rest = code.partition("\t" if "\t" in code else " ")
        if name in ("lock", "rep", "notrack"):
            name, _, rest = rest.strip().partition(" ")
        current.instructions.append(_Instruction(name, tuple(_split(rest))))
    return [function for function in functions if function.instructions]


def _split(operands: str) -> Iterator[str]:
    """Yield the operands, separated by commas outside parentheses."""
    depth, start = 0, 0
    for index, character in enumerate(operands):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            yield operands[start:index].strip()
            start = index + 1
    if operands[start:].strip():
        yield operands[start:].strip()


def _kernels(functions: Sequence[_Function]) -> list[_Function]:
    kernels = [function for function in functions if _KERNEL.search(function.name)]
    return kernels or [function for function in functions if not _HELPER.match(function.name)]


class _Analysis:
    """Loops, classes and weights of the instructions of a function."""

    def __init__(self, function: _Function) -> None:
        self.instructions = function.instructions
        self.loops = _loops(function)
        count = len(self.instructions)
        self.counts = np.zeros((count, len(CLASSES)))  # [instructions, classes]
        has_frame = any(
            instruction.name == "movq" and instruction.operands == ("%rsp", "%rbp")
            for instruction in self.instructions
        )
        for index, instruction in enumerate(self.instructions):
            for name in _classes(instruction, has_frame=has_frame):
                self.counts[index, _INDEX[name]] += 1
        logs, depths = np.zeros(count + 1), np.zeros(count + 1, np.int64)
        for loop in self.loops:
            logs[[loop.start, loop.stop]] += np.array([1, -1]) * math.log(loop.trips)
            depths[[loop.start, loop.stop]] += [1, -1]
        self.depths = np.cumsum(depths)[:count]
        self.weights = np.exp(np.minimum(np.cumsum(logs)[:count], _MAX_LOG_TRIPS))
        self.num_blocks = len(set(function.labels.values())) + sum(
            instruction.name.startswith("j") for instruction in self.instructions
        )

    def inner(self) -> list[_Loop]:
        """Return the innermost loops, or the whole function as a loop of one iteration."""
        return [loop for loop in self.loops if loop.is_inner] or [
            _Loop(0, len(self.instructions), trips=1)
        ]

    def cycles(self) -> float:
        """Return the estimated cycles of a call.

        The instructions of each innermost loop overlap, and so do those outside of these loops.
        """
        outside = np.ones(len(self.instructions), bool)
        total = 0.0
        for loop in self.inner():
            outside[loop.start : loop.stop] = False
            total += self.weights[loop.start] * self.loop_cycles(loop)
        return total + float((_PORTS @ (self.weights[outside] @ self.counts[outside])).max())

    def loop_cycles(self, loop: _Loop) -> float:
        """Return the cycles of an iteration, at least the latency of its longest chain."""
        throughput = (_PORTS @ self.counts[loop.start : loop.stop].sum(axis=0)).max()
        return float(max(throughput, _FMA_LATENCY * self.chain(loop)[1]))

    def chain(self, loop: _Loop) -> tuple[int, int]:
        """Return the number of accumulators, and the most additions to one of them."""
        additions: dict[str, int] = {}
        written: set[str] = set()
        for instruction in self.instructions[loop.start : loop.stop]:
            target = instruction.target
            if not _VECTOR.match(target):
                continue
            register = target.partition(" ")[0]
            if _FMA.match(instruction.name) or register in instruction.operands[:-1]:
                if register not in written and _ADDITION.match(instruction.name):
                    additions[register] = additions.get(register, 0) + 1
            else:  # a new value: no chain through the iterations
                written.add(register)
                additions.pop(register, None)
        return len(additions), max(additions.values(), default=0)


def _loops(function: _Function) -> list[_Loop]:
    """Return the loops in order of their first instruction, with iterations.

    Of several jumps to one label, the last one closes the loop.
    """
    ends: dict[int, int] = {}
    for index, instruction in enumerate(function.instructions):
        if instruction.name.startswith("j"):
            start = function.labels.get(instruction.target)
            if start is not None and start <= index:
                ends[start] = index + 1
    loops = [_Loop(start, ends[start]) for start in sorted(ends)]
    starts = [loop.start for loop in loops]
    for loop in loops:
        following = bisect.bisect_right(starts, loop.start)
        loop.is_inner = following == len(starts) or starts[following] >= loop.stop
    constants = _constants(function, set(starts))
    extent = _parallel_extent(function.instructions, starts[0] if starts else 0)
    outer_stop = 0
    for loop in loops:
        trips = _trips(function.instructions, loop, constants[loop.start])
        is_outer = loop.start >= outer_stop
        outer_stop = max(outer_stop, loop.stop)
        if trips is None and is_outer:
            trips = extent
        if trips is not None:
            loop.trips, loop.is_known = trips, True
    return loops


def _constants(function: _Function, starts: set[int]) -> dict[int, dict[str, int]]:
    """Return the registers with known constants before each of some instructions."""
    snapshots: dict[int, dict[str, int]] = {}
    constants: dict[str, int] = {}
    for index, instruction in enumerate(function.instructions):
        if index in starts:
            snapshots[index] = dict(constants)
        register = _register(instruction.target)
        if instruction.name.startswith("call"):
            constants.clear()
        elif register:
            source = instruction.operands[0]
            if instruction.name.startswith("mov") and (value := _immediate(source)) is not None:
                constants[register] = value
            elif instruction.name.startswith("xor") and _register(source) == register:
                constants[register] = 0
            elif not instruction.name.startswith(("cmp", "test")):
                constants.pop(register, None)
    return snapshots


def _parallel_extent(instructions: Sequence[_Instruction], stop: int) -> float | None:
    """Return the extent of a parallel loop, which TVM divides by the number of threads."""
    has_division = False
    for instruction in instructions[:stop]:
        if instruction.name.startswith("idiv"):
            has_division = True
        elif has_division and instruction.name.startswith("cmp"):
            value = _immediate(instruction.operands[0]) if instruction.operands else None
            return float(value) if value and value > 0 else None
    return None


def _trips(
    instructions: Sequence[_Instruction], loop: _Loop, constants: dict[str, int]
) -> float | None:
    """Return the iterations of a loop from the comparison before its jump, None if unknown."""
    for instruction in reversed(instructions[max(loop.start, loop.stop - 9) : loop.stop - 1]):
        kind = instruction.name.rstrip("bwlq")
        if kind not in ("cmp", "add", "sub", "inc", "dec"):
            continue
        register = _register(instruction.target)
        bound = _immediate(instruction.operands[0]) if kind == "cmp" else 0
        if not register or bound is None:
            return None
        step = _step(instructions[loop.start : loop.stop], register)
        distance = abs(bound - constants.get(register, 0))
        if step == 0:  # the counter is compared before it is incremented
            return float(distance + 1)
        return max(1.0, distance / abs(step)) if distance else None
    return None


def _step(instructions: Sequence[_Instruction], register: str) -> int:
    """Return the sum of the constants that a loop adds to a register."""
    step = 0
    for instruction in instructions:
        if _register(instruction.target) != register:
            continue
        kind = instruction.name.rstrip("bwlq")
        if kind in ("inc", "dec"):
            step += 1 if kind == "inc" else -1
        elif kind in ("add", "sub"):
            value = _immediate(instruction.operands[0]) or 0
            step += value if kind == "add" else -value
    return step


def _classes(instruction: _Instruction, *, has_frame: bool) -> Iterator[str]:
    """Yield the classes of an instruction; operands in memory are additional loads."""
    name, operands = instruction.name, instruction.operands
    for prefix, class_name in _BY_PREFIX.items():
        if name.startswith(prefix):
            yield class_name
            return
    if name.startswith("nop") or name == "vzeroupper":
        return
    text = " ".join(operands)
    width = next((width for width in _WIDTHS[:3] if f"%{width}" in text), "integer")
    if width == "xmm" and _SCALAR.search(name):
        width = "scalar"
    memory = next((operand for operand in operands if "(" in operand), None)
    is_stack = memory is not None and _is_stack(memory, has_frame=has_frame)
    is_move = bool(_MOVE.match(name))
    if memory is not None and "gather" not in name and "scatter" not in name:
        is_store = memory is operands[-1] and not name.startswith(("cmp", "test", "vucomis"))
        if is_stack:
            yield "spill_store" if is_store else "spill_load"
        elif "{1to" in memory or "broadcast" in name:
            yield "broadcast"
        else:
            yield f"{'store' if is_store else 'load'}_{width}"
        if is_move or "broadcast" in name:
            return
    yield _class_of_name(name, width)


def _class_of_name(name: str, width: str) -> str:
    if "gather" in name or "scatter" in name:
        return "gather"
    if width == "integer":
        if name.startswith("k"):
            return "mask"
        return "compare" if name.startswith(("cmp", "test")) else "integer"
    if _FMA.match(name):
        return f"fma_{width}"
    if "broadcast" in name or "vmovddup" in name:
        return "broadcast"
    if _DIVIDE.match(name):
        return "divide"
    if "cvt" in name:
        return "convert"
    if _SHUFFLE.match(name):
        return "shuffle"
    if _MOVE.match(name) or _ZERO.match(name):
        return "vector_move"
    if _ARITHMETIC.match(name):
        return f"arithmetic_{width}"
    return "vector_integer"


def _is_stack(operand: str, *, has_frame: bool) -> bool:
    inside = operand.partition("(")[2]
    is_base = inside.startswith("%rsp") or (has_frame and inside.startswith("%rbp"))
    return is_base and "," not in inside.partition(")")[0]


def _features(analyses: Sequence[_Analysis]) -> np.ndarray:
    hot_cost, function, hot = max(
        (
            (float(analysis.weights[loop.start]) * analysis.loop_cycles(loop), analysis, loop)
            for analysis in analyses
            for loop in analysis.inner()
        ),
        key=operator.itemgetter(0),
    )
    instructions = function.instructions[hot.start : hot.stop]
    hot_counts = function.counts[hot.start : hot.stop].sum(axis=0)
    totals = np.stack([analysis.weights @ analysis.counts for analysis in analyses]).sum(axis=0)
    text = np.stack([analysis.counts.sum(axis=0) for analysis in analyses]).sum(axis=0)
    cycles, hot_cycles = sum(analysis.cycles() for analysis in analyses), function.loop_cycles(hot)
    accumulators, chain = function.chain(hot)
    registers = {
        register
        for instruction in instructions
        for register in _REGISTER.findall(" ".join(instruction.operands))
    }
    loops = [loop for analysis in analyses for loop in analysis.loops]
    values = {
        "hot_instructions": len(instructions),
        "hot_cycles": hot_cycles,
        "hot_trips": hot.trips,
        "hot_runs": function.weights[hot.start] / hot.trips,
        "hot_depth": function.depths[hot.start],
        "hot_share": hot_cost / max(cycles, 1e-9),
        "hot_accumulators": accumulators,
        "hot_chain": chain,
        "hot_flops": hot_counts @ _FLOPS,
        "hot_load_bytes": hot_counts @ _LOAD_BYTES,
        "hot_store_bytes": hot_counts @ _STORE_BYTES,
        "hot_fma_per_load": _ratio(hot_counts @ _IS_FMA, hot_counts @ _IS_LOAD),
        "hot_flops_per_cycle": _ratio(hot_counts @ _FLOPS, hot_cycles),
        "hot_registers": len(registers),
        "total_cycles": cycles,
        "total_flops": totals @ _FLOPS,
        "total_load_bytes": totals @ _LOAD_BYTES,
        "total_store_bytes": totals @ _STORE_BYTES,
        "total_flops_per_cycle": _ratio(totals @ _FLOPS, cycles),
        "total_fma_per_load": _ratio(totals @ _IS_FMA, totals @ _IS_LOAD),
        "loops": len(loops),
        "inner_loops": sum(loop.is_inner for loop in loops),
        "unknown_loops": sum(not loop.is_known for loop in loops),
        "depth": max(int(analysis.depths.max(initial=0)) for analysis in analyses),
        "blocks": sum(analysis.num_blocks for analysis in analyses),
        "text_instructions": sum(len(analysis.instructions) for analysis in analyses),
        "stack_bytes": max(_stack_bytes(analysis.instructions) for analysis in analyses),
    }
    properties = [float(values[name]) for name in _PROPERTIES]
    return np.concatenate([hot_counts, totals, text, properties])


def _stack_bytes(instructions: Sequence[_Instruction]) -> int:
    return max(
        (
            _immediate(instruction.operands[0]) or 0
            for instruction in instructions
            if instruction.name == "subq" and instruction.target == "%rsp"
        ),
        default=0,
    )


def _ratio(value: float | np.ndarray, divisor: float | np.ndarray) -> float:
    return float(value / divisor) if divisor > 0 else float(value)


def _rounded(values: np.ndarray) -> np.ndarray:
    """Return float32 values with `_SIGNIFICANT_BITS` significant bits."""
    mantissas, exponents = np.frexp(values)
    scale = 2.0**_SIGNIFICANT_BITS
    return np.ldexp(np.round(mantissas * scale) / scale, exponents).astype(np.float32)


def _immediate(operand: str) -> int | None:
    return int(operand[1:]) if _IMMEDIATE.fullmatch(operand) else None


def _register(operand: str) -> str:
    """Return the 64-bit name of a general register, "" for other operands.

    >>> _register("%eax"), _register("%r10d"), _register("%zmm0")
    ('rax', 'r10', '')
    """
    match = _GENERAL.fullmatch(operand)
    if match is None:
        return ""
    number, letters = match.groups()
    return f"r{number}" if number else _SHORT.get(letters, f"r{letters.lstrip('re')}")


_BY_PREFIX = {
    "j": "branch", "ret": "branch", "call": "call", "prefetch": "prefetch", "lea": "address",
}  # fmt: skip
_LOCAL_LABEL = re.compile(r"\.?L(?!__tvm)")
_KERNEL = re.compile(r"main_compute_|tvm_parallel_lambda")
_HELPER = re.compile(r"__tvm_(ffi|set)|__(trunc|extend)|__TVM")
_IMMEDIATE = re.compile(r"\$-?\d{1,19}")
_GENERAL = re.compile(
    r"%(?:r(\d{1,2})[dwb]?|([re]?(?:[abcd]x|[sd]i|bp|sp)|[abcd]l|[sd]il|bpl|spl))"
)
_SHORT = {
    **{f"{letter}l": f"r{letter}x" for letter in "abcd"},
    **{"sil": "rsi", "dil": "rdi", "bpl": "rbp", "spl": "rsp"},
}
_VECTOR = re.compile(r"%[xyz]mm\d")
_REGISTER = re.compile(r"%[xyz]mm(\d{1,2})")
_FMA = re.compile(r"vfn?m(add|sub)")
_ADDITION = re.compile(r"vfn?m(add|sub)|v?(add|max|min|mul)[ps][sdh]")
_SCALAR = re.compile(r"(s[sdh]|sd2si|ss2si|si2s[sd]\w?|vmov[dq])$")
_MOVE = re.compile(r"v?mov(?!mskp|ddup|s[lh]dup)|cmov|kmov|push|pop")
_ZERO = re.compile(r"v?p?xor")
_DIVIDE = re.compile(r"v?(div|sqrt|rcp|rsqrt)")
_SHUFFLE = re.compile(
    r"v?(p?shuf|perm|unpck|punpck|p?blend|insert|extract|pinsr|pextr|align|palign|movs[lh]dup"
    r"|vperm|compress|pcompress|expand|pexpand|pack)"
)
_ARITHMETIC = re.compile(
    r"v?(add|sub|mul|max|min|and|or|andn|cmp|ucomi|comi|round|rndscale|hadd|scalef|getexp|getmant"
    r"|fixupimm|range|reduce)[a-z]*[ps][sdh]"
)
