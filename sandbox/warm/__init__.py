"""Imported by fork servers: does once what every child would otherwise repeat, and nothing that a fork could not bear.

No module here may open a CUDA context: a child of a process with one cannot use the GPU.
"""
