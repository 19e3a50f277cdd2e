"""`Plan`: a request together with its ledger, its token count, and the `Cut` of the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import format_place
from agentkit.messages.message import Msg
from agentkit.reprs import bounded_repr

__all__ = ["Cut", "Plan"]


@dataclass(frozen=True, slots=True)
class Cut:
    """Messages and blocks that a budget removed from a request.

    Attributes:
        numbers: The indexes of the caller's messages that were dropped completely or in part.
        units: The number of dropped units. A unit is one message, or one assistant turn with tool calls and all
            their results.
        tokens: The estimated number of tokens that the cut saves.
        altered: The places of blocks that were shortened or replaced by a note to save tokens.
        uncached: The estimated number of tokens that follow the first dropped or changed message. When a cut
            changes, the next model call cannot read these tokens from the provider's prompt cache. Later model
            calls can read these tokens.
        thinking: The places of omitted thinking blocks. The API refuses these blocks, because the cut changed
            earlier messages.
    """

    numbers: Sequence[int]
    units: int
    tokens: int
    altered: tuple[str, ...] = ()
    uncached: int = 0
    thinking: tuple[str, ...] = ()

    __repr__ = bounded_repr

    @property
    def dropped(self) -> tuple[str, ...]:
        """The places of the messages that were dropped completely or in part, such as `msgs[3]`."""
        return tuple(format_place((number,)) for number in self.numbers)


@dataclass(frozen=True, slots=True)
class Plan:
    """Request, with its ledger, its token count and other information known before the request is sent.

    Attributes:
        request: The keyword arguments for the SDK function that sends the request, as JSON values. The caller may
            change these values.
        ledger: The record of what happened to every input block.
        history: The messages that remain after the budget's cut. To keep the conversation short, the caller can
            continue with these messages.
        tokens: The number of request tokens according to the budget's counter. None if there is no budget.
        cut: The messages and blocks that the budget removed. None if the budget removed nothing.
        call_ids: Maps each changed tool call id in the request to the original id.
        tool_names: Maps each changed tool name in the request to the original name.
        frames: The texts of the history frames in the request, for use by `read_history`. None if the history
            policy writes no frames.
        tools: The tools that the request declares, as `Tool` objects.
    """

    request: dict[str, Any]
    ledger: Ledger
    history: tuple[Msg, ...]
    tokens: int | None = None
    cut: Cut | None = None
    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])
    frames: object = field(default=None, repr=False, compare=False)
    tools: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    __repr__ = bounded_repr
