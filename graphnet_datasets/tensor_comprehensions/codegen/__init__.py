"""Generation of C from instances: loop nests, register tiles, and the C compiler."""
