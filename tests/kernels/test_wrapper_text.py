"""Kernels in the text of a wrapper, which is read and never run."""

from __future__ import annotations

import pytest

from graphnet_datasets.kernels.wrapper_text import read_wrapper

WRAPPER = '''
import os
os.abort()
cpp_fused_exp_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r"""
extern "C" void kernel(const float* a, float* b) { b[0] = exp(a[0]); }
""")
triton_poi_fused_1 = async_compile.triton('triton_poi_fused_1', """
@triton.jit
def triton_poi_fused_1(in_ptr0, out_ptr0, xnumel): pass
""", device_str='cuda')
other = 3

class Runner:
    def call(self, args):
        arg0_1, = args
        extern_kernels.mm(buf0, arg0_1, out=buf1)
        triton_poi_fused_1.run(arg0_1, buf2, 4096, stream=stream0)
        cpp_fused_exp_0(arg0_1, buf0)
        cpp_fused_exp_0(buf0, buf3)
        return (buf3,)
'''


def test_kernels_come_in_the_order_of_their_first_calls_with_text_types_and_calls() -> None:
    kernels, library = read_wrapper(WRAPPER)
    assert [(each.entry, each.language) for each in kernels] == [
        ("triton_poi_fused_1", "triton"),
        ("cpp_fused_exp_0", "c++"),
    ]
    assert kernels[0].source.strip().startswith("@triton.jit")
    assert kernels[0].calls == ("triton_poi_fused_1.run(arg0_1, buf2, 4096, stream=stream0)",)
    assert kernels[1].types == ("const float*", "float*")
    assert kernels[1].calls == ("cpp_fused_exp_0(arg0_1, buf0)", "cpp_fused_exp_0(buf0, buf3)")
    assert library == ["extern_kernels.mm"]


def test_a_kernel_that_nobody_calls_comes_last() -> None:
    text = "k = async_compile.cpp_pybinding([], 'void kernel()')\n"
    ((kernel,), library) = read_wrapper(text)
    assert (kernel.calls, library) == ((), [])


def test_invalid_python_is_refused() -> None:
    with pytest.raises(ValueError, match="The wrapper is not valid Python"):
        read_wrapper("def (")
