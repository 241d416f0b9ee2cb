"""A diagnosis of one compiler: a small representative subset, verdicts, minimal tests, one page.

Nothing is imported here, because `graphnet doctor` without a compiler needs `machine` alone.
"""
