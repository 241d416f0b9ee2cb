"""Tables as files: written, laid out, loaded, exported, imported and selected from."""
