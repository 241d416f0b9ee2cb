"""A folder per framework, and the dispatch by a sample's framework."""

from .dispatch import make_inputs, materialize, print_source

__all__ = ["make_inputs", "materialize", "print_source"]
