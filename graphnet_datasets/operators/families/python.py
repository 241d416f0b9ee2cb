"""Python's own operators and functions, and their methods."""

ENTRIES = """
__abs__ __bool__ __complex__ __div__ __float__ __floordiv__ __ge__ __gt__ __iadd__ __idiv__
    __ifloordiv__ __imod__ __imul__ __index__ __int__ __invert__ __ipow__ __isub__ __itruediv__
    __le__ __len__ __lt__ __mod__ __neg__ __pos__ __pow__ __rand__ __rdiv__ __rfloordiv__
    __rlshift__ __rmatmul__ __rmod__ __ror__ __rpow__ __rrshift__ __rtruediv__ __rxor__ __setitem__
    __truediv__: Tensor checked
__add__: Tensor checked box_columns adds
__and__ __or__: aten Tensor checked canonical=logic
__iand__ __ilshift__ __ior__ __irshift__ __ixor__ __lshift__ __rshift__ __xor__: aten Tensor checked
and_ or_ xor: operator kind=pointwise rule@operator=element.bitwise canonical=logic
degrees fabs fsum gamma isqrt radians: math
__eq__: Tensor checked equality rule@Tensor=element.compare
floordiv: operator kind=pointwise rule@operator=number.floor_divide
__getitem__: Tensor checked kind=view shares
iand ilshift imod ior irshift is_ is_not ixor lshift rshift truth: operator
ifloordiv: operator canonical=floordiv
not_: operator canonical=logic
invert: operator kind=pointwise rule@operator=element.invert canonical=logic
ipow: operator kind=pointwise rule@operator=element.power_in_place
isub: operator kind=pointwise subtracts rule@operator=element.subtract_in_place beside@operator
    canonical=add
itruediv: operator kind=pointwise literals=mean.1.1 rule@operator=element.divide_in_place
    beside@operator canonical=mul
len: builtins
mod: operator kind=pointwise rule@operator=number.modulo canonical=floordiv
__mul__: Tensor checked proportional box_columns multiplies canonical=mul
__ne__: Tensor checked equality
pos: operator kind=pointwise shares
__radd__: Tensor checked adds
__rmul__: Tensor checked multiplies
__rsub__ __sub__: Tensor checked subtracts
setitem: operator literals=slice.1.1 any_index order=overwrite
    rule@operator=view.setitem canonical=scatter
"""
