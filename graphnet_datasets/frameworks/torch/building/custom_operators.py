"""Execution of custom operator source code, in the only module that runs code from samples.

Source code runs only with `trust_remote_code=True`, after all other checks of the sample, and only
for custom operators that the graph calls and whose source has the recorded hash. The source is
logged before it runs.

The source defines functions and registers nothing. Each operator is registered in its own
namespace, named after a hash of its definition, so it cannot replace an operator of torch, of the
calling program or of another sample.
"""

from __future__ import annotations

import hashlib
import linecache
import logging
from collections.abc import Mapping
from typing import Any

import torch

from ....errors import MaterializeError, UntrustedCodeError
from ....sample import CustomOperator, Sample
from .entries import called_custom_operators

FAKE_SUFFIX = "_fake"
"""Suffix of the fake function, which computes result shapes without elements."""

_PREFIX = "graphnet_"
_logger = logging.getLogger("graphnet_datasets")
_registered: dict[str, tuple[CustomOperator, Any]] = {}
"""Registered operators by namespace, with their definitions, which torch would otherwise free."""


def check_trust(sample: Sample, *, trust_remote_code: bool) -> None:
    """Reject custom operators that are not trusted or were modified.

    Raises:
        UntrustedCodeError: If the graph calls a custom operator without `trust_remote_code=True`,
            or its source does not have the recorded hash.
    """
    for operator in called_custom_operators(sample):
        if not trust_remote_code:
            raise UntrustedCodeError(
                f"`{sample.id}` calls the custom operator `{operator.name}`, whose source came "
                "with the sample and would run on this machine. Read it "
                "(`sample.custom_operators`); if you trust it, pass `trust_remote_code=True` "
                "(`--trust-remote-code`), otherwise skip the sample."
            )
        if not operator.is_intact:
            raise UntrustedCodeError(
                f"The source of the custom operator `{operator.name}` of `{sample.id}` does not "
                f"have the recorded hash {operator.source_hash[:16]}…: it was changed after it was "
                "captured. Fetch the sample again, or skip it."
            )


def register(sample: Sample, *, trust_remote_code: bool) -> Mapping[str, Any]:
    """Run the source of each custom operator that the graph calls; return the operators by target.

    Operators already registered in this process with the same definition are reused.

    Raises:
        UntrustedCodeError: As in `check_trust`.
        MaterializeError: If a source fails to run or does not define its operator.
    """
    check_trust(sample, trust_remote_code=trust_remote_code)
    overloads = {}
    for operator in called_custom_operators(sample):
        namespace = _namespace(operator)
        if namespace not in _registered:
            _registered[namespace] = (operator, _run(operator, namespace, sample.id))
        overload = _registered[namespace][1]._opoverload
        for target, custom in sample.custom_operators_by_target.items():
            if custom is operator:
                overloads[target] = overload
    return overloads


def find_registered(overload: torch._ops.OpOverload) -> CustomOperator | None:
    """Return the definition of an operator registered by `register`, or None."""
    registration = _registered.get(overload.namespace)
    return None if registration is None else registration[0]


def _namespace(operator: CustomOperator) -> str:
    definition = "\0".join((operator.name, operator.schema, operator.source))
    digest = hashlib.sha256(definition.encode(errors="surrogatepass")).hexdigest()
    return _PREFIX + digest[:24]


def _run(operator: CustomOperator, namespace: str, sample_id: str) -> Any:
    _logger.warning(
        "Running the source of the custom operator `%s` (SHA-256 %s) that came with `%s`:\n%s",
        operator.name,
        operator.source_hash,
        sample_id,
        operator.source,
    )
    file = f"<custom operator {operator.name} {operator.source_hash[:16]}>"
    linecache.cache[file] = (
        len(operator.source),
        None,
        operator.source.splitlines(keepends=True),
        file,
    )
    name = operator.name.partition("::")[2]
    scope: dict[str, Any] = {"__name__": f"{_PREFIX}custom_operators.{namespace}"}
    definition: Any
    try:
        exec(compile(operator.source, file, "exec", dont_inherit=True), scope)  # noqa: S102 - trusted
        definition = torch.library.custom_op(
            f"{namespace}::{name}",
            scope[name],
            mutates_args=_written_arguments(operator.schema),
            schema=operator.schema,
        )
        fake = scope.get(name + FAKE_SUFFIX)
        if fake is not None:
            definition.register_fake(fake)
    except Exception as error:  # the source may raise any exception
        reason = f"{type(error).__name__}: {error}".rstrip(".")
        raise MaterializeError(
            f"The source of the custom operator `{operator.name}` of `{sample_id}` does not define "
            f"it: {reason}. It must define the function `{name}` and may define "
            f"`{name}{FAKE_SUFFIX}`; capture the sample again."
        ) from error
    return definition


def _written_arguments(schema: str) -> tuple[str, ...]:
    parsed = torch._C.parse_schema(f"graphnet::operator{schema}")
    return tuple(
        argument.name
        for argument in parsed.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    )
