"""`graphnet compilers`: the compilers, and whether they can run here."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .terminal import echo, print_table

app = typer.Typer()


@app.command(
    "compilers",
    epilog="Example: graphnet compilers --framework torch",
)
def print_compilers(
    framework: Annotated[
        str | None, typer.Option(help="Only compilers of this framework: torch or paddle.")
    ] = None,
    with_options: Annotated[
        bool, typer.Option("--options", help="Show the options of each, with their defaults.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one list.")] = False,
) -> None:
    """List the compilers: name, framework, version or the reason it cannot run here, devices."""
    from ..storage.filters import Filters

    Filters(framework=(framework,) if framework else ())  # raises for unknown names
    rows = _rows(framework)
    if as_json:
        echo(json.dumps(rows, indent=2))
        return
    print_table(
        ("name", "framework", "version", "devices", "remark"),
        [
            (
                *(row["name"], row["framework"], row["version"] or "-", " ".join(row["devices"])),
                row["origin"] if row["is_available"] else row["reason"],
            )
            for row in rows
        ],
    )
    if with_options:
        echo("")
        print_table(
            ("name", "option", "default", "meaning"),
            [
                (row["name"], name, json.dumps(option["default"]), option["description"])
                for row in rows
                for name, option in row["options"].items()
            ],
        )


def _rows(framework: str | None) -> list[dict[str, Any]]:
    from ..compilers import list_entries
    from ..errors import CompilerError

    rows = []
    for entry in list_entries():
        if framework not in (None, entry.framework):
            continue
        row: dict[str, Any] = {
            "name": entry.name,
            "framework": entry.framework,
            "version": "",
            "devices": [],
            "is_available": False,
            "reason": "",
            "origin": entry.origin,
            "options": {},
        }
        try:
            compiler = entry.load()
        except CompilerError as error:
            row["reason"] = str(error)
        else:
            is_available, reason = compiler.is_available()
            row |= {
                "version": compiler.version(),
                "devices": list(compiler.devices),
                "is_available": is_available,
                "reason": reason,
                "options": {
                    name: {"default": option.default, "description": option.description}
                    for name, option in compiler.option_table.items()
                },
            }
        rows.append(row)
    return rows
