"""Models of packages for paddle, named by module and class.

The packages are installed with `pip install --no-deps`, because they require old versions of other
packages, most of which serve datasets, metrics and command lines. Importing a model needs neither:
packages whose `__init__` imports everything are created without executing it, and absent modules
are replaced by placeholders, whose members cannot be called.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from graphnet_datasets.errors import MissingExtraError

CALL = "()"
"""The key of an override that is a call: `{"()": "module.Name", "argument": 1}`."""

REST = "*"
"""The key of a call's arguments by position."""

MEMBER = "&"
"""The key of an override that is a function or class: `{"&": "module.Name"}`."""


@dataclasses.dataclass(frozen=True)
class Package:
    """A package of models.

    `shells` are the packages whose `__init__` is not executed, "" for the top-level package.
    `absent` are modules that are replaced, since no captured model calls them. Some are not
    installed, and others are installed in a version that is too new for the package.
    `common` are the modules that most models import. `parent` is the package whose folder has the
    top-level package, if it is not installed by itself.
    """

    distribution: str
    source: str
    root: str
    shells: tuple[str, ...] = ("",)
    absent: tuple[str, ...] = ()
    common: tuple[str, ...] = ()
    parent: str = ""


PADDLE = Package("paddlepaddle", "PaddlePaddle/Paddle", "paddle", shells=())

PACKAGES = {
    "paddledet": Package(
        "paddledet", "PaddlePaddle/PaddleDetection", "ppdet", ("", "modeling"),
        ("pycocotools", "motmetrics", "lap", "terminaltables", "Cython", "typeguard", "visualdl",
         "pyclipper", "shapely", "imgaug", "numba", "sklearn_extra", "cython_bbox"),
        ("modeling.backbones", "modeling.necks", "modeling.heads", "modeling.transformers"),
    ),
    "paddlenlp": Package(
        "paddlenlp", "PaddlePaddle/PaddleNLP", "paddlenlp", ("", "data"),
        ("aistudio_sdk", "jieba", "seqeval", "visualdl", "colorlog", "colorama", "paddlefsl",
         "paddle2onnx", "sacremoses", "tool_helpers", "fastapi", "uvicorn", "rarfile", "tiktoken",
         "huggingface_hub", "sentencepiece", "datasets"),
        ("transformers",),
    ),
    "paddlesci": Package(
        "paddlesci", "PaddlePaddle/PaddleScience", "ppsci", ("", "utils"),
        ("h5py", "hydra", "imageio", "meshio", "omegaconf", "pyevtk", "pyvista", "wget",
         "pgl", "vtk", "colorlog", "skimage", "seaborn"),
        ("arch",),
    ),
    "paddleseg": Package(
        "paddleseg", "PaddlePaddle/PaddleSeg", "paddleseg", ("", "models"),
        ("visualdl", "skimage"), ("models.backbones", "models.layers", "models.losses"),
    ),
    "paddlespeech": Package(
        "paddlespeech", "PaddlePaddle/PaddleSpeech", "paddlespeech",
        ("", "t2s", "t2s.models", "t2s.modules"),
        ("librosa", "paddleaudio", "paddlespeech_feat", "yacs", "typeguard", "jsonlines",
         "webrtcvad", "kaldiio", "sentencepiece", "g2p_en", "pypinyin", "paddlespeech_ctcdecoders",
         "textgrid", "timer", "visualdl", "zhon", "loguru", "soundfile", "editdistance", "jieba",
         "sacrebleu", "praatio", "resampy", "nara_wpe", "paddlenlp", "paddleslim", "colorlog",
         "prettytable", "pathos", "flatten_dict", "ffmpeg", "pyworld", "hyperpyyaml", "inflect",
         "opencc", "tiktoken"),
    ),
    "paddlets": Package(
        "paddlets", "PaddlePaddle/PaddleTS", "paddlets", (),
        # imports a name that Python 3.10 removed
        ("paddlets.utils.backtest",
         "pyod", "statsmodels", "pmdarima", "prophet", "ray", "optuna", "chinese_calendar",
         "shap", "tsfresh", "paddle_base", "tabulate", "seaborn", "hyperopt"),
    ),
    "ppgan": Package(
        "ppgan", "PaddlePaddle/PaddleGAN", "ppgan",
        ("", "models", "models.generators", "models.discriminators", "utils"),
        ("librosa", "numba", "imageio", "imageio_ffmpeg", "skimage", "easydict", "munch",
         "natsort", "dlib", "paddle_lpips"),
    ),
    "ppim": Package("ppim", "AgentMaker/Paddle-Image-Models", "ppim", ("", "models")),
    "ppvideo": Package(
        "ppvideo", "PaddlePaddle/PaddleVideo", "paddlevideo",
        ("", "modeling", "modeling.backbones"),
        ("decord", "av", "lmdb", "paddlenlp", "SimpleITK", "pycocotools", "numba"),
        parent="ppvideo",
    ),
}  # fmt: skip
"""The packages by their names in catalogs."""


