"""A folder per framework, and the dispatch by a sample's framework."""

from .dispatch import find_results, make_inputs, materialize, print_source

__all__ = ["find_results", "make_inputs", "materialize", "print_source"]
