"""Offences against the style of the project's prose, found in its sources and pages.

Run as a command to list them, all or those on lines added since a revision:

    python -m tests.prose.counting --since main
    python -m tests.prose.counting --kind fragments
    python -m tests.prose.counting --lower
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORDS = json.loads((Path(__file__).parent / "words.json").read_text())
LIMITS = Path(__file__).parent / "limits.json"
SOURCES = ("graphnet_datasets", "builder", "metrics")
PAGES = ("README.md", "CONTRIBUTING.md", "docs")

PRONOUN_NAMES = frozenset(WORDS["pronoun_names"])
OPENING = re.compile(rf"(?:{'|'.join(WORDS['docstring_openings'])})\b")
PHRASE = re.compile("|".join(WORDS["phrases"]), re.IGNORECASE)
KINDS = (
    "whats", "pronoun names", "fragments", "openings", "phrases in code", "phrases in docs",
)  # fmt: skip
Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Offence:
    """One place that breaks a rule, with the text to rewrite."""

    kind: str
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.text}"


@dataclass(frozen=True)
class Prose:
    """Offences of a tree, and the sizes that their rates refer to."""

    offences: list[Offence]
    docstring_words: int
    bindings: int
    messages: int

    def counts(self) -> dict[str, int]:
        """Return the number of offences of each kind."""
        counter = Counter(offence.kind for offence in self.offences)
        return {kind: counter[kind] for kind in KINDS}


def tracked_files(*patterns: str) -> list[str]:
    """Return the tracked paths that match, relative to the root of the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file())


def measure() -> Prose:
    """Collect the offences of the library, the builder, the metrics and the pages."""
    offences: list[Offence] = []
    words = bindings = messages = 0
    for path in tracked_files(*SOURCES):
        if not path.endswith(".py"):
            continue
        text = (ROOT / path).read_text()
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, Definition):
                count, docstring_offences = _check_docstring(path, node)
                words += count
                offences += docstring_offences
            name = _bound_name(node)
            if name not in (None, "self", "cls"):
                bindings += 1
                if name.lstrip("_") in PRONOUN_NAMES:
                    offences.append(Offence("pronoun names", path, node.lineno, name))  # type: ignore[attr-defined]
            start = _message_start(node)
            if start is not None:
                messages += 1
                if start[0].islower():
                    offences.append(Offence("fragments", path, node.lineno, start))  # type: ignore[attr-defined]
        offences += _check_phrases("phrases in code", path, _prose_lines(text, tree))
    for path in tracked_files(*PAGES):
        if path.endswith(".md"):
            lines = enumerate((ROOT / path).read_text().splitlines(), 1)
            offences += _check_phrases("phrases in docs", path, lines)
    return Prose(offences, words, bindings, messages)


def _check_docstring(path: str, node: Definition) -> tuple[int, list[Offence]]:
    docstring = ast.get_docstring(node)
    if not docstring:
        return 0, []
    line = node.body[0].lineno
    prose = [row for row in docstring.splitlines() if not row.strip().startswith((">>>", "..."))]
    words = re.findall(r"[A-Za-z']+", "\n".join(prose))
    offences = [Offence("whats", path, line, prose[0]) for word in words if word.lower() == "what"]
    if OPENING.match(docstring):
        offences.append(Offence("openings", path, line, prose[0]))
    return len(words), offences


def _bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def _message_start(node: ast.AST) -> str | None:
    """Return the literal text that a raised message begins with, or None."""
    if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args):
        return None
    message = node.exc.args[0]
    if isinstance(message, ast.JoinedStr) and message.values:
        message = message.values[0]
    if isinstance(message, ast.Constant) and isinstance(message.value, str):
        is_name = re.fullmatch(r"[\w.-]+", message.value)  # a package, option or field
        return None if is_name else message.value.strip() or None
    return None


def _prose_lines(text: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of comments and of string literals."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for offset, line in enumerate(node.value.splitlines()):
                yield node.lineno + offset, line


def _check_phrases(kind: str, path: str, lines: Iterator[tuple[int, str]]) -> Iterator[Offence]:
    for number, line in lines:
        if not line.lstrip().startswith((">>>", "...")):
            for _ in PHRASE.finditer(line):
                yield Offence(kind, path, number, line.strip())


def added_lines(revision: str) -> set[tuple[str, int]]:
    """Return the paths and numbers of the lines that were added since a revision."""
    command = ["git", "diff", "-U0", "--no-color", "--no-ext-diff", revision]
    diff = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines: set[tuple[str, int]] = set()
    path = ""
    for row in diff.splitlines():
        if row.startswith("+++ "):
            path = row.removeprefix("+++ b/")
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", row):
            start, length = int(match[1]), int(match[2] or 1)
            lines.update((path, number) for number in range(start, start + length))
    return lines


def main() -> None:
    """List offences, or lower the limits to the present counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--since", metavar="REVISION", help="only lines added since it")
    parser.add_argument("--kind", choices=KINDS, help="only offences of this kind")
    parser.add_argument("--lower", action="store_true", help="lower the limits to the counts")
    options = parser.parse_args()
    prose = measure()
    counts = prose.counts()
    if options.lower:
        limits = json.loads(LIMITS.read_text())
        lowered = {kind: min(count, limits[kind]) for kind, count in counts.items()}
        LIMITS.write_text(json.dumps(lowered, indent=2) + "\n")
        return
    lines = added_lines(options.since) if options.since else None
    for offence in prose.offences:
        if options.kind in (None, offence.kind) and (
            lines is None or (offence.path, offence.line) in lines
        ):
            sys.stdout.write(f"{offence}\n")
    sys.stdout.write(f"{counts}\n")


if __name__ == "__main__":
    main()
