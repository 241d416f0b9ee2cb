"""The parent's side of a run: outputs compared, floors and references, records made."""
