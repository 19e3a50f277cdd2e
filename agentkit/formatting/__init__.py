"""Formatting: converts messages to the request of one provider's API.

Input: messages and options. Output: a `Plan` with the request and its ledger, which records what happened to each
input block. The module `formatter` loads media and cuts the conversation so that its request fits the budget. The
module `pipeline` runs a list of stages that build the request without I/O.

Read `formatter` first, then `pipeline`.
"""

from __future__ import annotations

__all__: list[str] = []
