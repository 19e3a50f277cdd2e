"""From messages in normal form to a request: view, legalize, settle, convert.

What is dear is worked out once and travels with its message: argument text, media as base64 and data URLs, a
message tidied for a target, its lines in a frame, its weight. Native dicts are not kept: a request is its
caller's to change, and copying finished dicts takes longer than making them (see tests/benchmarks).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentkit.errors import LossError
from agentkit.formatting.pipeline import StageContext, run_pipeline
from agentkit.formatting.request_spec import Request, RequestSpec
from agentkit.formatting.thinking_prefix import stale_thinking
from agentkit.history.policies import HistoryPolicy
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import BlockPath
from agentkit.ledger.plan import Cut, Plan
from agentkit.ledger.provenance import TracedConversation
from agentkit.legalize.conversation import LegalConversation
from agentkit.legalize.media import OnLoss
from agentkit.legalize.thinking_pairs import orphaned_parts, without_blocks
from agentkit.media.fetching import Fetch
from agentkit.media.loading import OUTSIDE, load_media, needs_loading, weigh_texts
from agentkit.media.resizing import can_resize
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.sources import Base64Source, URLSource

__all__ = ["Lowered", "Lowering", "holds_media"]


@dataclass(frozen=True, slots=True)
class Lowered:
    """Request with its ledger and the legal conversation that it was converted from."""

    request: Request
    ledger: Ledger
    legal: LegalConversation
    frames: object = None  # see Plan
    stale: frozenset[BlockPath] = frozenset()  # thinking that may not go back any more, and what needs it

    def plan(self, history: tuple[Msg, ...], tokens: int | None = None, cut: Cut | None = None) -> Plan:
        """Returns the plan with this request."""
        legal = self.legal
        names = legal.call_ids, legal.tool_names
        return Plan(self.request, self.ledger, history, tokens, cut, *names, self.frames)


@dataclass(frozen=True, slots=True)
class Lowering:
    """Everything needed to turn conversations into requests for one target."""

    task: RequestSpec
    history: HistoryPolicy
    on_loss: OnLoss
    media_roots: tuple[Path, ...]
    convert: Callable[[LegalConversation, RequestSpec], Request]
    fetch: Fetch | None = None
    fetched: dict[URLSource, Base64Source | str] = field(default_factory=dict[URLSource, "Base64Source | str"])
    weighed: dict[URLSource, Base64Source | str] = field(default_factory=dict[URLSource, "Base64Source | str"])

    def lower(
        self, draft: TracedConversation, ledger: Ledger, shelf: ResolvedMedia, changed: int | None = None
    ) -> Lowered:
        """The pure part: with what was read, without any I/O.

        `changed` is the number of the first input message that a cut took or altered. The ledger that comes
        back goes on from the one given, which may be used no more.
        """
        if not (self.task.capabilities.thinking.binds_prefix and draft.has_feature(Feature.THINKING)):
            return self._lower(draft, ledger, shelf)
        lowered = self._lower(draft, ledger.copy(), shelf)
        form, turns = self.task.capabilities, lowered.legal.turns
        stale = stale_thinking(lowered.request, form.layout, turns, changed, form.opaque.needs_thinking)
        if not stale:
            return lowered
        for path in sorted(stale):
            ledger.note(path, Note(Disposition.DROPPED, "the prefix that this thinking is bound to has changed"))
        stale |= orphaned_parts(turns, ledger, form, lambda _, origin: origin in stale)
        lowered = self._lower(without_blocks(draft, stale), ledger, shelf)
        return replace(lowered, stale=frozenset(stale))

    def _lower(self, conversation: TracedConversation, ledger: Ledger, media: ResolvedMedia) -> Lowered:
        context = StageContext(self.task, self.history, self.on_loss, ledger, media)
        request, legal = run_pipeline(conversation, context, self.convert)
        return Lowered(request, ledger, legal, self.history.frames(legal.turns))

    def needs_loading(self, draft: TracedConversation) -> bool:
        """Returns True if media must be read, fetched or resized for the final request."""
        return holds_media(draft) and needs_loading(draft.msgs, self.task.capabilities, self.fetch)

    async def read_and_lower(
        self, draft: TracedConversation, ledger: Ledger, changed: int | None = None
    ) -> Lowered:
        """Loads the media of a conversation, and returns its request."""
        if not holds_media(draft):
            return self.lower(draft, ledger, ResolvedMedia(), changed)
        form, shown = self.task.capabilities, self._shown(draft, ledger)
        shelf = await load_media(shown.msgs, form, self.media_roots, self.fetch, self.fetched)
        return self.lower(draft, ledger, shelf, changed)

    async def weigh_texts(self, draft: TracedConversation, ledger: Ledger) -> bool:
        """Finds the sizes of text files for `lower_without_io`. Returns True if there are any."""
        shown = self._shown(draft, ledger)
        self.weighed.update(await weigh_texts(shown.msgs, self.task.capabilities, self.media_roots))
        return bool(self.weighed)

    def _shown(self, draft: TracedConversation, ledger: Ledger) -> TracedConversation:
        """Returns the messages that the history policy shows. Media of other messages are not loaded."""
        if self.history.shows_everything:
            return draft
        return self.history.render(draft, ledger.copy(), self.task.capabilities)

    def lower_without_io(self, draft: TracedConversation, ledger: Ledger, changed: int | None = None) -> Lowered:
        """What can be known before any file is read or URL fetched: without roots, that no file will be.

        Text files count as much as `weigh_texts` found.
        """
        fetches = self.fetch is not None
        shelf = ResolvedMedia(self.weighed, bool(self.media_roots), OUTSIDE, fetches, can_resize())
        return self.lower(draft, ledger.copy(), shelf, changed)

    def raise_on_loss(self, ledger: Ledger) -> None:
        """Raises LossError if content was lost and `on_loss` is `raise`."""
        if self.on_loss == "raise" and (losses := ledger.losses):
            raise LossError(self.task.capabilities.name, losses)


def holds_media(draft: TracedConversation) -> bool:
    """Returns True if any message has media."""
    return draft.has_feature(Feature.MEDIA | Feature.RESULT_MEDIA)
