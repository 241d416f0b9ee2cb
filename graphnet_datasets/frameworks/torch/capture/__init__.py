"""From live modules to samples."""
