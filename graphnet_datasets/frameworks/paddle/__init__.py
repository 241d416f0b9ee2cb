"""Paddle: the same files as for torch; importing this package does not import paddle."""
