"""Gradients of a sample of torch: traced by AOTAutograd, cut in two, and compared with autograd."""
