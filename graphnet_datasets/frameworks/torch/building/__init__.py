"""The parts of `materialize`: entries, literals, regions and custom operators."""
