"""The plan of a request: the request, its ledger, its token count and its cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.ledger.ledger import Ledger, place_of
from agentkit.messages.message import Msg
from agentkit.reprs import bounded_repr

__all__ = ["Cut", "Plan"]


@dataclass(frozen=True, slots=True)
class Cut:
    """What a budget took away, and what that cost.

    numbers   the messages that went, whole or in part, by number in the caller's list
    units     how many units were dropped
    tokens    about how many tokens that saved, by the weights of messages
    altered   the places of what was cleared, shrunk or described to save space
    uncached  about how many tokens stand behind the first change: what a provider's cache cannot serve at the
              call in which the cut moves, and only then
    thinking  the places of kept thinking that may not go back because the cut changed what it is bound to
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
        """The places of the messages that went."""
        return tuple(place_of((number,)) for number in self.numbers)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a request that can be known without sending it.

    `request` holds the SDK call's keyword arguments as JSON values, yours to change. `tokens` is its size
    by the budget's counter (None without a budget), `cut` what the budget took, `history` the messages that
    are left: adopt it to keep the conversation short. `call_ids` and `tool_names` map what the request says
    to what your messages said, where the wire forced another spelling.
    """

    request: dict[str, Any]
    ledger: Ledger
    history: tuple[Msg, ...]
    tokens: int | None = None
    cut: Cut | None = None
    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])
    frames: object = field(default=None, repr=False, compare=False)
    """The texts of the history frames in the request, for `read_history`; None if the policy writes no frames."""

    __repr__ = bounded_repr
