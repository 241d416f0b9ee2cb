"""Finding compilers by name, by reference and by entry point."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from graphnet_datasets.compilers import (
    Compiler,
    find_entry,
    list_entries,
    make_compiler,
    register_compiler,
    registry,
)
from graphnet_datasets.errors import (
    CompilerError,
    CompilerUnavailableError,
    MissingExtraError,
    UnknownCompilerError,
)
from tests.distributions import write_distribution


class Doubling(Compiler):
    """Returns twice what the module gives."""

    name = "doubling"

    def compile(
        self,
        module: Callable[..., Any],
        example_inputs: Mapping[str, Any],  # noqa: ARG002
    ) -> Callable[..., Any]:
        return lambda **inputs: 2 * module(**inputs)


class NeverHere(Doubling):
    """A compiler whose package is not installed."""

    name = "never"
    package = "no-such-package"
    module = "no_such_package"
    extra = "never"


def scaling(
    module: Callable[..., Any], example_inputs: Mapping[str, Any], factor: int = 1
) -> Callable[..., Any]:
    """Compile by scaling what the module gives."""
    assert example_inputs == {"x": 1}
    return lambda **inputs: factor * module(**inputs)


NOT_A_COMPILER = 3


@pytest.fixture(autouse=True)
def forgotten_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


def add_one(x: int) -> int:
    return x + 1


def test_a_class_is_registered_and_made() -> None:
    assert register_compiler("mine", Doubling) is Doubling
    entry = find_entry("mine")
    assert (entry.origin, entry.reference) == ("registered", f"{__name__}:Doubling")
    assert make_compiler("mine").compile(add_one, {"x": 1})(x=1) == 4
    assert entry in list_entries()


def test_a_function_is_a_compiler_too_and_takes_options() -> None:
    register_compiler("scaling", scaling)
    compiler = make_compiler("scaling", options={"factor": 5})
    assert compiler.options == {"factor": 5}
    assert compiler.compile(add_one, {"x": 1})(x=1) == 10


def test_registering_works_as_a_decorator() -> None:
    assert register_compiler("mine")(Doubling) is Doubling
    assert make_compiler("mine").name == "doubling"


def test_a_reference_needs_no_registration(tmp_path: Path) -> None:
    assert make_compiler(f"{__name__}:Doubling").name == "doubling"
    source = tmp_path / "own.py"
    source.write_text("def identity(module, example_inputs):\n    return module\n")
    assert make_compiler(f"{source}:identity").compile(add_one, {})(x=1) == 2


def test_a_compiler_of_a_script_is_found_by_its_file(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from graphnet_datasets.compilers import find_entry, register_compiler\n"
        "def identity(module, example_inputs):\n"
        "    return module\n"
        "if __name__ == '__main__':\n"
        "    register_compiler('mine', identity)\n"
        "    print(find_entry('mine').reference)\n"
    )
    found = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert found == f"{script.resolve()}:identity"
    assert make_compiler(found).compile(add_one, {})(x=1) == 2


def test_a_name_is_given_once() -> None:
    for name in ("eager", "mine"):
        if name == "mine":
            register_compiler("mine", Doubling)
        with pytest.raises(CompilerError) as error:
            register_compiler(name, scaling)
        assert str(error.value) == (
            f"A compiler `{name}` for torch exists already. Choose another name or pass "
            "`replace=True`."
        )
    register_compiler("mine", scaling, replace=True)
    assert find_entry("mine").reference.endswith(":scaling")
    register_compiler("eager", Doubling, framework="paddle", replace=True)
    assert find_entry("eager", "paddle").origin == "registered"
    assert find_entry("eager").origin == "built in"


def test_compilers_unknown_to_other_processes_are_refused() -> None:
    def local(module: Any, example_inputs: Any) -> Any:  # noqa: ARG001
        return module

    with pytest.raises(CompilerError, match="is not defined at the top level"):
        register_compiler("local", local)


def test_an_interactive_definition_is_refused() -> None:
    program = (
        "from graphnet_datasets.compilers import register_compiler\n"
        "def mine(module, example_inputs): return module\n"
        "register_compiler('mine', mine)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stderr.strip().endswith(
        "The compiler `mine` was defined interactively, so worker processes cannot import it. "
        "Write it into a file and import it from there."
    )


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(UnknownCompilerError) as error:
        find_entry("nothing")
    message = str(error.value)
    assert message.startswith("There is no compiler `nothing` for torch. There are: ")
    assert "eager" in message
    assert "inductor" in message
    assert message.endswith("or name it as `module:attribute`.")


def test_a_file_without_the_name_is_distinguished_from_a_name() -> None:
    with pytest.raises(UnknownCompilerError) as error:
        make_compiler("compilers/mine.py")
    assert str(error.value) == (
        "`compilers/mine.py` is a file. Append the name of the compiler, as in "
        "`compilers/mine.py:MyCompiler`."
    )


def test_an_attribute_that_a_module_lacks_is_named() -> None:
    reference = f"{__name__}:Missing"
    with pytest.raises(CompilerError) as error:
        make_compiler(reference)
    assert str(error.value).startswith(
        f"The compiler `{reference}` cannot be imported: `{__name__}` has no `Missing`."
    )


@pytest.mark.parametrize(
    ("reference", "cause"),
    [
        ("no_such_module:Mine", "ModuleNotFoundError"),
        ("/no/such/file.py:mine", "FileNotFoundError"),
    ],
)
def test_a_reference_that_leads_nowhere_is_named(reference: str, cause: str) -> None:
    with pytest.raises(CompilerError) as error:
        make_compiler(reference)
    message = str(error.value)
    assert message.startswith(f"The compiler `{reference}` cannot be imported: {cause}: ")
    assert message.endswith(
        "Write it as `module:attribute` with a module that Python finds, or as "
        "`/path/to/file.py:attribute`."
    )


def test_a_file_with_a_fault_is_to_be_corrected(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import no_such_package\n")
    with pytest.raises(CompilerError) as error:
        make_compiler(f"{path}:mine")
    assert str(error.value) == (
        f"The compiler `{path}:mine` cannot be imported: ModuleNotFoundError: No module named "
        "'no_such_package'. Correct the file, or install the packages that it imports."
    )


def test_objects_that_are_no_compiler_are_refused() -> None:
    with pytest.raises(CompilerError) as error:
        make_compiler(f"{__name__}:NOT_A_COMPILER")
    assert str(error.value) == (
        "The compiler `NOT_A_COMPILER` is 3, which is neither a subclass of "
        "`graphnet_datasets.compilers.Compiler` nor a function."
    )


def test_an_unavailable_compiler_names_the_package() -> None:
    assert NeverHere.version() == ""
    with pytest.raises(CompilerUnavailableError) as error:
        make_compiler(f"{__name__}:NeverHere")
    assert str(error.value) == (
        f"The compiler `{__name__}:NeverHere` cannot run here: `no-such-package` is not installed "
        "(pip install 'graphnet-datasets[never]')."
    )


def test_a_missing_framework_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = registry.importlib.util.find_spec
    monkeypatch.setattr(
        registry.importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "torch" else find_spec(name, *rest),
    )
    with pytest.raises(CompilerUnavailableError) as error:
        make_compiler("inductor")
    assert str(error.value) == "`torch` is not installed (pip install 'graphnet-datasets[torch]')."
    assert not isinstance(error.value, MissingExtraError)


@pytest.fixture
def installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A distribution with two entry points, as `pip install` leaves it."""
    (tmp_path / "entry_point_example.py").write_text(
        "def identity(module, example_inputs):\n    return module\n"
    )
    names = ("found", "paddle.found", "eager")
    entry_points = dict.fromkeys(names, "entry_point_example:identity")
    write_distribution(tmp_path, "entry-point-example", registry.ENTRY_POINT_GROUP, entry_points)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "entry-point-example"
    sys.modules.pop("entry_point_example", None)


def test_entry_points_do_not_replace_builtin_compilers(installed_package: str) -> None:
    assert find_entry("found").origin == installed_package
    assert find_entry("found", "paddle").framework == "paddle"
    assert find_entry("eager").origin == "built in"
    assert make_compiler("found").compile(add_one, {})(x=1) == 2
    entries = list_entries()
    assert sum(entry.name == "eager" and entry.framework == "torch" for entry in entries) == 1
    assert any(entry.origin == installed_package for entry in entries)
