"""Source code that calls a compiler in a test, without this library if possible."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..benchmark.executors.jobs import CandidateCompiler
from ..compilers import find_entry, resolve_name

_DYNAMO = """
def compile_module(module, inputs):
    compiled = torch.compile(module, {arguments})
    call(compiled, inputs)
    return compiled
"""
_TRACE = """
class Flat(torch.nn.Module):
    def __init__(self, module, inputs):
        super().__init__()
        self.module = module
        self.names = [name for name, each in inputs.items() if isinstance(each, torch.Tensor)]
        self.numbers = {name: each for name, each in inputs.items() if name not in self.names}

    def forward(self, *tensors):
        outputs = self.module(**dict(zip(self.names, tensors)), **self.numbers)
        leaves = torch.utils._pytree.tree_leaves(outputs)
        return tuple(each for each in leaves if isinstance(each, torch.Tensor))


"""
_TORCHSCRIPT = """
def compile_module(module, inputs):
    flat = Flat(module, inputs).eval()
    tensors = tuple(inputs[name] for name in flat.names)
    traced = torch.jit.trace(flat, tensors, check_trace=False, strict=False)
    {freezing}
    return lambda **inputs: traced(*(inputs[name] for name in flat.names))
"""
_ONNXRUNTIME = """
def compile_module(module, inputs):
    flat = Flat(module, inputs).eval()
    tensors = tuple(inputs[name] for name in flat.names)
    program = torch.export.export(flat, tensors, strict=False)
    model = torch.onnx.export(program, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(
        model.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]

    def run(**inputs):
        given = [inputs[name] for name in flat.names]
        arrays = {name: each.contiguous().numpy() for name, each in zip(names, given)}
        return [torch.from_numpy(each) for each in session.run(None, arrays)]

    return run
"""
_OPENVINO = """
def compile_module(module, inputs):
    flat = Flat(module, inputs).eval()
    tensors = tuple(inputs[name] for name in flat.names)
    program = torch.export.export(flat, tensors, strict=False)
    model = openvino.convert_model(program)
    names = [str(name) for name in program.graph_signature.user_inputs]
    places = [next(names.index(name) for name in each.get_names() if name in names)
              for each in model.inputs]
    model.reshape({{each: list(tensors[place].shape)
                   for each, place in zip(model.inputs, places)}})
    compiled = openvino.Core().compile_model(model, "CPU", {config})

    def run(**inputs):
        given = [inputs[name].contiguous().numpy() for name in flat.names]
        results = compiled([given[place] for place in places])
        return [torch.from_numpy(results[each].copy()) for each in compiled.outputs]

    return run
"""
_OURS = """
def compile_module(module, inputs):
    compiler = make_compiler({name!r}, "torch", {options!r})
    return compiler.compile(torch.fx.symbolic_trace(module), inputs)
"""
_OF_A_MODULE = """
def find_compiler():
    return getattr(importlib.import_module({module!r}), {attribute!r})
"""
_OF_A_FILE = """
def find_compiler():
    sys.path.append({folder!r})
    spec = importlib.util.spec_from_file_location("compiler_under_test", {path!r})
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, {attribute!r})
"""
_THEIRS = """

def compile_module(module, inputs):
    compiler, options = find_compiler(), {options!r}
    traced = torch.fx.symbolic_trace(module)
    if isinstance(compiler, type):
        return compiler(options).compile(traced, inputs)
    return compiler(traced, inputs, **options)
"""


def compiling_text(candidate: CandidateCompiler) -> tuple[str, set[str]]:
    """Return the source of a function `compile_module(module, inputs)`, and its imports."""
    options = candidate.options
    is_ours = find_entry(candidate.compiler, candidate.framework).origin == "built in"
    name = candidate.compiler if is_ours else ""
    if name == "inductor":
        return _DYNAMO.format(arguments=_inductor_arguments(options)), set()
    if name in ("aot_eager", "cudagraphs"):
        return _DYNAMO.format(arguments=f"backend={name!r}"), set()
    if name == "torchscript":
        lines = []
        if options.get("freeze", True):
            lines.append("traced = torch.jit.freeze(traced)")
            if options.get("optimize_for_inference", True):
                lines.append("traced = torch.jit.optimize_for_inference(traced)")
        text = _TORCHSCRIPT.format(freezing="\n    ".join(lines) or "pass")
        return _TRACE + text.lstrip("\n"), set()
    if name == "onnxruntime" and not options.get("dynamic"):
        return _TRACE + _ONNXRUNTIME.lstrip("\n"), {"import onnxruntime"}
    if name == "openvino" and not options.get("dynamic"):
        chosen = options.get("precision", "default")
        config = {} if chosen == "default" else {"INFERENCE_PRECISION_HINT": chosen}
        text = _OPENVINO.format(config=config)
        return _TRACE + text.lstrip("\n"), {"import openvino"}
    if is_ours:
        text = _OURS.format(name=name, options=dict(options))
        return text, {"from graphnet_datasets.compilers import make_compiler"}
    entry = find_entry(candidate.compiler, candidate.framework)
    module, _, attribute = resolve_name(entry.reference).rpartition(":")
    if module.endswith(".py"):
        path = Path(module)
        text = _OF_A_FILE.format(folder=str(path.parent), path=module, attribute=attribute)
        imports = {"import importlib.util", "import sys"}
    else:
        text = _OF_A_MODULE.format(module=module, attribute=attribute)
        imports = {"import importlib"}
    return text + _THEIRS.format(options=dict(options)), imports


def _inductor_arguments(options: Mapping[str, Any]) -> str:
    mode = options.get("mode", "default")
    patches = {name: True for name in ("freezing", "cpp_wrapper") if options.get(name)}
    patches |= dict(options.get("config", {}))
    texts = ['backend="inductor"']
    dynamic = options.get("dynamic", "auto")
    if dynamic != "auto":
        texts.append(f"dynamic={dynamic!r}")
    if options.get("fullgraph"):
        texts.append("fullgraph=True")
    if patches:
        presets = "" if mode == "default" else f"**torch._inductor.list_mode_options({mode!r}), "
        texts.append(f"options={{{presets}**{patches!r}}}")
    elif mode != "default":
        texts.append(f"mode={mode!r}")
    return ", ".join(texts)
