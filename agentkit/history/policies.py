"""History policies: `ChatHistory`, `MultiAgentHistory`, and the base class for other policies."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import iscoroutinefunction
from typing import Literal, cast

from agentkit.argument_checks import check_option, check_text
from agentkit.capabilities.capabilities import Capabilities
from agentkit.errors import OptionError
from agentkit.history.frame_texts import FrameTexts
from agentkit.history.framed_lines import FramedBlocks, Piece, frame_blocks, has_line
from agentkit.history.framing import Framing
from agentkit.history.safe_frame import safe_name, safe_text
from agentkit.history.transcript import Rendered, read_history
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import MessageOrigin, Provenance, TracedConversation
from agentkit.messages.blocks import (
    Block,
    TextBlock,
    build_trusted_text,
)
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, get_cached, set_cached
from agentkit.reprs import bounded_repr

__all__ = ["ChatHistory", "HistoryPolicy", "MultiAgentHistory"]


class HistoryPolicy:
    """Base class of history policies. A subclass overrides `view`, a pure function of messages.

    `view` gets the conversation in normal form and returns the messages that one model gets. The ledger finds the
    blocks that `view` omits and adds by the identity of the blocks.
    """

    shows_everything: bool = False
    """True if the policy hides nothing; the message weights then add up to the request size."""

    def view(self, msgs: Sequence[Msg]) -> Sequence[Msg]:
        """Returns the messages that the model gets."""
        return msgs

    def is_visible(self, unit: Sequence[Msg]) -> bool:
        """Returns True if the model gets any part of a unit: one message, or one exchange."""
        return True

    def frames(self, turns: TracedConversation) -> FrameTexts | None:
        """Returns the texts of the frames in the turns of a request; None if the policy writes no frames."""
        return None

    def render(
        self, conversation: TracedConversation, ledger: Ledger, capabilities: Capabilities
    ) -> TracedConversation:
        """Returns the result of `view`, with the origin of each block.

        Raises:
            OptionError: `view` did not return a sequence of messages.

        """
        viewed = self.view(tuple(conversation.msgs))
        if not isinstance(viewed, Sequence) or not all(isinstance(msg, Msg) for msg in viewed):
            reason = f"{type(self).__name__}.view returned a value that is not a sequence of messages"
            raise OptionError("history", reason, "Return a sequence of Msg.")
        message_origins = _find_message_origins(conversation, viewed)
        known_blocks = {
            id(block): origin
            for traced in conversation
            if not isinstance(traced.msg.content, str)
            for block, origin in traced.traced_blocks
        }
        out = TracedConversation([], [])
        for msg in viewed:
            origins = message_origins.get(id(msg))
            if origins:
                out.add(msg, origins.popleft())
            else:
                out.add(msg, tuple(known_blocks.get(id(block), "history") for block in msg.blocks))
        _note_absent(conversation, out, ledger)
        return out


def _find_message_origins(
    conversation: TracedConversation, viewed: Sequence[Msg]
) -> dict[int, deque[MessageOrigin]]:
    """Returns the origins of each message object. An object that is viewed less often has its last origins."""
    origins: dict[int, deque[MessageOrigin]] = {}
    for traced in conversation:
        origins.setdefault(id(traced.msg), deque()).append(traced.origin)
    for key, count in Counter(map(id, viewed)).items():
        while key in origins and len(origins[key]) > count:
            origins[key].popleft()
    return origins


def _note_absent(before: TracedConversation, after: TracedConversation, ledger: Ledger) -> None:
    present: set[Provenance] = {origin for traced in after for origin in traced.block_origins}
    note = Note(Disposition.DROPPED, "omitted or rewritten by the history policy")
    for traced in before:
        ledger.note_origins([origin for origin in traced.block_origins if origin not in present], note)


class ChatHistory(HistoryPolicy):
    """History policy that keeps each message as a turn of its own role."""

    shows_everything = True

    def render(
        self, conversation: TracedConversation, ledger: Ledger, capabilities: Capabilities
    ) -> TracedConversation:
        """Returns the conversation unchanged."""
        return conversation


_PREAMBLE = "# Conversation History\nThe content between <{tag}></{tag}> tags contains your conversation history\n"


@lru_cache(64)
def _line_key(*options: object) -> object:
    """Returns the cache key of rendered lines: one object for equal options, which compares by identity."""
    return object()


_NOT_LINES = Feature.MEDIA | Feature.INVALID | Feature.THINKING | Feature.TOOL | Feature.OPAQUE


@dataclass(frozen=True)
class MultiAgentHistory(HistoryPolicy):
    """History policy that writes runs of messages without tool blocks as one user turn of `NAME: TEXT` lines.

    Attributes:
        viewer: The agent that the request is made for. The frame tells it its name. Its own turns (its name *and*
            the role assistant) stay native. None: all exchanges stay native, and all other messages become lines.
        frame: `safe` escapes names and texts, so that `read_history` can read the frame back; `plain` writes them
            unchanged.
        preamble: The text before the first frame; None: AgentScope's text.
        tag: The name of the frame's tag.
        other_agents_tools: Treatment of other agents' exchanges if there is a viewer: lines of `text`, `native`
            turns, or `drop`, which omits calls and results but keeps the text beside them.
        visible: Function that returns True for each message that the viewer sees. An exchange is visible if all
            its messages are. None: all messages are visible.
        timestamps: True to begin each line with `[TIMESTAMP] `.

    Raises:
        OptionError: An option has a value that is not allowed.

    """

    viewer: str | None = None
    frame: Literal["safe", "plain"] = "safe"
    preamble: str | None = None
    tag: str = "history"
    other_agents_tools: Literal["text", "drop", "native"] = "text"
    visible: Callable[[Msg], bool] | None = None
    timestamps: bool = False

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_text("viewer", self.viewer)
        check_text("preamble", self.preamble)
        check_option("tag", self.tag, str)
        if self.visible is not None and not callable(self.visible):
            raise OptionError("visible", f"expected a function, got {self.visible!r}", "Pass a function of Msg.")
        if iscoroutinefunction(self.visible):  # a coroutine object is always true
            raise OptionError("visible", "the function is asynchronous", "Write it as `def`.")
        if not re.fullmatch(r"[A-Za-z][\w.-]*", self.tag, re.ASCII):
            raise OptionError("tag", f"expected a tag name, got {self.tag!r}", "Use letters, as in 'history'.")
        _check_choice("frame", self.frame, ("safe", "plain"))
        _check_choice("other_agents_tools", self.other_agents_tools, ("text", "drop", "native"))

    @property
    def shows_everything(self) -> bool:  # type: ignore[override]
        """True if the policy hides nothing."""
        return self.visible is None and (self.viewer is None or self.other_agents_tools != "drop")

    def is_visible(self, unit: Sequence[Msg]) -> bool:
        """Returns True if the viewer sees all messages of the unit, and `drop` leaves any of their blocks."""
        if self.visible is not None and not all(map(self.visible, unit)):
            return False
        own = unit[0].name == self.viewer and unit[0].role == "assistant"
        if own or self.viewer is None or self.other_agents_tools != "drop" or not unit[0].features & Feature.TOOL:
            return True
        return any(has_line(block, msg) for msg in unit for block in msg.blocks)

    @property
    def opening(self) -> str:
        """The text before the first frame: the preamble and the viewer's name."""
        text = _PREAMBLE.format(tag=self.tag) if self.preamble is None else self.preamble
        if self.viewer is None:
            return text
        name = self.viewer if self.frame == "plain" else safe_name(self.viewer, self.tag)
        lead = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{lead}You are {name}.\n"

    @cached_property
    def _key(self) -> object:
        return _line_key(self.frame, self.tag, self.timestamps)

    def frames(self, turns: TracedConversation) -> FrameTexts:
        """Returns the texts of the frames in the turns of a request, for `read_history`."""
        is_safe = self.frame == "safe"
        return FrameTexts(turns, self.tag, self.opening, timestamps=self.timestamps, is_safe=is_safe)

    def read(self, rendered: Rendered) -> list[tuple[str, str]]:
        """Returns the (speaker, text) pairs of a frame of this policy; see `read_history`."""
        return read_history(rendered, tag=self.tag, timestamps=self.timestamps)

    def render(
        self, conversation: TracedConversation, ledger: Ledger, capabilities: Capabilities
    ) -> TracedConversation:
        """Returns the conversation with frames and native turns."""
        return Framing(self, conversation, ledger, capabilities).run()

    def render_lines(self, msg: Msg) -> str | tuple[TextBlock, ...] | FramedBlocks:
        """Returns the lines of a message without tool blocks, each with the line break before it.

        One text block gives a string, several give text blocks, and other content gives `FramedBlocks`. The lines
        are computed once and cached on the message.
        """
        lines = get_cached(msg, self._key)
        if lines is None:
            lines = set_cached(msg, self._key, self._render_lines(msg))
        return cast("str | tuple[TextBlock, ...] | FramedBlocks", lines)

    def _render_lines(self, msg: Msg) -> str | tuple[TextBlock, ...] | FramedBlocks:
        speaker = self.format_speaker(msg)
        if isinstance(msg.content, str):
            return f"\n{speaker}: {self.format_text(msg.content)}"
        lines = [self._as_piece(speaker, block, msg) for block in msg.content]
        if msg.features & _NOT_LINES:
            return frame_blocks(speaker, lines)
        texts = tuple(cast("list[TextBlock]", lines))
        return texts[0].text if len(texts) == 1 else texts

    def _as_piece(self, speaker: str, block: Block, msg: Msg) -> Piece | None:
        if isinstance(block, TextBlock):
            return build_trusted_text(f"\n{speaker}: {self.format_text(block.text)}")
        return cast("Piece", block) if has_line(block, msg) else None

    def format_speaker(self, msg: Msg) -> str:
        """Returns the speaker at the start of a line, with the timestamp if the policy writes timestamps."""
        speaker = safe_name(msg.name or msg.role, self.tag) if self.frame == "safe" else msg.name
        return f"[{_clean_timestamp(msg.timestamp)}] {speaker}" if self.timestamps else speaker

    def format_text(self, text: str) -> str:
        """Returns a text of the frame, escaped in the safe frame."""
        return safe_text(text, self.tag) if self.frame == "safe" else text


def _check_choice(option: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise OptionError(option, f"expected one of {', '.join(allowed)}, got {value!r}", "Pass one of them.")


def _clean_timestamp(timestamp: str | None) -> str:
    """Returns a timestamp without characters that could end its brackets or the frame."""
    return re.sub(r"[\[\]<>|\s]+", " ", timestamp or "-").strip() or "-"
