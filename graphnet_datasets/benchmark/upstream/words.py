"""The status that upstream's tools assign to a sample, derived from the lines of its block."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(slots=True)
class UpstreamWord:
    """The markers seen so far among those that upstream's tools search for.

    Upstream searches whole lines regardless of their origin: a prompt is not required, and
    tracebacks of other libraries match as well. The rules are those of `detect_sample_status` in
    upstream's `analysis_util`, as published in 2026.

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
        """Process the next line of the block; call this for the first line too."""
        # Upstream uses the same `if`/`elif` chain, so only the first matching marker of a line
        # counts.
        if "[Datatype][eager]" in line:
            self.has_eager = True
        elif "[Datatype][compiled]" in line:
            self.has_compiled = True
        elif "[Shape]" in line and "match:True" in line:
            self.has_shape = True
        elif "[DataType]" in line and "match:True" in line:
            self.has_dtype = True
        elif "all_close" in line:  # outputs can only be compared after both arms ran
            self.has_eager = self.has_compiled = self.has_shape = True
        if "Error:" in line or "Exception:" in line:
            self.has_error = True

    @property
    def word(self) -> str:
        """The status that upstream's tools report if the block ends here."""
        if not self.has_eager:
            return "eager_fail"
        if not self.has_compiled:
            return "compile_fail"
        if not self.has_shape:
            return "shape_mismatch"
        if not self.has_dtype:
            return "type_mismatch"
        return "runtime_fail" if self.has_error else "correct"
