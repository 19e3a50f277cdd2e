"""`RequestBuilder`: builds the request of a repaired conversation, with or without I/O.

Expensive results are computed once and cached on the messages. Examples are base64 media, lines of a history
frame, and token estimates. The dicts of a request are not cached, because the caller may change them. Copying
cached dicts would take longer than creating new dicts (see tests/benchmarks).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentkit.errors import LossError
from agentkit.formatting.pipeline import run_pipeline
from agentkit.formatting.thinking_prefix import find_stale_thinking
from agentkit.history.policies import HistoryPolicy
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import BlockPath
from agentkit.ledger.plan import Cut, Plan
from agentkit.ledger.provenance import TracedConversation
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.media import OnLoss
from agentkit.legalize.request_spec import Request, RequestSpec
from agentkit.legalize.thinking_pairs import find_orphaned_parts, without_blocks
from agentkit.media.fetching import Fetch
from agentkit.media.loading import OUTSIDE, load_media, measure_texts, needs_loading
from agentkit.media.resizing import can_resize
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.sources import Base64Source, URLSource
from agentkit.tools.tool import Tool

__all__ = ["BuiltRequest", "RequestBuilder", "has_media"]

_STALE = Note(
    Disposition.DROPPED,
    "the API refuses this thinking because the tools or earlier messages changed",
)


@dataclass(frozen=True, slots=True)
class BuiltRequest:
    """Request, its ledger, and the rewritten conversation from which the request was converted.

    Attributes:
        frames: The texts of the history frames, as in `Plan`.
        stale: The paths of omitted blocks: thinking blocks after a changed part of the request, and blocks that
            the API refuses without these thinking blocks.
        tools: The tools that the request declares.
    """

    request: Request
    ledger: Ledger
    legal: LegalConversation
    frames: object = None
    stale: frozenset[BlockPath] = frozenset()
    tools: tuple[Tool, ...] = ()

    def plan(self, history: tuple[Msg, ...], tokens: int | None = None, cut: Cut | None = None) -> Plan:
        """Returns the `Plan` of this request. `history` has the messages that remain after the cut."""
        legal = self.legal
        names = legal.call_ids, legal.tool_names
        return Plan(self.request, self.ledger, history, tokens, cut, *names, self.frames, self.tools)


@dataclass(frozen=True, slots=True)
class RequestBuilder:
    """Builder of requests for one target, with all options that affect a request.

    Attributes:
        spec: The target, tools, tool choice and output schema.
        media_roots: The folders from which `file:` sources may be read.
        fetch: The settings for downloads. None means no downloads.
        downloads: Mapping from a URL source to the downloaded data, or to the reason why the download failed.
        text_sizes: Mapping from the source of each unread text file to a placeholder of the same size, or to the
            reason why the file cannot be used.
    """

    spec: RequestSpec
    history: HistoryPolicy
    on_loss: OnLoss
    media_roots: tuple[Path, ...]
    convert: Callable[[LegalConversation, RequestSpec], Request]
    fetch: Fetch | None = None
    downloads: dict[URLSource, Base64Source | str] = field(default_factory=dict[URLSource, "Base64Source | str"])
    text_sizes: dict[URLSource, Base64Source | str] = field(default_factory=dict[URLSource, "Base64Source | str"])

    def build(
        self, conversation: TracedConversation, ledger: Ledger, media: ResolvedMedia, changed: int | None = None
    ) -> BuiltRequest:
        """Returns the request of a conversation, without I/O. `media` has the media that are already loaded.

        The ledger of the result contains all notes. The argument `ledger` may lack some notes, because the method
        can write notes to a copy of this ledger. `changed` is the index of the first input message that a cut
        dropped or edited. None means that there is no such message.
        """
        target = self.spec.capabilities
        if not (target.thinking.binds_prefix and conversation.has_feature(Feature.THINKING)):
            return self._run_pipeline(conversation, ledger, media)
        built = self._run_pipeline(conversation, ledger.copy(), media)
        turns, needs_thinking = built.legal.turns, target.opaque.needs_thinking
        stale = find_stale_thinking(built.request, target.layout, turns, changed, needs_thinking)
        if not stale:
            return built
        for path in sorted(stale):
            ledger.note(path, _STALE)
        stale |= find_orphaned_parts(turns, ledger, target, lambda _, origin: origin in stale)
        built = self._run_pipeline(without_blocks(conversation, stale), ledger, media)
        return replace(built, stale=frozenset(stale))

    def _run_pipeline(
        self, conversation: TracedConversation, ledger: Ledger, media: ResolvedMedia
    ) -> BuiltRequest:
        context = StageContext(self.spec, self.history, self.on_loss, ledger, media)
        request, legal = run_pipeline(conversation, context, self.convert)
        frames = self.history.frames(legal.turns)
        return BuiltRequest(request, ledger, legal, frames, tools=context.spec.tools)

    def needs_loading(self, conversation: TracedConversation) -> bool:
        """Returns True if media must be read, fetched or resized for the request."""
        return has_media(conversation) and needs_loading(conversation.msgs, self.spec.capabilities, self.fetch)

    async def load_and_build(
        self, conversation: TracedConversation, ledger: Ledger, changed: int | None = None
    ) -> BuiltRequest:
        """Loads the media of a conversation, and returns the request. See `build` for the arguments."""
        if not has_media(conversation):
            return self.build(conversation, ledger, ResolvedMedia(), changed)
        msgs = self._list_visible(conversation, ledger)
        media = await load_media(msgs, self.spec.capabilities, self.media_roots, self.fetch, self.downloads)
        return self.build(conversation, ledger, media, changed)

    async def measure_text_files(self, conversation: TracedConversation, ledger: Ledger) -> bool:
        """Gets the sizes of text files for `build_without_io`. Returns True if there are text files."""
        msgs = self._list_visible(conversation, ledger)
        self.text_sizes.update(await measure_texts(msgs, self.spec.capabilities, self.media_roots))
        return bool(self.text_sizes)

    def _list_visible(self, conversation: TracedConversation, ledger: Ledger) -> list[Msg]:
        """Returns the messages that the history policy shows to the model. Other messages need no media."""
        if self.history.shows_everything:
            return conversation.msgs
        return self.history.render(conversation, ledger.copy(), self.spec.capabilities).msgs

    def build_without_io(
        self, conversation: TracedConversation, ledger: Ledger, changed: int | None = None
    ) -> BuiltRequest:
        """Returns the request without reading a file or fetching a URL. See `build` for the arguments.

        The request contains a placeholder for each text file. `measure_text_files` determines the size of the
        placeholder. `ledger` does not change.
        """
        can_fetch = self.fetch is not None
        media = ResolvedMedia(self.text_sizes, bool(self.media_roots), OUTSIDE, can_fetch, can_resize())
        return self.build(conversation, ledger.copy(), media, changed)

    def raise_on_loss(self, ledger: Ledger) -> None:
        """Raises LossError if content was lost and `on_loss` is `raise`."""
        if self.on_loss == "raise" and (losses := ledger.losses):
            raise LossError(self.spec.capabilities.name, losses)


def has_media(conversation: TracedConversation) -> bool:
    """Returns True if any message has media."""
    return conversation.has_feature(Feature.MEDIA | Feature.RESULT_MEDIA)
