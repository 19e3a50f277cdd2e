"""Budgets, which decide what to remove from a conversation so that its request stays within a token limit.

Input: a `Budget`, a local token estimate for each message, and a conversation in which every tool call has one
result. Output: a `CutPlan` and an `EditedConversation`. The plan lists edits and the tokens that each edit saves.
An edit drops or shortens one part of the conversation. A cut applies the first n edits of the plan. The edited
conversation is the result of the cut.

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
