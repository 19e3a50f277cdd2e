"""History policies: how many voices become two."""

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
from agentkit.history.framing import FramedBlocks, Framing, Piece, frame_blocks, has_line
from agentkit.history.transcript import FrameTexts, Rendered, read_history, safe_name, safe_text
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import Provenance, TracedConversation, block_origins
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
    """A policy of your own: override `view`, a pure function of messages.

    It gets the conversation in normal form (see `repair`) and gives the messages that one model is to see.
    What it leaves out and what it adds is found in the ledger by the identity of the blocks.
    """

    shows_everything: bool = False
    """Whether everything that is said reaches the request, so that weights of messages say what it weighs."""

    def view(self, msgs: Sequence[Msg]) -> Sequence[Msg]:
        """The conversation as the model is to see it."""
        return msgs

    def is_visible(self, unit: Sequence[Msg]) -> bool:
        """Whether the model sees anything of a message, or of an exchange."""
        return True

    def frames(self, turns: TracedConversation) -> FrameTexts | None:
        """The texts of the frames in the turns of a request; None for a policy that writes no frames."""
        return None

    def render(self, draft: TracedConversation, ledger: Ledger, capabilities: Capabilities) -> TracedConversation:
        """`view` with the account of where each block comes from."""
        shown = self.view(tuple(draft.msgs))
        if not isinstance(shown, Sequence) or not all(isinstance(msg, Msg) for msg in shown):
            reason = f"{type(self).__name__}.view gave something else than messages"
            raise OptionError("history", reason, "Return a sequence of Msg.")
        whole_of: dict[int, deque[int | tuple[Provenance, ...]]] = {}
        for msg, origin in zip(draft.msgs, draft.origins, strict=True):
            whole_of.setdefault(id(msg), deque()).append(origin)
        for known, times in Counter(map(id, shown)).items():  # of one object in many places, the last are shown
            while known in whole_of and len(whole_of[known]) > times:
                whole_of[known].popleft()
        origin_of = {
            id(block): origin
            for msg, whole in zip(draft.msgs, draft.origins, strict=True)
            for block, origin in zip(msg.blocks, block_origins(msg, whole), strict=True)
            if not isinstance(msg.content, str)
        }
        out = TracedConversation([], [])
        for msg in shown:
            places = whole_of.get(id(msg))
            whole: int | tuple[Provenance, ...] | None = places.popleft() if places else None
            traced = tuple(origin_of.get(id(block), "history") for block in msg.blocks)
            out.add(msg, traced if whole is None else whole)
        _note_absent(draft, out, ledger)
        return out


def _note_absent(before: TracedConversation, after: TracedConversation, ledger: Ledger) -> None:
    left = {
        origin
        for msg, whole in zip(after.msgs, after.origins, strict=True)
        for origin in block_origins(msg, whole)
    }
    for msg, whole in zip(before.msgs, before.origins, strict=True):
        for origin in block_origins(msg, whole):
            if not isinstance(origin, str) and origin not in left:
                ledger.note(origin, Note(Disposition.DROPPED, "left out or rewritten by the history policy"))


class ChatHistory(HistoryPolicy):
    """The conversation as it is: each message a turn in its own role."""

    shows_everything = True

    def render(self, draft: TracedConversation, ledger: Ledger, capabilities: Capabilities) -> TracedConversation:
        """The same draft."""
        return draft


_PREAMBLE = "# Conversation History\nThe content between <{tag}></{tag}> tags contains your conversation history\n"


@lru_cache(64)
def _line_key(*options: object) -> object:
    """What lines are kept under with their messages: one object for equal options, quick to look up."""
    return object()


_NOT_LINES = Feature.MEDIA | Feature.INVALID | Feature.THINKING | Feature.TOOL | Feature.OPAQUE


