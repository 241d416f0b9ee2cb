"""A folder per framework, and the dispatch by a sample's framework."""

from .dispatch import calibrate, find_results, make_inputs, materialize, print_source

__all__ = ["calibrate", "find_results", "make_inputs", "materialize", "print_source"]
