"""History policies: how many voices become two."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias, cast

from agentkit.blocks import (
    Block,
    InvalidBlock,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    plain_text,
)
from agentkit.capabilities import Capabilities
from agentkit.errors import OptionError, check_option, check_text
from agentkit.exchanges import Draft, Origin, block_origins, prompt_length
from agentkit.frames import mark_frame, read_history, safe_name, safe_text
from agentkit.ledger import FRAMED, Disposition, Ledger, Note
from agentkit.messages import Msg, derive, recall, remember
from agentkit.traits import Trait

__all__ = ["ChatHistory", "HistoryPolicy", "MultiAgentHistory"]


class HistoryPolicy:
    """A policy of your own: override `view`, a pure function of messages.

    It gets the conversation in normal form (see `repair`) and gives the messages that one model is to see.
    What it leaves out and what it adds is found in the ledger by the identity of the blocks.
    """

    shows_all: bool = False
    """Whether everything that is said reaches the request, so that weights of messages say what it weighs."""

    def view(self, msgs: Sequence[Msg]) -> Sequence[Msg]:
        """The conversation as the model is to see it."""
        return msgs

    def sees(self, unit: Sequence[Msg]) -> bool:
        """Whether the model sees anything of a message, or of an exchange."""
        return True

    def render(self, draft: Draft, ledger: Ledger, capabilities: Capabilities) -> Draft:
        """`view` with the account of where each block comes from."""
        shown = self.view(tuple(draft.msgs))
        if not isinstance(shown, Sequence) or not all(isinstance(msg, Msg) for msg in shown):
            reason = f"{type(self).__name__}.view gave something else than messages"
            raise OptionError("history", reason, "Return a sequence of Msg.")
        whole_of: dict[int, deque[int | tuple[Origin, ...]]] = {}
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
        out = Draft([], [])
        for msg in shown:
            places = whole_of.get(id(msg))
            whole: int | tuple[Origin, ...] | None = places.popleft() if places else None
            traced = tuple(origin_of.get(id(block), "history") for block in msg.blocks)
            out.add(msg, traced if whole is None else whole)
        _note_absent(draft, out, ledger)
        return out


def _note_absent(before: Draft, after: Draft, ledger: Ledger) -> None:
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

    shows_all = True

    def render(self, draft: Draft, ledger: Ledger, capabilities: Capabilities) -> Draft:
        """The same draft."""
        return draft


_PREAMBLE = "# Conversation History\nThe content between <{tag}></{tag}> tags contains your conversation history\n"


@cache
def _line_key(*options: object) -> object:
    """What lines are kept under with their messages: one object for equal options, quick to look up."""
    return object()


_Piece: TypeAlias = TextBlock | MediaBlock | OpaqueBlock | InvalidBlock

_NOT_LINES = Trait.MEDIA | Trait.INVALID | Trait.THINKING | Trait.TOOL | Trait.OPAQUE


def _is_replys(block: Block, msg: Msg) -> bool:
    """Whether a block is a part of a reply that only its provider knows: no line of a frame."""
    return isinstance(block, OpaqueBlock) and bool(msg.traits & Trait.ASSISTANT)


@dataclass(frozen=True, slots=True)
class _Said:
    """Blocks as a frame says them: the pieces, and for each its place, a name or the number of its block.

    `traits` are those of the media among them, `unsaid` the numbers of the blocks that are thinking.
    """

    pieces: tuple[_Piece, ...]
    places: tuple[str | int, ...]
    traits: int
    unsaid: tuple[int, ...]


def _said(speaker: str, lines: Sequence[_Piece | None]) -> _Said:
    """Lines, media and parts that only a wire knows in their order; None is unsaid.

    Media that no line of its speaker precedes gets one that is only the name.
    """
    said: list[tuple[_Piece, str | int]] = []
    for at, line in enumerate(lines):
        if isinstance(line, TextBlock):
            said.append((line, "line"))
        elif line is not None:
            if not said:
                said.append((plain_text(f"\n{speaker}:"), "speaker"))
            said.append((line, at))
    media = tuple(piece for piece, _ in said if not isinstance(piece, TextBlock))
    traits = derive("", media, "user").traits if media else 0
    unsaid = tuple(at for at, line in enumerate(lines) if line is None)
    return _Said(tuple(piece for piece, _ in said), tuple(place for _, place in said), traits, unsaid)


@dataclass(frozen=True)
class MultiAgentHistory(HistoryPolicy):
    """Runs of tool-free messages as one user turn: a preamble, and a line `NAME: TEXT` for each text.

    viewer        the agent the request is made for: it is told its name, and its own turns (its name *and*
                  role assistant) stay native
    frame         `safe`: no name and no text can close the frame or speak as another, and `read_history`
                  undoes it; `plain`: names and texts as they are
    preamble      the text before the first frame; None for AgentScope's
    tags          the name of the frame's tag
    others_tools  other agents' exchanges, given a viewer: lines of `text`, `drop`, or `native`
    visible       which messages the viewer sees at all; an exchange is seen if all its messages are
    timestamps    whether each line begins with `[TIMESTAMP] `
    """

    viewer: str | None = None
    frame: Literal["safe", "plain"] = "safe"
    preamble: str | None = None
    tags: str = "history"
    others_tools: Literal["text", "drop", "native"] = "text"
    visible: Callable[[Msg], bool] | None = None
    timestamps: bool = False

    def __post_init__(self) -> None:
        check_text("viewer", self.viewer)
        check_text("preamble", self.preamble)
        check_option("tags", self.tags, str)
        if self.visible is not None and not callable(self.visible):
            raise OptionError("visible", f"{self.visible!r} is no function", "Give a function of Msg.")
        if not re.fullmatch(r"[A-Za-z][\w.-]*", self.tags, re.ASCII):
            raise OptionError("tags", f"{self.tags!r} is no tag name", "Use letters, as in 'history'.")
        _one_of("frame", self.frame, ("safe", "plain"))
        _one_of("others_tools", self.others_tools, ("text", "drop", "native"))

    @property
    def shows_all(self) -> bool:  # type: ignore[override]
        """Whether the viewer sees everything."""
        return self.visible is None and (self.viewer is None or self.others_tools != "drop")

    def sees(self, unit: Sequence[Msg]) -> bool:
        """Whether the viewer sees all of it, and not as another's tool use that is dropped."""
        if self.visible is not None and not all(map(self.visible, unit)):
            return False
        others = self.viewer is not None and self.others_tools == "drop"
        own = unit[0].name == self.viewer and unit[0].role == "assistant"
        return not (others and unit[0].traits & Trait.TOOL and not own)

    @cached_property
    def opening(self) -> str:
        """What the first frame begins with: the preamble and who the viewer is."""
        text = _PREAMBLE.format(tag=self.tags) if self.preamble is None else self.preamble
        if self.viewer is None:
            return text
        name = self.viewer if self.frame == "plain" else safe_name(self.viewer, self.tags)
        lead = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{lead}You are {name}.\n"

    @cached_property
    def _key(self) -> object:
        return _line_key(self.frame, self.tags, self.timestamps)

    def read(self, rendered: str | Iterable[str | Mapping[str, Any] | TextBlock]) -> list[tuple[str, str]]:
        """`read_history` with this policy's tag and timestamps."""
        return read_history(rendered, tags=self.tags, timestamps=self.timestamps)

    def render(self, draft: Draft, ledger: Ledger, capabilities: Capabilities) -> Draft:
        """The frames, and between them what stays native."""
        return _Framing(self, draft, ledger, capabilities).run()

    def lines_of(self, msg: Msg) -> str | tuple[TextBlock, ...] | _Said:
        """A tool-free message in the frame: one text as a string, several as blocks, or all that it says.

        Each line stands behind its line break. Worked out once in the message's life.
        """
        lines = recall(msg, self._key)
        if lines is None:
            lines = remember(msg, self._key, self._lines(msg))
        return cast("str | tuple[TextBlock, ...] | _Said", lines)

    def _lines(self, msg: Msg) -> str | tuple[TextBlock, ...] | _Said:
        speaker = self.speaker(msg)
        if isinstance(msg.content, str):
            return f"\n{speaker}: {self.text(msg.content)}"
        lines = [self._line(speaker, block, msg) for block in msg.content]
        if msg.traits & _NOT_LINES:
            return _said(speaker, lines)
        texts = tuple(cast("list[TextBlock]", lines))
        return texts[0].text if len(texts) == 1 else texts

    def _line(self, speaker: str, block: Block, msg: Msg) -> _Piece | None:
        if isinstance(block, TextBlock):
            return plain_text(f"\n{speaker}: {self.text(block.text)}")
        if isinstance(block, ThinkingBlock | ToolUseBlock | ToolResultBlock) or _is_replys(block, msg):
            return None
        return block

    def speaker(self, msg: Msg) -> str:
        """The speaker as a line begins with it, its time included."""
        name = msg.name or msg.role
        shown = safe_name(name, self.tags) if self.frame == "safe" else name
        return f"[{_flat(msg.timestamp)}] {shown}" if self.timestamps else shown

    def text(self, text: str) -> str:
        """A text as the frame shows it."""
        return safe_text(text, self.tags) if self.frame == "safe" else text


