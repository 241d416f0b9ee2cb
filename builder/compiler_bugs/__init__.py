"""Known bugs of compilers, each as a small graph with the inputs that show it.

The graphs are this project's own code, written from public reports. `python -m builder
compiler-bugs` captures them into the config `compiler_bugs`.
"""
