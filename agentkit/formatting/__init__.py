"""Formatting: from messages to the request of one provider's API.

Input: messages and options. Output: a `Plan` with the request and its ledger. `formatter` loads media and fits the
budget; `pipeline` is the pure part, a list of stages.

Read `formatter` first, then `pipeline`.
"""

from __future__ import annotations

__all__: list[str] = []
