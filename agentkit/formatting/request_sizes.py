"""`RequestSizes`: builds the request of a conversation after a number of edits, and counts its tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from agentkit.budget.cut_plan import CutPlan
from agentkit.budget.edits import EditedConversation
from agentkit.budget.units import EditCount
from agentkit.formatting.request_builder import BuiltRequest, RequestBuilder
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import TracedConversation
from agentkit.tokens.counters import LocalTokenCounter, TokenCounterBase, count_request

__all__ = ["RequestSizes", "Sizes"]

Sizes: TypeAlias = dict[EditCount, tuple[BuiltRequest, int]]
"""Maps the number of edits of a cut to the request after the cut, and its token count."""


@dataclass(slots=True)
class RequestSizes:
    """Requests of one conversation after different numbers of edits, with their token counts.

    Each request is built and counted only once.

    Attributes:
        conversation: The repaired conversation before the cut.
        needs_loading: True if media must be read, fetched or resized.
        counted: The requests with loaded media, and the token counts of the budget's counter.
        estimated: The requests without loaded media, and the token counts of the local counter.
    """

    builder: RequestBuilder
    counter: TokenCounterBase
    conversation: TracedConversation
    ledger: Ledger
    cuts: CutPlan
    local: LocalTokenCounter = field(init=False)
    needs_loading: bool = field(init=False)
    counted: Sizes = field(default_factory=dict[EditCount, "tuple[BuiltRequest, int]"])
    estimated: Sizes = field(default_factory=dict[EditCount, "tuple[BuiltRequest, int]"])

    def __post_init__(self) -> None:
        self.local = self.counter.local_counter
        self.needs_loading = self.builder.needs_loading(self.conversation)

    @property
    def has_remote_counter(self) -> bool:
        """True if the budget's counter needs I/O."""
        return self.counter is not self.local

    def edit(self, count: EditCount) -> EditedConversation:
        """Returns the conversation with the changes of the first `count` edits."""
        return EditedConversation(self.conversation, self.cuts.units, self.cuts.changes(count) if count else ())

    async def estimate(self, count: EditCount) -> tuple[BuiltRequest, int]:
        """Returns the request after `count` edits, and its number of tokens according to the local counter.

        Media are not loaded.
        """
        if count not in self.estimated:
            edited = self.edit(count)
            built = self.builder.build_without_io(edited.apply(), self.ledger, edited.first_change)
            self.estimated[count] = (built, await self._count(self.local, built))
        return self.estimated[count]

    async def measure(self, count: EditCount) -> tuple[BuiltRequest, int]:
        """Returns the request after `count` edits, and its number of tokens according to the budget's counter."""
        if count not in self.counted:
            edited = self.edit(count)
            conversation = edited.apply()
            needs_loading = self.needs_loading and self.builder.needs_loading(conversation)
            if needs_loading or self.has_remote_counter:
                self.counted[count] = await self.load_and_count(conversation, self.ledger.copy(), edited)
            else:
                self.counted[count] = await self.estimate(count)
        return self.counted[count]

    async def load_and_count(
        self, conversation: TracedConversation, ledger: Ledger, edited: EditedConversation
    ) -> tuple[BuiltRequest, int]:
        """Loads the media of an edited conversation.

        Returns the request, and its number of tokens according to the budget's counter.
        """
        built = await self.builder.load_and_build(conversation, ledger, edited.first_change)
        return built, await self._count(self.counter, built)

    async def _count(self, counter: TokenCounterBase, built: BuiltRequest) -> int:
        return await count_request(counter, built.request, self.builder.spec.capabilities.layout)
