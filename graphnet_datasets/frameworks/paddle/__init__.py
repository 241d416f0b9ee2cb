"""The Paddle backend, with the same modules as the torch backend. Importing this package does
not import paddle."""
