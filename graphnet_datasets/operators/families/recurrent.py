"""Recurrent layers and packed sequences."""

ENTRIES = """
gru lstm: aten torch random checked paddle
gru_cell lstm_cell rnn_relu_cell rnn_tanh_cell: aten torch checked
gru_unit: paddle
_jagged_to_padded_dense_forward _padded_dense_to_jagged_forward: aten
mkldnn_rnn_layer: flops=lstm_layer
_pack_padded_sequence _pad_packed_sequence: aten torch
pad_sequence: aten C_nn checked
rnn: paddle paddle_grad paddle_random paddle_args=t.T.T.n.t.f.b.i.i.i.s.i.b paddle_flops=recurrent
rnn_relu rnn_tanh: aten torch random checked
_thnn_fused_gru_cell _thnn_fused_lstm_cell: aten flops=gates10
"""