def _one_of(option: str, given: str, allowed: Sequence[str]) -> None:
    if given not in allowed:
        raise OptionError(option, f"{given!r} is none of {', '.join(allowed)}", "Choose one of them.")


def _flat(timestamp: str | None) -> str:
    """A timestamp that ends at its bracket."""
    return re.sub(r"[\[\]<>|\s]+", " ", timestamp or "-").strip() or "-"


class _Framing:
    """One rendering of a conversation into frames."""

    def __init__(
        self, policy: MultiAgentHistory, draft: Draft, ledger: Ledger, capabilities: Capabilities
    ) -> None:
        self.policy = policy
        self.draft = draft
        self.ledger = ledger
        self.form = capabilities
        self.asked: set[str] = set()  # by parts in native turns, and not answered yet
        self.native_system = capabilities.late_system == "native"
        self.apart = capabilities.parts == "apart"
        self.out = Draft([], [])
        self.opening: str | None = policy.opening
        self.pieces: list[str | _Piece] = []  # the frame that is open, each text behind its line break
        self.places: list[Origin] = []
        self.traits = 0
        self.framed: list[int] = []

    def run(self) -> Draft:
        stop = prompt_length(self.draft.msgs)
        self._keep_system(stop)
        if self.policy.viewer is None and self.policy.visible is None:
            self._frame_all(stop)
        else:
            self._frame_units(stop)
        self._close()
        if self.framed:
            self.ledger.note_messages(self.framed, FRAMED)
        return self.out

    def _frame_all(self, at: int) -> None:
        """Nobody's view: every exchange is native, everything else is said."""
        native = Trait.TOOL | (Trait.SYSTEM if self.native_system else 0)
        add, whence = self.out.msgs.append, self.out.origins.append
        for number in range(at, len(self.draft.msgs)):
            msg = self.draft.msgs[number]
            if msg.traits & native or self._goes_on(msg):
                if self.pieces:
                    self._close()
                add(msg)
                whence(self.draft.origins[number])
                self._note_asked(msg)
            else:
                self._say(number)

    def _frame_units(self, at: int) -> None:
        """One viewer's view, unit by unit."""
        msgs = self.draft.msgs
        while at < len(msgs):
            stop = at + 1
            while stop < len(msgs) and msgs[stop].traits & Trait.RESULT:
                stop += 1
            self._unit(at, stop)
            at = stop

    def _keep_system(self, stop: int) -> None:
        """The system prompt as it is."""
        for at in range(stop):
            if self._is_seen(at, at + 1):
                self.out.add(self.draft.msgs[at], self.draft.origins[at])

    def _unit(self, start: int, stop: int) -> None:
        """One unit: left out, native, told again, or said."""
        msg = self.draft.msgs[start]
        if not self._is_seen(start, stop):
            return
        if self._stays_native(msg) or self._goes_on(msg):
            self._close()
            for at in range(start, stop):
                self.out.add(self.draft.msgs[at], self.draft.origins[at])
                self._note_asked(self.draft.msgs[at])
        elif not msg.traits & Trait.TOOL:
            self._say(start)
        elif self.policy.others_tools == "drop":
            self._leave_out(start, stop, "another agent's tool use")
        else:
            self._retell(start, stop)

    def _is_seen(self, start: int, stop: int) -> bool:
        visible = self.policy.visible
        if visible is None or all(visible(msg) for msg in self.draft.msgs[start:stop]):
            return True
        self._leave_out(start, stop, "the viewer does not see it")
        return False

    def _stays_native(self, msg: Msg) -> bool:
        policy = self.policy
        if msg.traits & Trait.SYSTEM:
            return self.native_system
        if policy.viewer is not None and msg.name == policy.viewer and msg.role == "assistant":
            return True
        return bool(msg.traits & Trait.TOOL) and (policy.viewer is None or policy.others_tools == "native")

    def _note_asked(self, msg: Msg) -> None:
        """Write down what a provider's own parts in a native turn ask, and what they answer."""
        if msg.traits & Trait.OPAQUE:
            pairs = [self.form.pair_of(block) for block in msg.blocks]
            self.asked |= {name for role, name in pairs if role == "asks"}
            self.asked -= {name for role, name in pairs if role == "answers"}

    def _goes_on(self, msg: Msg) -> bool:
        """Whether a reply answers what a part of a native turn asks: half of such a pair is worth nothing."""
        if not self.asked or not msg.traits & Trait.OPAQUE:
            return False
        return any(role == "answers" and name in self.asked for role, name in map(self.form.pair_of, msg.blocks))

    def _say(self, at: int) -> None:
        """The lines of one message."""
        msg, whole = self.draft.msgs[at], self.draft.origins[at]
        lines = self.policy.lines_of(msg)
        if isinstance(lines, str):
            self.pieces.append(lines)
            self.places.append("line")
        elif isinstance(lines, tuple):
            self.pieces.extend(lines)
            self.places.extend(["line"] * len(lines))
        else:
            self._add(lines, whole)
        self._frame(whole)

    def _frame(self, whole: int | tuple[Origin, ...]) -> None:
        if isinstance(whole, int):
            self.framed.append(whole)
            return
        for origin in whole:
            if not isinstance(origin, str):
                self.ledger.note(origin, FRAMED)

    def _add(self, said: _Said, whole: int | Sequence[Origin]) -> None:
        """What is said by blocks that come from there."""
        self.pieces.extend(said.pieces)
        self.places.extend([at if isinstance(at, str) else _origin(whole, at) for at in said.places])
        self.traits |= said.traits
        for origin in [_origin(whole, at) for at in said.unsaid]:
            if not isinstance(origin, str):
                note = Note(Disposition.DROPPED, "thinking, or a provider's own part, of a speaker in the frame")
                self.ledger.note(origin, note)

    def _retell(self, start: int, stop: int) -> None:
        """Another agent's exchange as lines under its name."""
        msgs, origins = self.draft.msgs, self.draft.origins
        speaker = self.policy.speaker(msgs[start])
        for at in range(start, stop):
            lines: list[_Piece | None] = []
            places: list[Origin] = []
            for block, origin in zip(msgs[at].blocks, block_origins(msgs[at], origins[at]), strict=True):
                for told, place in self._told(block, origin, msgs[at]):
                    said = plain_text(f"\n{speaker}: {self.policy.text(told)}") if isinstance(told, str) else told
                    lines.append(said)
                    places.append(place)
            self._add(_said(speaker, lines), places)
            self._frame(origins[at])

    def _told(self, block: Block, origin: Origin, msg: Msg) -> Iterator[tuple[str | _Piece | None, Origin]]:
        if isinstance(block, TextBlock):
            yield block.text, origin
        elif isinstance(block, ToolUseBlock):
            yield f"(calls {block.name} with {block.arguments})", origin
        elif isinstance(block, ToolResultBlock):
            failed = ", an error" if block.is_error else ""
            yield f"(result of {block.name}{failed}) {block.text}", origin
            for number, item in enumerate(block.items):
                if not isinstance(item, TextBlock):
                    yield item, origin if isinstance(origin, str) else (*origin, number)
        elif isinstance(block, ThinkingBlock) or _is_replys(block, msg):
            yield None, origin
        else:
            yield block, origin

    def _leave_out(self, start: int, stop: int, reason: str) -> None:
        for at in range(start, stop):
            for origin in block_origins(self.draft.msgs[at], self.draft.origins[at]):
                if not isinstance(origin, str):
                    self.ledger.note(origin, Note(Disposition.DROPPED, reason))

    def _close(self) -> None:
        """Write the frame that is open, if anything is in it."""
        if not self.pieces:
            return
        tag = self.policy.tags
        pieces = [f"{self.opening or ''}<{tag}>", *self.pieces, f"\n</{tag}>"]
        origins: tuple[Origin, ...] = ("frame", *self.places, "frame")
        if self.apart:
            blocks = tuple([plain_text(piece) if isinstance(piece, str) else piece for piece in pieces])
        else:
            blocks, origins = _glued(pieces, origins)
        if self.opening is not None:
            self.ledger.invent("preamble", "the text before the first history frame")
        self.ledger.invent("frame", "the tags around a run of speakers")
        framed = derive("user", blocks, "user", traits=self.traits | Trait.TEXT | Trait.OTHER)
        mark_frame(framed, tag)
        self.out.add(framed, origins)
        self.opening = None
        self.pieces, self.places, self.traits = [], [], 0


def _origin(whole: int | Sequence[Origin], at: int) -> Origin:
    """Where one block of a draft's message comes from."""
    return (whole, at) if isinstance(whole, int) else whole[at]


def _glued(
    pieces: Sequence[str | _Piece], origins: Sequence[Origin]
) -> tuple[tuple[_Piece, ...], tuple[Origin, ...]]:
    """One text as far as no media stands in between: the server joins the parts by line breaks."""
    joined: list[_Piece] = []
    places: list[Origin] = []
    lines: list[str] = []
    for piece, origin in zip(pieces, origins, strict=True):
        if isinstance(piece, str | TextBlock):
            text = piece if isinstance(piece, str) else piece.text
            lines.append(text if lines or not joined else text[1:])
            continue
        if lines:
            joined.append(plain_text("".join(lines)))
            places.append("frame")
            lines = []
        joined.append(piece)
        places.append(origin)
    joined.append(plain_text("".join(lines)))
    return tuple(joined), (*places, "frame")
