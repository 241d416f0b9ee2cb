"""Generators of catalog lines for libraries whose models can be listed by the library itself."""
