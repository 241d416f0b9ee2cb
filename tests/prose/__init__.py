"""Counts of unidiomatic prose, the word lists behind them, and the limits that only go down."""
