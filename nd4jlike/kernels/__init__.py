"""Kernels: numbers and pointers, one build for each instruction set."""
