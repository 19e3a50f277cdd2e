"""History policies `ChatHistory` and `MultiAgentHistory`, and their base class `HistoryPolicy`."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import iscoroutinefunction
from typing import Literal, cast

from agentkit.argument_checks import check_choice, check_option, check_text
from agentkit.capabilities.capabilities import Capabilities
from agentkit.errors import OptionError
from agentkit.history.frame_escaping import safe_name, safe_text
from agentkit.history.frame_parsing import Rendered, read_history
from agentkit.history.frame_texts import FrameTexts, opening_text
from agentkit.history.framed_lines import FramedBlocks, Piece, frame_blocks, has_line
from agentkit.history.framing import Framing
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
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = ["ChatHistory", "HistoryPolicy", "MultiAgentHistory"]


class HistoryPolicy:
    """Base class of history policies, which decide in which form a model gets the messages of a conversation.

    A subclass overrides `view`. Two calls of `view` with the same messages must return the same messages. The
    ledger compares block objects by identity to record the blocks that `view` omits or adds.
    """

    shows_everything: bool = False
    """True if the policy hides no message. The token estimates of the messages then add up to the request size."""

    def view(self, msgs: Sequence[Msg]) -> Sequence[Msg]:
        """Returns the messages that the model gets. Each tool call in `msgs` has one result after it."""
        return msgs

    def is_visible(self, unit: Sequence[Msg]) -> bool:
        """Returns True if the model gets any part of a unit.

        A unit is one message, or one assistant turn with tool calls and all their results.
        """
        return True

    def frames(self, turns: TracedConversation) -> FrameTexts | None:
        """Returns the texts of the history frames in a request. Returns None if the policy writes no frames."""
        return None

    def render(
        self, conversation: TracedConversation, ledger: Ledger, capabilities: Capabilities
    ) -> TracedConversation:
        """Returns the messages that `view` returns, with the origin of each block.

        An origin is the path of a block in the caller's messages, or a name for an added block.

        Raises:
            OptionError: If `view` does not return a sequence of messages.
        """
        viewed = self.view(tuple(conversation.msgs))
        if not isinstance(viewed, Sequence) or not all(isinstance(msg, Msg) for msg in viewed):
            reason = f"{type(self).__name__}.view() must return a sequence of Msg, got {shorten_repr(viewed, 60)}"
            raise OptionError("history", reason, "Return a list of Msg.")
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
    """Returns a dict that maps the Python `id` of each input message to the origins of the message.

    If the input contains the same object several times, the object has one origin for each occurrence. If `view`
    returns the object fewer times, the first of these origins are removed.
    """
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
    """History policy that sends each message as a turn with the role of the message."""

    shows_everything = True

    def render(
        self, conversation: TracedConversation, ledger: Ledger, capabilities: Capabilities
    ) -> TracedConversation:
        """Returns the conversation unchanged."""
        return conversation


@lru_cache(64)
def _line_key(*options: object) -> object:
    """Returns a cache key for rendered lines.

    Calls with equal options return the same object, so that keys can be compared quickly by identity.
    """
    return object()


_NOT_LINES = Feature.MEDIA | Feature.INVALID | Feature.THINKING | Feature.TOOL | Feature.OPAQUE


@dataclass(frozen=True)
class MultiAgentHistory(HistoryPolicy):
    """History policy that writes the messages of many speakers as history frames.

    A history frame is one user turn of `NAME: TEXT` lines between tags. A message that does not become lines
    remains a separate turn.

    Attributes:
        viewer: Name of the agent that the request is for. The request tells the model this name. Messages with
            this name and the role `assistant` remain separate turns. If None, tool calls and their results remain
            separate turns, and all other messages of users and assistants become lines.
        frame: `safe` escapes names and texts, so that `read_history` can parse the frame. `plain` writes names
            and texts unchanged.
        preamble: Text before the first frame. None stands for the text that AgentScope uses.
        tag: Name of the tags around each frame.
        other_agents_tools: Treatment of the tool calls and results of agents other than the viewer. `text` writes
            the calls and results as lines. `native` keeps the calls and results as separate turns. `drop` omits
            the calls and results, but keeps the text in the same messages.
        visible: Function that returns True for each message that the viewer sees. Tool calls and their results are
            visible only if all their messages are visible. None makes all messages visible.
        timestamps: True to begin each line with `[TIMESTAMP] `.

    Raises:
        OptionError: If an option has an invalid value.
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
            reason = f"expected a function or None, got {shorten_repr(self.visible, 60)}"
            raise OptionError("visible", reason, "Pass a function that takes a Msg and returns a bool.")
        if iscoroutinefunction(self.visible):  # each call would return a coroutine object, which is always true
            reason = f"expected a synchronous function, got the async function {shorten_repr(self.visible, 60)}"
            raise OptionError("visible", reason, "Use `def` to define the function.")
        if not re.fullmatch(r"[A-Za-z][\w.-]*", self.tag, re.ASCII):
            reason = (
                f"must be a letter followed by letters, digits, '_', '.' or '-', got {shorten_repr(self.tag, 60)}"
            )
            raise OptionError("tag", reason, "Pass a tag name, such as 'history'.")
        check_choice("frame", self.frame, ("safe", "plain"))
        check_choice("other_agents_tools", self.other_agents_tools, ("text", "drop", "native"))

    @property
    def shows_everything(self) -> bool:  # type: ignore[override]
        """True if the policy hides no message and no tool call from the model."""
        return self.visible is None and (self.viewer is None or self.other_agents_tools != "drop")

    def is_visible(self, unit: Sequence[Msg]) -> bool:
        """Returns True if the viewer sees any block of a unit (a message, or tool calls with their results).

        The result is False if `visible` hides a message of the unit. The result is also False if
        `other_agents_tools="drop"` omits all blocks of the unit.
        """
        if self.visible is not None and not all(map(self.visible, unit)):
            return False
        if self.viewer is None or self.other_agents_tools != "drop" or not unit[0].features & Feature.TOOL:
            return True
        return self.is_own_turn(unit[0]) or any(has_line(block, msg) for msg in unit for block in msg.blocks)

    def get_native_features(self, capabilities: Capabilities) -> int:
        """Returns the `Feature` bits that make a message remain a separate turn, whoever the speaker is.

        The viewer's messages also remain separate turns, whatever their features are (see `is_own_turn`).
        """
        system = Feature.SYSTEM if capabilities.turns.late_system == "native" else 0
        return system | (Feature.TOOL if self.viewer is None or self.other_agents_tools == "native" else 0)

    def is_own_turn(self, msg: Msg) -> bool:
        """Returns True if a message is a turn of the viewer. A user with the viewer's name is another speaker."""
        return msg.name == self.viewer and msg.role == "assistant"

    @property
    def opening(self) -> str:
        """The text before the first history frame: the preamble and the viewer's name."""
        viewer = self.viewer
        if viewer is not None and self.frame == "safe":
            viewer = safe_name(viewer, self.tag)
        return opening_text(self.tag, self.preamble, viewer)

    @cached_property
    def _key(self) -> object:
        return _line_key(self.frame, self.tag, self.timestamps)

    def frames(self, turns: TracedConversation) -> FrameTexts:
        """Returns the texts of the history frames in a request, for use by `read_history`."""
        is_safe = self.frame == "safe"
        return FrameTexts(turns, self.tag, self.opening, timestamps=self.timestamps, is_safe=is_safe)

    def read(self, rendered: Rendered) -> list[tuple[str, str]]:
        """Parses history frames that this policy wrote. Returns (speaker, text) pairs; see `read_history`."""
        return read_history(rendered, tag=self.tag, timestamps=self.timestamps)

    def render(
        self, conversation: TracedConversation, ledger: Ledger, capabilities: Capabilities
    ) -> TracedConversation:
        """Returns the conversation as history frames. Messages that do not become lines remain separate turns."""
        return Framing(self, conversation, ledger, capabilities).run()

    def render_lines(self, msg: Msg) -> str | tuple[TextBlock, ...] | FramedBlocks:
        """Renders a message without tool blocks as lines of a history frame. Each line starts with a line break.

        Returns a string for one text block, a tuple of text blocks for several text blocks, and `FramedBlocks` for
        any other content. The result is cached on the message.
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
        return texts[0].text if len(texts) == 1 else texts  # a string takes less memory than a tuple

    def _as_piece(self, speaker: str, block: Block, msg: Msg) -> Piece | None:
        if isinstance(block, TextBlock):
            return build_trusted_text(f"\n{speaker}: {self.format_text(block.text)}")
        return cast("Piece", block) if has_line(block, msg) else None

    def format_speaker(self, msg: Msg) -> str:
        """Returns the start of a line: an optional timestamp, followed by the speaker's name."""
        speaker = safe_name(msg.name or msg.role, self.tag) if self.frame == "safe" else msg.name
        return f"[{_clean_timestamp(msg.timestamp)}] {speaker}" if self.timestamps else speaker

    def format_text(self, text: str) -> str:
        """Returns a text for a history frame. The text is escaped if `frame` is `safe`."""
        return safe_text(text, self.tag) if self.frame == "safe" else text


def _clean_timestamp(timestamp: str | None) -> str:
    """Returns a timestamp without brackets and other characters that could end the timestamp or the frame.

    Returns `-` if there is no timestamp, or if nothing remains.
    """
    return re.sub(r"[\[\]<>|\s]+", " ", timestamp or "-").strip() or "-"
