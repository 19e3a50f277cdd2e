"""Comparison of typed prompts with DSPy 3.4.1, which runs in an environment of its own (extra `parity`)."""
