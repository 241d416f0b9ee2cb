"""Fourier transforms and windows."""

ENTRIES = """
bartlett_window kaiser_window: aten torch checked factory
blackman_window hamming_window: aten torch checked factory literals=constant.0.0
fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn: fft checked
    literals=size.1.1.n.s
_fft_c2c _fft_c2r _fft_r2c: aten torch flops=fourier
fft_c2c: prims paddle paddle_grad paddle_args=t.I.s.b paddle_flops=fourier
fft_c2r: prims literals=size.4.4.last_dim_size paddle paddle_grad paddle_args=t.I.s.b.i
    paddle_flops=fourier
fft_fft fft_fft2 fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn
    fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2
    fft_rfftn: aten
fft_fftfreq fft_rfftfreq: aten factory
fft_r2c: prims paddle paddle_grad paddle_args=t.I.s.b.b paddle_flops=fourier
fftfreq rfftfreq: fft checked factory literals=size.0.0.n
fftshift hfft2 hfftn ifftshift ihfft2 ihfftn: fft checked
frame overlap_add: paddle paddle_grad paddle_flops=0
hann_window: aten torch checked factory flops=0 literals=constant.0.0
istft: aten torch Tensor public checked literals=size.64.64.length
stft: aten torch Tensor public VF_differs checked paddle paddle_grad
"""
