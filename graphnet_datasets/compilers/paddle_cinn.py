"""CINN, Paddle's compiler: fuses programs traced by `to_static` and generates their code."""

from __future__ import annotations

from .paddle_to_static import PaddleToStatic


class PaddleCinn(PaddleToStatic):
    """Trace into one program, which CINN compiles."""

    name = "cinn"
    backend = "CINN"

    @classmethod
    def is_available(cls) -> tuple[bool, str]:
        """Return whether the installed Paddle includes CINN, which CPU wheels lack."""
        is_installed, reason = super().is_available()
        if not is_installed:
            return False, reason
        import paddle.base.framework

        if not paddle.base.framework.is_compiled_with_cinn():
            return False, "this paddle was built without CINN"
        return True, ""
