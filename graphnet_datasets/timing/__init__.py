"""Timing of calls: clocks, interleaved pairs, intervals and cache eviction."""