class _Placeholder:
    """A member of an absent module: an unused base class or function, or a decorator.

    A decorator, with or without options, returns the decorated function. Any other call raises
    `ImportError`, so that no graph depends on an absent package.
    """

    def __new__(cls, *args: Any, **options: Any) -> Any:
        is_decorator = len(args) == 1 and callable(args[0]) and not options
        return args[0] if is_decorator else super().__new__(cls)

    def __init__(self, *_args: Any, **_options: Any) -> None:
        pass

    def __call__(self, function: Any = None, *_args: Any, **_options: Any) -> Any:
        if callable(function):
            return function
        raise ImportError(
            "The model calls a package that is not installed. Install it, or remove the model from "
            "the catalog."
        )


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of absent packages, before all other finders, and creates placeholders."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    def has(self, module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in self._names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if not self.has(fullname):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        vars(module)["__getattr__"] = functools.partial(_member, spec.name)
        return module

    def exec_module(self, module: ModuleType) -> None:
        del module


@contextlib.contextmanager
def _replaced(names: Sequence[str]) -> Iterator[None]:
    """Replace packages by placeholders during the block, whether installed or not."""
    finder = _Absent(names)

    def remove() -> dict[str, ModuleType]:
        return {name: sys.modules.pop(name) for name in list(sys.modules) if finder.has(name)}

    modules = remove()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        remove()
        sys.modules.update(modules)


def _member(module: str, name: str) -> type[_Placeholder]:
    if name.startswith("__"):
        raise AttributeError(f"module `{module}` has no attribute `{name}`")
    return type(name, (_Placeholder,), {})


@functools.cache
def prepare(package: Package) -> None:
    """Create the packages that are not executed.

    Raises:
        MissingExtraError: the package is not installed.
    """
    spec = importlib.util.find_spec(package.parent or package.root)
    if spec is None or not spec.submodule_search_locations:
        purpose = f"Capturing models of {package.distribution}"
        raise MissingExtraError(package.distribution, "catalogs", purpose)
    folder = Path(spec.submodule_search_locations[0])
    if package.parent:
        folder /= package.root
    for shell in package.shells:
        name = ".".join(filter(None, (package.root, shell)))
        module = ModuleType(name)
        vars(module)["__version__"] = ""  # some packages import it
        module.__path__ = [str(folder.joinpath(*shell.split(".")))]
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
        sys.modules[name] = module


def preload(package: Package) -> None:
    """Import the modules that most models of a package import.

    Raises:
        MissingExtraError: the package is not installed.
    """
    prepare(package)
    with _replaced(package.absent):
        for module in package.common:
            importlib.import_module(f"{package.root}.{module}")


def member(package: Package, path: str) -> Callable[..., Any]:
    """Return a function or class of a package by its path below the package.

    Raises:
        KeyError: the package has no such module or member.
        MissingExtraError: the package is not installed.
    """
    prepare(package)
    module, _, name = f"{package.root}.{path}".rpartition(".")
    try:
        with _replaced(package.absent):
            return getattr(importlib.import_module(module), name)
    except AttributeError:
        raise KeyError(path) from None
    except ModuleNotFoundError as error:
        if error.name == module:
            raise KeyError(path) from None
        raise


def resolve(value: Any, find: Callable[[str], Callable[..., Any]]) -> Any:
    """Return an override with its calls and members replaced by the named objects.

    >>> resolve([{"()": "int", "*": ["12"]}, {"base": 2}], {"int": int}.__getitem__)
    [12, {'base': 2}]
    >>> resolve({"&": "int"}, {"int": int}.__getitem__)
    <class 'int'>
    """
    if isinstance(value, dict):
        if MEMBER in value:
            return find(value[MEMBER])
        values = {key: resolve(item, find) for key, item in value.items()}
        if CALL not in values:
            return values
        function = find(values.pop(CALL))
        return function(*values.pop(REST, ()), **values)
    if isinstance(value, (list, tuple)):
        return type(value)(resolve(item, find) for item in value)
    return value
