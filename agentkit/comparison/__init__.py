"""Comparison of models: `compare` sends one conversation to many models, and can record and replay the calls.

The input is messages and models. The output is a `ComparisonResult` for each model, with its request, reply, times
and price. A recording is a JSON Lines file with one model call per line.

Read `comparison` first, then `results` (`ComparisonResult`), `prices` (`Price`) and `recordings`.
"""

from __future__ import annotations

__all__: list[str] = []
