"""Known bugs of compilers, as small graphs with inputs that show them.

The graphs are this project's own code, written from public reports. `python -m builder
compiler-bugs` captures them into the config `compiler_bugs`.
"""
