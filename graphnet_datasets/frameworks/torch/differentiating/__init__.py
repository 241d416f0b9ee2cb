"""Gradients of a torch sample, traced by AOTAutograd, partitioned and compared with autograd."""
