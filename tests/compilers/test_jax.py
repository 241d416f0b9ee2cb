"""JAX by way of torchax, which is older than the torch that it is imported beside."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

pytest.importorskip("jax", reason="the extra jax is not installed")
torch = pytest.importorskip("torch")

from torch._ops import OpOverloadPacket  # noqa: E402

from graphnet_datasets.compilers.jax import Jax  # noqa: E402


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([1.5, -2.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.scale).relu().sum(0)


@pytest.fixture(autouse=True)
def without_gradients() -> object:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what JAX's own code warns of is its business
        yield


@pytest.mark.slow
def test_other_sizes_are_compiled_once_each() -> None:
    module, compiler = Scaled(), Jax()
    first, second = torch.randn(3, 2), torch.randn(5, 2)
    compiled = compiler.compile(module, {"x": first})
    assert compiler.num_compilations() == 1
    for x, count in ((first, 1), (second, 2), (first + 1, 2), (second + 1, 2)):
        torch.testing.assert_close(compiled(x=x), module(x))
        assert compiler.num_compilations() == count


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool]
)
def test_dtypes_are_kept(dtype: torch.dtype) -> None:
    x = torch.tensor([[0, 1], [3, 2]]).to(dtype)
    compiled = Jax().compile(lambda x: x.flip(0), {"x": x})
    found = compiled(x=x.T)
    assert found.dtype is dtype
    assert torch.equal(found, x.T.flip(0))


@pytest.mark.slow
def test_importing_it_changes_nothing_of_torch() -> None:
    # In a process of its own: here it may have been imported before.
    code = (
        "import sys, torch\n"
        "from torch._ops import OpOverloadPacket\n"
        "from graphnet_datasets.compilers.jax import Jax\n"
        "held = lambda: [OpOverloadPacket.__getattr__, torch._register_device_module,\n"
        "    torch.utils.rename_privateuse1_backend, hasattr(torch, 'jax'),\n"
        "    torch.backends.mha.get_fastpath_enabled(), torch._C._get_privateuse1_backend_name()]\n"
        "before = held()\n"
        "assert Jax.is_available() == (True, ''), Jax.is_available()\n"
        "assert 'torchax' in sys.modules\n"
        "assert held() == before, held()\n"
        "twice = torch.compile(lambda x: 2 * x, backend='eager')\n"
        "assert twice(torch.ones(2)).tolist() == [2, 2]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_operators_without_such_an_overload_say_so_again() -> None:
    Jax.is_available()
    with pytest.raises(AttributeError, match="no overload name 'dimname'"):
        torch.ops.aten.all.dimname  # noqa: B018
    assert "dimname" not in vars(torch.ops.aten.all)
    assert isinstance(torch.ops.aten.all, OpOverloadPacket)
