"""Formatting: converts messages to the request of one provider's API.

Input: messages and options. Output: a `Plan` with the request and its ledger, which records what happened to each
input block. `formatter` loads media and cuts the conversation to the budget. `pipeline` builds the request without
I/O by running a list of stages.

Read `formatter` first, then `pipeline`.
"""

from __future__ import annotations

__all__: list[str] = []
