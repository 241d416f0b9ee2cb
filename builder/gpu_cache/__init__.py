"""Compile samples for a GPU on a machine without one, and keep TorchInductor's caches.

The caches are carried to the machine with the GPU, where `graphnet run --compile-cache` takes
compiled kernels from them. `stand_in` makes a process see a GPU, `filling` compiles one sample in
such a process, and `command` fills a folder for a list of samples.
"""
