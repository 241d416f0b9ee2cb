"""Tables as files: writing, layout, loading, export, import and selection."""
