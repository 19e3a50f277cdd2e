"""Budgets, which decide what to remove from a conversation so that its request stays within a token limit.

Input: a conversation in which every tool call has one result, a `Budget`, and a local token estimate for each
message. Output: a `CutPlan` and an `EditedConversation`. The plan lists edits and the tokens that each edit saves.
An edit drops or shortens one part of the conversation. The edited conversation is the result of the first n edits.

This package builds no requests. The `BudgetFitter` in `agentkit.formatting` finds the necessary number of edits.

Read these modules in this order:

- `budget`;
- `units`: the smallest parts of a conversation that a cut drops;
- `protected_units`: the units that every cut keeps;
- `strategies` and `cut_plan`;
- `cut_grid`: the points at which a cut may end.
"""

from __future__ import annotations

__all__: list[str] = []
