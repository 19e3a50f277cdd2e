"""Budgets: what to cut from a conversation so that its request stays below a limit of tokens.

Input: the repaired messages of a conversation, a `Budget`, and the weight of each message by a local counter.
Output: a `CutPlan`, which lists all edits that the strategies allow and the tokens that each edit saves, and an
`EditedConversation`, the messages after the first edits of that list. The package never builds a request. The
budget fitter in `agentkit.formatting` decides how many edits the request needs.

Read `budget` first, then `units` (the smallest things that a cut drops), `strategies` and `cut_plan`.
"""

from __future__ import annotations

__all__: list[str] = []
