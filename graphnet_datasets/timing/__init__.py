"""How long calls take: clocks, interleaved pairs, intervals and caches; knows nothing of graphs."""
