"""The word that upstream's own tools have for a sample, from nothing but the lines of its block."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(slots=True)
class UpstreamWord:
    """Which of the lines that upstream's tools look for a block has held so far.

    They search whole lines, whoever printed them: no prompt is asked for, and a traceback of
    another library counts. The rules are those of `detect_sample_status` in upstream's
    `analysis_util`, as published in 2026.

    >>> seen = UpstreamWord()
    >>> seen.read_line("log [Datatype][eager]: float32")
    >>> seen.word
    'compile_fail'
    """

    has_eager: bool = False
    has_compiled: bool = False
    has_shape: bool = False
    has_dtype: bool = False
    has_error: bool = False

    def read_line(self, line: str) -> None:
        """Take the next line of the block, its first one included."""
        # One marker a line, the first of this order: a chain of conditions looks for them there.
        if "[Datatype][eager]" in line:
            self.has_eager = True
        elif "[Datatype][compiled]" in line:
            self.has_compiled = True
        elif "[Shape]" in line and "match:True" in line:
            self.has_shape = True
        elif "[DataType]" in line and "match:True" in line:
            self.has_dtype = True
        elif "all_close" in line:  # whatever was compared must have run
            self.has_eager = self.has_compiled = self.has_shape = True
        if "Error:" in line or "Exception:" in line:
            self.has_error = True

    @property
    def word(self) -> str:
        """What upstream's tools call the sample if its block ends here."""
        if not self.has_eager:
            return "eager_fail"
        if not self.has_compiled:
            return "compile_fail"
        if not self.has_shape:
            return "shape_mismatch"
        if not self.has_dtype:
            return "type_mismatch"
        return "runtime_fail" if self.has_error else "correct"