@dataclass(frozen=True)
class MultiAgentHistory(HistoryPolicy):
    """Runs of tool-free messages as one user turn: a preamble, and a line `NAME: TEXT` for each text.

    viewer        the agent the request is made for: it is told its name, and its own turns (its name *and*
                  role assistant) stay native
    frame         `safe`: no name and no text can close the frame or speak as another, and `read_history`
                  undoes it; `plain`: names and texts as they are
    preamble      the text before the first frame; None for AgentScope's
    tag           the name of the frame's tag
    other_agents_tools  other agents' exchanges, given a viewer: lines of `text`, `native`, or `drop`, which omits
                  calls and results, never the words beside them
    visible       which messages the viewer sees at all; an exchange is seen if all its messages are
    timestamps    whether each line begins with `[TIMESTAMP] `
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
            raise OptionError("visible", f"{self.visible!r} is no function", "Give a function of Msg.")
        if iscoroutinefunction(self.visible):  # its coroutine would count as True, whatever it says
            raise OptionError("visible", "the function is asynchronous", "Write it as `def`.")
        if not re.fullmatch(r"[A-Za-z][\w.-]*", self.tag, re.ASCII):
            raise OptionError("tag", f"{self.tag!r} is no tag name", "Use letters, as in 'history'.")
        _one_of("frame", self.frame, ("safe", "plain"))
        _one_of("other_agents_tools", self.other_agents_tools, ("text", "drop", "native"))

    @property
    def shows_everything(self) -> bool:  # type: ignore[override]
        """Whether the viewer sees everything."""
        return self.visible is None and (self.viewer is None or self.other_agents_tools != "drop")

    def is_visible(self, unit: Sequence[Msg]) -> bool:
        """Whether the viewer sees all of it, and it is more than another agent's tool use that is dropped."""
        if self.visible is not None and not all(map(self.visible, unit)):
            return False
        own = unit[0].name == self.viewer and unit[0].role == "assistant"
        if own or self.viewer is None or self.other_agents_tools != "drop" or not unit[0].features & Feature.TOOL:
            return True
        return any(has_line(block, msg) for msg in unit for block in msg.blocks)

    @property
    def opening(self) -> str:
        """What the first frame begins with: the preamble and who the viewer is."""
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
        """The texts of the frames in the turns of a request, for `read_history`."""
        is_safe = self.frame == "safe"
        return FrameTexts(turns, self.tag, self.opening, timestamps=self.timestamps, is_safe=is_safe)

    def read(self, rendered: Rendered) -> list[tuple[str, str]]:
        """`read_history` with this policy's tag and timestamps."""
        return read_history(rendered, tag=self.tag, timestamps=self.timestamps)

    def render(self, draft: TracedConversation, ledger: Ledger, capabilities: Capabilities) -> TracedConversation:
        """The frames, and between them what stays native."""
        return Framing(self, draft, ledger, capabilities).run()

    def lines_of(self, msg: Msg) -> str | tuple[TextBlock, ...] | FramedBlocks:
        """A tool-free message in the frame: one text as a string, several as blocks, or all that it says.

        Each line stands behind its line break. Worked out once in the message's life.
        """
        lines = get_cached(msg, self._key)
        if lines is None:
            lines = set_cached(msg, self._key, self._lines(msg))
        return cast("str | tuple[TextBlock, ...] | FramedBlocks", lines)

    def _lines(self, msg: Msg) -> str | tuple[TextBlock, ...] | FramedBlocks:
        speaker = self.speaker(msg)
        if isinstance(msg.content, str):
            return f"\n{speaker}: {self.text(msg.content)}"
        lines = [self._line(speaker, block, msg) for block in msg.content]
        if msg.features & _NOT_LINES:
            return frame_blocks(speaker, lines)
        texts = tuple(cast("list[TextBlock]", lines))
        return texts[0].text if len(texts) == 1 else texts

    def _line(self, speaker: str, block: Block, msg: Msg) -> Piece | None:
        if isinstance(block, TextBlock):
            return build_trusted_text(f"\n{speaker}: {self.text(block.text)}")
        return cast("Piece", block) if has_line(block, msg) else None

    def speaker(self, msg: Msg) -> str:
        """The speaker as a line begins with it, its time included."""
        shown = safe_name(msg.name or msg.role, self.tag) if self.frame == "safe" else msg.name
        return f"[{_flat(msg.timestamp)}] {shown}" if self.timestamps else shown

    def text(self, text: str) -> str:
        """A text as the frame shows it."""
        return safe_text(text, self.tag) if self.frame == "safe" else text


def _one_of(option: str, given: str, allowed: Sequence[str]) -> None:
    if given not in allowed:
        raise OptionError(option, f"{given!r} is none of {', '.join(allowed)}", "Choose one of them.")


def _flat(timestamp: str | None) -> str:
    """A timestamp that ends at its bracket."""
    return re.sub(r"[\[\]<>|\s]+", " ", timestamp or "-").strip() or "-"
