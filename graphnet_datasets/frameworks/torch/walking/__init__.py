"""The walk on fake tensors: what it refuses, remembers and counts."""
