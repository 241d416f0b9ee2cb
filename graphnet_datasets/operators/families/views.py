"""Views, copies and conversions of tensors."""

ENTRIES = """
H: attribute kind=view shares
T: attribute kind=view shares moving linear_in_weight
adjoint moveaxis: aten torch Tensor checked kind=view shares
alias: aten checked flops=0 folded kind=view shares same_elements moving linear_in_weight
    box_columns in_order
alias_copy column_stack detach_copy dstack row_stack t_copy transpose_copy view_as_complex_copy
    view_as_real_copy: aten torch checked
as_complex: paddle paddle_grad paddle_args=t paddle_flops=0
as_real multiplex: paddle paddle_grad paddle_flops=0
as_strided: aten* torch* Tensor* checked aliases_ strided* kind=view shares sized
    literals=size.1.2.size.stride moving
as_strided_copy: aten torch checked flops=0 strided
atleast_1d atleast_2d atleast_3d: aten torch public VF_differs checked flops=0 shares
bfloat16: Tensor checked cast follows_strides kind=pointwise passes_on shares to_float
    linear_in_weight box_columns keeps_shape rule@Tensor=copy.into_bfloat16 computed@Tensor
block_diag: aten torch public VF_differs checked flops=0
bool: Tensor builtins checked cast follows_strides kind=pointwise shares rule@Tensor=copy.into_bool
    computed@Tensor
bool_: shape_giving
broadcast_in_dim collapse collapse_view device_put rev split_dim view_of view_of_dtype: prims
broadcast_tensors: aten torch public VF_differs checked kind=view shares shares_all paddle
    paddle_grad paddle_args=T paddle_flops=0
broadcast_to: aten torch Tensor checked flops=0 kind=view shares sized
    literals=expand.1.64.size.shape.sizes moving shape_taking linear_in_weight box_columns
byte: Tensor checked cast follows_strides kind=pointwise shares
cartesian_prod: aten torch public VF_differs limit=grid
cast: kind=pointwise passes_on shares moving linear_in_weight box_columns in_order paddle*
    paddle_grad paddle_args=t.d paddle_flops=0
_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short
    _chunk_cat _conj_copy _neg_view_copy _stack: aten torch
cat: aten prims torch checked flops=0 moving linear_in_weight box_columns rule@torch=copy.cat
cdouble cfloat: Tensor checked cast shares
chalf: aten Tensor checked cast
char: Tensor checked cast follows_strides shares
chunk: aten torch Tensor checked limit=split_count kind=view shares moving shape_taking
    linear_in_weight splits rule@Tensor,torch=view.chunk
clone: aten prims torch Tensor foreach checked flops=0 folded kind=pointwise passes_on same_elements
    moving linear_in_weight box_columns keeps_shape in_order rule@Tensor,torch=copy.clone
combinations: aten torch limit=grid
concat: aten torch checked moving linear_in_weight box_columns paddle paddle_grad paddle_args=T.it
    paddle_flops=0 rule@torch=copy.cat canonical=cat
concatenate: aten torch checked moving box_columns canonical=cat
_conj: aten torch Tensor checked@Tensor,aten,torch
conj: aten prims torch Tensor checked shares paddle paddle_grad paddle_args=t paddle_flops=pointwise
_conj_physical: aten torch Tensor
conj_physical: aten* prims torch* Tensor* checked
contiguous: aten Tensor checked kind=view passes_on shares same_elements moving linear_in_weight
    box_columns keeps_shape in_order rule@Tensor=copy.contiguous
copy: aten* Tensor_ foreach* checked flops*=0 only_writes_ folded_ reads_none kind=pointwise
copy_to memcpy_d2h memcpy_h2d npu_identity partial_concat partial_sum trans_layout: paddle
    paddle_flops=0
cpu cuda: Tensor checked cast shares same_elements moving
data: attribute shares
detach: aten* torch* Tensor* checked aliases_ folded* kind=view shares same_elements moving
    linear_in_weight box_columns keeps_shape in_order rule@Tensor=view.detach
diag: aten torch Tensor checked paddle paddle_grad paddle_args=t.i.fi
diag_embed: aten torch Tensor checked flops=0 paddle paddle_args=t.i.i.i
diagflat fliplr flipud: aten torch Tensor checked
diagonal: aten torch linalg Tensor checked kind=view shares moving paddle paddle_grad
    paddle_args=t.i.i.i paddle_view
diagonal_copy permute_copy slice_copy split_copy split_with_sizes_copy squeeze_copy unbind_copy
    unfold_copy unsqueeze_copy: aten torch checked flops=0
double: Tensor checked cast follows_strides kind=pointwise shares to_float linear_in_weight
    box_columns keeps_shape rule@Tensor=copy.into_float64 computed@Tensor
dsplit hsplit vsplit: aten torch Tensor checked limit=split_count kind=view shares
expand: aten Tensor checked kind=view passes_on shares same_keys sized
    literals=expand.1.64.size.shape.sizes moving shape_taking linear_in_weight box_columns paddle
    paddle_grad paddle_args=t.ItT paddle_flops=0 rule@Tensor=view.expand
expand_as: aten Tensor checked kind=view shares moving linear_in_weight box_columns paddle
    paddle_grad paddle_args=t.t.Ii paddle_flops=0 rule@Tensor=view.expand_as
expand_copy: aten torch checked flops=0 literals=expand.1.64.size.shape.sizes
flatten: aten torch Tensor checked kind=view passes_on shares same_keys moving linear_in_weight
    box_columns in_order paddle* paddle_grad paddle_args=t.i.i paddle_flops=0 paddle_view
    paddle_any_axis rule@Tensor,torch=view.flatten
flip: aten torch Tensor checked flops=0 moving linear_in_weight paddle paddle_grad paddle_args=t.I
    paddle_flops=0 canonical=flip
float: Tensor builtins checked cast follows_strides kind=pointwise passes_on shares to_float
    linear_in_weight box_columns keeps_shape rule@Tensor=copy.into_float32 computed@Tensor
float_power: aten* torch Tensor* checked
getitem: operator kind=view passes_on shares same_keys reads_some sized literals=slice.1.64
    any_index moving linear_in_weight rule@operator=view.getitem
half: Tensor checked cast follows_strides kind=pointwise passes_on shares to_float linear_in_weight
    box_columns keeps_shape rule@Tensor=copy.into_float16 computed@Tensor
hstack vstack: aten torch checked moving
imag real: aten prims torch attribute checked kind=view shares paddle paddle_grad paddle_args=t
    paddle_flops=pointwise
int: Tensor builtins checked cast follows_strides kind=pointwise shares same_elements moving
    in_order rule@Tensor=copy.into_int32 computed@Tensor
ipu mtia: Tensor checked
lift: flops=0 folded
lift_fresh: aten checked flops=0 folded shares same_elements moving box_columns in_order
lift_fresh_copy: aten checked flops=0 folded
long: Tensor checked cast follows_strides kind=pointwise shares same_elements moving in_order
    rule@Tensor=copy.into_int64 computed@Tensor
mH: aten attribute checked kind=view shares
mT: aten attribute checked kind=view shares moving linear_in_weight
meshgrid: aten torch public VF_differs checked limit=grid shares shares_all paddle paddle_grad
    paddle_args=T paddle_flops=0 rule@torch=view.meshgrid
movedim: aten torch Tensor checked kind=view shares moving linear_in_weight
narrow: aten torch Tensor checked kind=view shares reads_some sized literals=slice.2.64.start.length
    moving shape_taking linear_in_weight
narrow_copy: aten torch Tensor checked flops=0
_neg_view: aten torch Tensor checked@Tensor,torch
numpy_T: aten checked
permute: aten torch Tensor checked kind=view passes_on shares same_keys moving linear_in_weight
    rule@Tensor,torch=view.permute
ravel: aten torch Tensor checked kind=view shares moving
repeat: aten Tensor checked flops=0 sized literals=repeat.1.64.repeats.dims moving shape_taking
    linear_in_weight box_columns rule@Tensor=copy.repeat
reshape: aten prims torch Tensor checked kind=view passes_on shares same_keys sized
    literals=reshape.1.64.size.shape.sizes moving shape_taking linear_in_weight box_columns in_order
    paddle* paddle_grad paddle_args=t.EItT paddle_flops=0 paddle_view rule@Tensor,torch=view.reshape
_reshape_alias: flops=0 kind=view shares
reshape_as: aten Tensor checked kind=view shares moving rule@Tensor=view.reshape_as
resolve_conj resolve_neg: aten torch Tensor checked shares
reverse: moving paddle paddle_grad paddle_args=t.i paddle_flops=0
roll: aten torch Tensor checked flops=0 literals=constant.1.1.shifts moving shape_taking
    linear_in_weight paddle paddle_grad paddle_args=t.ItT.EI paddle_flops=0 rule@torch=copy.roll
    canonical=roll
rot90: aten torch Tensor checked flops=0 linear_in_weight
share_data: shares moving linear_in_weight box_columns in_order paddle_view
short: Tensor checked cast follows_strides kind=pointwise shares moving
slice: aten checked kind=view shares same_keys reads_some sized
    literals=slice.2.3.start.end.starts.ends moving shape_taking linear_in_weight paddle paddle_grad
    paddle_args=t.I.ItT.ItT.I.EI paddle_flops=0 paddle_view rule@aten=view.take_slice
split: aten torch Tensor public VF_differs checked limit=split_size kind=view shares sized
    literals=parts.1.1.split_size_or_sections.split_size.sections moving shape_taking
    linear_in_weight splits paddle paddle_grad paddle_args=t.ItT.it paddle_flops=0
    rule@Tensor,torch=view.split
split_with_num: kind=view shares moving linear_in_weight splits paddle paddle_grad
    paddle_args=t.i.it paddle_flops=0
split_with_sizes: aten torch Tensor checked kind=view shares sized
    literals=parts.1.1.split_size_or_sections.split_size.sections splits
squeeze: aten* prims torch Tensor* checked aliases_ folded kind=view passes_on shares same_keys
    moving linear_in_weight box_columns paddle* paddle_grad paddle_args=t.EItT paddle_flops=0
    paddle_view paddle_any_axis rule@Tensor,torch=view.squeeze
stack: aten torch checked flops=0 moving linear_in_weight box_columns paddle paddle_grad
    paddle_args=T.i paddle_flops=0 rule@torch=copy.stack canonical=cat
strided_slice: kind=view shares moving shape_taking linear_in_weight paddle paddle_grad
    paddle_args=t.I.ItT.ItT.ItT paddle_flops=0 paddle_view
swapaxes: aten* torch Tensor* checked kind=view shares moving linear_in_weight
swapdims: aten* torch Tensor* checked aliases_ kind=view shares
t: aten* torch Tensor* checked aliases_ kind=view shares same_keys moving linear_in_weight
    rule@Tensor,torch=view.turn
tensor_split: aten torch Tensor checked limit=split_count kind=view shares
    literals=parts.1.1.split_size_or_sections.split_size.sections splits
tile: aten torch Tensor checked sized literals=repeat.1.64.repeats.dims moving shape_taking
    linear_in_weight box_columns paddle paddle_grad paddle_args=t.ItT paddle_flops=0
to: aten Tensor checked flops=0 folded kind=pointwise passes_on shares same_elements moving
    linear_in_weight box_columns keeps_shape in_order rule@Tensor=copy.to computed@Tensor
_to_copy: aten checked@aten flops=0 folded passes_on same_elements sized moving linear_in_weight
    box_columns in_order
_to_dense to_dense: aten Tensor
transpose: aten* prims torch Tensor* checked aliases_ kind=view passes_on shares same_keys moving
    linear_in_weight paddle* paddle_grad paddle_args=t.EI paddle_flops=0 paddle_view
    rule@Tensor,torch=view.transpose
tril triu: aten* torch Tensor* checked flops*=0 kind=pointwise moving paddle* paddle_grad
    paddle_args=t.i paddle_flops=0 rule@Tensor,torch=mask.triangle canonical=where
type: Tensor checked follows_strides kind=pointwise passes_on shares
type_as: aten Tensor checked follows_strides kind=pointwise passes_on shares moving linear_in_weight
    box_columns keeps_shape in_order rule@Tensor=copy.like_other computed@Tensor
unbind: aten torch Tensor checked limit=parts kind=view shares moving linear_in_weight unbinds
    paddle paddle_grad paddle_args=t.i paddle_flops=0 paddle_view rule@Tensor,torch=view.unbind
unflatten: aten torch Tensor checked kind=view passes_on shares same_keys sized
    literals=reshape.2.64.sizes.unflattened_size moving shape_taking linear_in_weight
unfold: aten functional Tensor checked kind=view shares sized literals=constant.1.3 moving paddle
    paddle_grad paddle_args=t.I.I.I.I paddle_flops=0
unsafe_chunk: aten torch Tensor shares
unsafe_split: aten torch Tensor flops=0 shares
    literals=parts.1.1.split_size_or_sections.split_size.sections
unsafe_split_with_sizes: aten torch Tensor flops=0 shares
_unsafe_view: aten checked@aten flops=0 aliases kind=view passes_on shares sized
    literals=reshape.1.64.size.shape.sizes moving box_columns
unsqueeze: aten* torch Tensor* checked aliases_ folded kind=view passes_on shares same_keys moving
    linear_in_weight box_columns paddle* paddle_grad paddle_args=t.ItT paddle_flops=0 paddle_view
    rule@Tensor,torch=view.unsqueeze
view: aten Tensor checked folded kind=view passes_on shares same_keys sized
    literals=reshape.1.64.size.shape.sizes moving shape_taking linear_in_weight box_columns in_order
    rule@Tensor=view.view
view_as: aten Tensor checked kind=view shares moving linear_in_weight rule@Tensor=view.view_as
view_as_complex: aten torch checked flops=pointwise kind=view shares
view_as_real: aten torch checked kind=view shares
view_copy: aten torch checked flops=0 literals=reshape.1.64.size.shape.sizes
view_dtype view_shape: paddle paddle_grad paddle_flops=0 paddle_view
view_slice: paddle paddle_flops=0 paddle_view
xpu: Tensor checked cast
"""
