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
    """A request and how it came about."""

    request: Request
    ledger: Ledger
    legal: LegalConversation
    frames: object = None  # see Plan
    stale: frozenset[BlockPath] = frozenset()  # thinking that may not go back any more, and what needs it

    def plan(self, history: tuple[Msg, ...], tokens: int | None = None, cut: Cut | None = None) -> Plan:
        """The plan that this request makes."""
        legal = self.legal
        names = legal.call_ids, legal.tool_names
        return Plan(self.request, self.ledger, history, tokens, cut, *names, self.frames)


@dataclass(frozen=True, slots=True)
class Lowering:
    """One task for one target, ready to lower any draft of its conversation."""

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
        stale = stale_thinking(lowered.request, turns, changed, form.opaque.needs_thinking)
        if not stale:
            return lowered
        for path in sorted(stale):
            ledger.note(path, Note(Disposition.DROPPED, "thinking bound to a prefix that has changed"))
        stale |= orphaned_parts(turns, ledger, form, lambda _, origin: origin in stale)
        lowered = self._lower(without_blocks(draft, stale), ledger, shelf)
        return replace(lowered, stale=frozenset(stale))

    def _lower(self, conversation: TracedConversation, ledger: Ledger, media: ResolvedMedia) -> Lowered:
        context = StageContext(self.task, self.history, self.on_loss, ledger, media)
        request, legal = run_pipeline(conversation, context, self.convert)
        return Lowered(request, ledger, legal, self.history.frames(legal.turns))

    def needs_loading(self, draft: TracedConversation) -> bool:
        """Whether media have to be read, fetched or made smaller before the request is what it will be."""
        return holds_media(draft) and needs_loading(draft.msgs, self.task.capabilities, self.fetch)

    async def read_and_lower(
        self, draft: TracedConversation, ledger: Ledger, changed: int | None = None
    ) -> Lowered:
        """The same with the draft's media loaded."""
        if not holds_media(draft):
            return self.lower(draft, ledger, ResolvedMedia(), changed)
        form, shown = self.task.capabilities, self._shown(draft, ledger)
        shelf = await load_media(shown.msgs, form, self.media_roots, self.fetch, self.fetched)
        return self.lower(draft, ledger, shelf, changed)

    async def weigh_texts(self, draft: TracedConversation, ledger: Ledger) -> bool:
        """Find out how large the draft's text files are, for `foresee`; whether there are any."""
        shown = self._shown(draft, ledger)
        self.weighed.update(await weigh_texts(shown.msgs, self.task.capabilities, self.media_roots))
        return bool(self.weighed)

    def _shown(self, draft: TracedConversation, ledger: Ledger) -> TracedConversation:
        """What the history policy shows: the rest is nobody's to read or fetch."""
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
        """Let no lossy request out under `on_loss="raise"`."""
        if self.on_loss == "raise" and (losses := ledger.losses):
            raise LossError(self.task.capabilities.name, losses)


def holds_media(draft: TracedConversation) -> bool:
    """Whether any message holds media, which may have to be read or checked."""
    return draft.has_feature(Feature.MEDIA | Feature.RESULT_MEDIA)
