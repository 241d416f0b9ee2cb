"""Custom operators that come with a sample: the one file of this library that runs such text.

It does so only where `materialize` was told `trust_remote_code=True`, only after everything else
about the sample has been checked, only for operators that the graph calls, the operator table lacks
and whose source has the recorded hash, and it logs the source before it runs it.

The source defines functions and registers nothing. Each operator gets a namespace of its own, made
of the hash of its definition: it can replace no operator of torch, of the program around it or of
another sample.
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
"""Ends the name of the function that says what the operator gives without computing it."""

_PREFIX = "graphnet_"
_logger = logging.getLogger("graphnet_datasets")
_registered: dict[str, tuple[CustomOperator, Any]] = {}
"""Operators that run in this process by namespace, with their definitions, which torch would drop
otherwise."""


def check_trust(sample: Sample, *, trust_remote_code: bool) -> None:
    """Refuse a sample whose custom operators may not run, or are not what was recorded.

    Raises:
        UntrustedCodeError: the graph calls a custom operator without `trust_remote_code=True`, or
            the source of one does not have the recorded hash.
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
    """Run the source of each custom operator that the graph calls; return them by target.

    An operator that runs in this process already, with the same definition, is not run again.

    Raises:
        UntrustedCodeError: as `check_trust`.
        MaterializeError: a source cannot be run or does not define its operator.
    """
    check_trust(sample, trust_remote_code=trust_remote_code)
    overloads = {}
    for operator in called_custom_operators(sample):
        namespace = _namespace(operator)
        if namespace not in _registered:
            _registered[namespace] = (operator, _run(operator, namespace, sample.id))
        overload = _registered[namespace][1]._opoverload
        for target, each in sample.custom_operators_by_target.items():
            if each is operator:
                overloads[target] = overload
    return overloads


def find_registered(overload: torch._ops.OpOverload) -> CustomOperator | None:
    """Return the definition behind an operator that `register` made, None for any other."""
    found = _registered.get(overload.namespace)
    return None if found is None else found[0]


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
    except Exception as error:  # the text may raise whatever it likes
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
