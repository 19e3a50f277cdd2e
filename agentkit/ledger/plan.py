"""`Plan`: a request with its ledger, its token count and its cut."""

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
        numbers: The indexes of the caller's messages that were dropped, as a whole or in part.
        units: The number of units dropped.
        tokens: The estimated number of tokens saved, by the weights of the messages.
        altered: The places of blocks that were cleared, shrunk or described to save tokens.
        uncached: The estimated number of tokens after the first change. A provider's prompt cache cannot serve
            them in the call in which the cut moves, and only in that call.
        thinking: The places of thinking blocks that are not sent because the cut changed the prefix that they are
            bound to.

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
        """The places of the dropped messages."""
        return tuple(format_place((number,)) for number in self.numbers)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a request that can be computed without sending it.

    Attributes:
        request: The keyword arguments of the SDK's call, as JSON values. The caller may change them.
        ledger: The disposition of every input block.
        history: The messages that remain after the cut. Continue with them to keep the conversation short.
        tokens: The size of the request by the budget's counter; None without a budget.
        cut: The messages and blocks that the budget removed; None if it removed none.
        call_ids: The original id of each tool call whose id in the request differs.
        tool_names: The original name of each tool whose name in the request differs.
        frames: The texts of the history frames in the request, for `read_history`; None if the history policy
            writes no frames.

    """

    request: dict[str, Any]
    ledger: Ledger
    history: tuple[Msg, ...]
    tokens: int | None = None
    cut: Cut | None = None
    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])
    frames: object = field(default=None, repr=False, compare=False)

    __repr__ = bounded_repr
