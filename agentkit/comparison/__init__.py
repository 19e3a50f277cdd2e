"""Comparing models: one conversation is sent to many models, and the calls can be recorded and replayed.

`compare` takes messages and models, and returns a `ComparisonResult` for each model, with its request, reply,
times and price. A recording is a JSON Lines file with one call per line.

Read first: `comparison`. Then: `results` (`ComparisonResult`, `Price`) and `recordings`.
"""

from __future__ import annotations

__all__: list[str] = []
