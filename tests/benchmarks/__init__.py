"""Benchmarks of agentkit, a minimal hand-written loop and other libraries: `python -m tests.benchmarks`."""
