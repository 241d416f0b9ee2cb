"""Losses and metrics."""

ENTRIES = """
accuracy cal_aux_loss crf_decoding ctc_align edit_distance hsigmoid_loss margin_cross_entropy
    viterbi_decode warprnnt: paddle
bce_loss: paddle* paddle_grad paddle_args=t.t paddle_alike
binary_cross_entropy mse_loss smooth_l1_loss: aten functional C_nn checked flops=pointwise
binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss kl_div
    margin_ranking_loss poisson_nll_loss triplet_margin_loss: aten torch functional checked
cross_entropy: functional checked torch_index=1.target/table:0.input/axis:1
cross_entropy_loss nll_loss_nd: aten C_nn checked
cross_entropy_with_softmax: paddle_index=1.label/table:0.logits/axis:-1 paddle* paddle_grad
    paddle_args=t.t.b.b.b.i.i
ctc_loss: aten torch functional
_ctc_loss: aten torch
gaussian_nll_loss multilabel_soft_margin_loss triplet_margin_with_distance_loss: functional checked
hinge_loss label_smooth log_loss warpctc yolo_loss: paddle paddle_grad
huber_loss: aten functional C_nn checked flops=pointwise paddle paddle_grad paddle_args=t.t.f
    paddle_alike
identity_loss: paddle*
kldiv_loss: paddle paddle_grad paddle_args=t.t.s.b paddle_alike
l1_loss soft_margin_loss: aten functional C_nn checked
linear_cross_entropy: functional
multi_margin_loss multilabel_margin_loss: aten functional C_nn
multilabel_margin_loss_forward: aten
nll_loss: aten functional C_nn checked torch_index=1.target/table:0.input/axis:1 paddle paddle_grad
nll_loss2d: aten C_nn
nll_loss2d_forward nll_loss_forward: aten checked@aten flops=pointwise
sigmoid_cross_entropy_with_logits: paddle* paddle_grad paddle_args=t.t.n.b.i paddle_alike
"""
