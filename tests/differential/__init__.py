"""Differential test: the working tree and the last commit before the restructuring must act alike.

Both versions get the same generated input. Their requests, plans, events, messages and errors must be equal, but
for the differences that `mappings` lists. Run `python -m tests.differential --help` for the options.

Read `__main__` first, then `worker`, which runs in both versions, and `conversations`, which makes the input.
"""
