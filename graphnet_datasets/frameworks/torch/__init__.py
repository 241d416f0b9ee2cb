"""PyTorch: its operator table, materializing, shapes, text and extraction."""
