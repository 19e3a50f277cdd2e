"""Comparison of models: `compare` sends one conversation to many models, and can record and replay model calls.

The inputs are the messages of the conversation and the models. The output is a `ComparisonResult` for each model,
with the request, the reply, the times and the price. A recording is a JSON Lines file with one model call per
line.

Read `comparison` first, then `results` (`ComparisonResult`), `prices` (`Price`) and `recordings`.
"""

from __future__ import annotations

__all__: list[str] = []
