"""`Framing`: a conversation as frames in which speakers speak, and native turns between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from agentkit.capabilities.capabilities import Capabilities
from agentkit.history.transcript import mark_frame
from agentkit.ledger.entries import FRAME_LINE, Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import Provenance, TracedConversation, block_origins, prompt_length
from agentkit.messages.blocks import (
    Block,
    InvalidBlock,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    build_trusted_text,
)
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted
from agentkit.tools.tool_texts import call_text, result_text

__all__ = ["FramedBlocks", "Framing", "Piece", "frame_blocks", "has_line", "is_reply_part"]

Piece: TypeAlias = TextBlock | MediaBlock | OpaqueBlock | InvalidBlock

_INVISIBLE = Note(Disposition.DROPPED, "the viewer does not see it")
_TOOL_USE = Note(Disposition.DROPPED, "another agent's tool use")
_UNSAID = Note(Disposition.DROPPED, "thinking, or a provider's own part, of a speaker in the frame")


def has_line(block: Block, msg: Msg) -> bool:
    """Returns True if a frame states the block of a message: no tool use, thinking or part of a reply."""
    return not (_is_tool(block) or isinstance(block, ThinkingBlock) or is_reply_part(block, msg))


def _is_tool(block: Block) -> bool:
    return isinstance(block, ToolUseBlock | ToolResultBlock)


def is_reply_part(block: Block, msg: Msg) -> bool:
    """Whether a block is a part of a reply that only its provider knows: no line of a frame."""
    return isinstance(block, OpaqueBlock) and bool(msg.features & Feature.ASSISTANT)


@dataclass(frozen=True, slots=True)
class FramedBlocks:
    """Blocks as a frame says them: the pieces, and for each its place, a name or the number of its block.

    `features` are those of the media among them, `unsaid` the numbers of the blocks that are thinking.
    """

    pieces: tuple[Piece, ...]
    places: tuple[str | int, ...]
    features: int
    unsaid: tuple[int, ...]


def frame_blocks(speaker: str, lines: Sequence[Piece | None]) -> FramedBlocks:
    """Lines, media and parts that only a wire knows in their order; None is unsaid.

    Media that no line of its speaker precedes gets one that is only the name.
    """
    said: list[tuple[Piece, str | int]] = []
    for at, line in enumerate(lines):
        if isinstance(line, TextBlock):
            said.append((line, "line"))
        elif line is not None:
            if not said:
                said.append((build_trusted_text(f"\n{speaker}:"), "speaker"))
            said.append((line, at))
    media = tuple(piece for piece, _ in said if not isinstance(piece, TextBlock))
    features = build_trusted("", media, "user").features if media else 0
    unsaid = tuple(at for at, line in enumerate(lines) if line is None)
    return FramedBlocks(tuple(piece for piece, _ in said), tuple(place for _, place in said), features, unsaid)


class Frames(Protocol):
    """What a policy says of its frames; see MultiAgentHistory."""

    @property
    def viewer(self) -> str | None: ...

    @property
    def visible(self) -> Callable[[Msg], bool] | None: ...

    @property
    def other_agents_tools(self) -> str: ...

    @property
    def tag(self) -> str: ...

    @property
    def opening(self) -> str: ...

    def lines_of(self, msg: Msg) -> str | tuple[TextBlock, ...] | FramedBlocks: ...

    def speaker(self, msg: Msg) -> str: ...

    def text(self, text: str) -> str: ...


class Framing:
    """One rendering of a conversation into frames."""

    def __init__(
        self, policy: Frames, draft: TracedConversation, ledger: Ledger, capabilities: Capabilities
    ) -> None:
        self.policy = policy
        self.draft = draft
        self.ledger = ledger
        self.form = capabilities
        self.asked: set[str] = set()  # by parts in native turns, and not answered yet
        self.native_system = capabilities.turns.late_system == "native"
        self.apart = capabilities.turns.text_joining == "apart"
        self.out = TracedConversation([], [])
        self.opening: str | None = policy.opening
        self.pieces: list[str | Piece] = []  # the frame that is open, each text behind its line break
        self.places: list[Provenance] = []
        self.features = 0
        self.framed: list[int] = []

    def run(self) -> TracedConversation:
        """The conversation in frames."""
        stop = prompt_length(self.draft.msgs)
        self._keep_system(stop)
        if self.policy.viewer is None and self.policy.visible is None:
            self._frame_all(stop)
        else:
            self._frame_units(stop)
        self._close()
        if self.framed:
            self.ledger.note_messages(self.framed, FRAME_LINE)
        return self.out

    def _frame_all(self, at: int) -> None:
        """Nobody's view: every exchange is native, everything else is said."""
        native = Feature.TOOL | (Feature.SYSTEM if self.native_system else 0)
        add, whence = self.out.msgs.append, self.out.origins.append
        for number in range(at, len(self.draft.msgs)):
            msg = self.draft.msgs[number]
            if msg.features & native or self._goes_on(msg):
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
            while stop < len(msgs) and msgs[stop].features & Feature.RESULT:
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
        elif not msg.features & Feature.TOOL:
            self._say(start)
        else:
            self._retell(start, stop)

    def _is_seen(self, start: int, stop: int) -> bool:
        visible = self.policy.visible
        if visible is None or all(visible(msg) for msg in self.draft.msgs[start:stop]):
            return True
        for at in range(start, stop):
            self._note_all(block_origins(self.draft.msgs[at], self.draft.origins[at]), _INVISIBLE)
        return False

    def _stays_native(self, msg: Msg) -> bool:
        policy = self.policy
        if msg.features & Feature.SYSTEM:
            return self.native_system
        if policy.viewer is not None and msg.name == policy.viewer and msg.role == "assistant":
            return True
        return bool(msg.features & Feature.TOOL) and (
            policy.viewer is None or policy.other_agents_tools == "native"
        )

    def _note_asked(self, msg: Msg) -> None:
        """Write down what a provider's own parts in a native turn ask, and what they answer."""
        if msg.features & Feature.OPAQUE:
            pairs = [self.form.find_pair(block) for block in msg.blocks]
            self.asked |= {name for role, name in pairs if role == "request"}
            self.asked -= {name for role, name in pairs if role == "response"}

    def _goes_on(self, msg: Msg) -> bool:
        """Whether a reply answers what a part of a native turn asks: half of such a pair is worth nothing."""
        if not self.asked or not msg.features & Feature.OPAQUE:
            return False
        return any(
            role == "response" and name in self.asked for role, name in map(self.form.find_pair, msg.blocks)
        )

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

    def _frame(self, whole: int | tuple[Provenance, ...]) -> None:
        if isinstance(whole, int):
            self.framed.append(whole)
            return
        self._note_all(whole, FRAME_LINE)

    def _add(self, said: FramedBlocks, whole: int | Sequence[Provenance]) -> None:
        """What is said by blocks that come from there."""
        self.pieces.extend(said.pieces)
        self.places.extend([at if isinstance(at, str) else _origin(whole, at) for at in said.places])
        self.features |= said.features
        self._note_all((_origin(whole, at) for at in said.unsaid), _UNSAID)

    def _retell(self, start: int, stop: int) -> None:
        """Another agent's exchange as lines under its name; with `drop`, without its calls and results."""
        drops = self.policy.other_agents_tools == "drop"
        speaker = self.policy.speaker(self.draft.msgs[start])
        for at in range(start, stop):
            msg, whole = self.draft.msgs[at], self.draft.origins[at]
            sources = [*zip(msg.blocks, block_origins(msg, whole), strict=True)]
            kept = [(block, origin) for block, origin in sources if not (drops and _is_tool(block))]
            self._note_all([origin for block, origin in sources if drops and _is_tool(block)], _TOOL_USE)
            told = [pair for block, origin in kept for pair in self._told(block, origin, msg)]
            lines = [self._as_piece(speaker, piece) for piece, _ in told]
            self._add(frame_blocks(speaker, lines), [place for _, place in told])
            self._frame(whole if len(kept) == len(sources) else tuple(origin for _, origin in kept))

    def _as_piece(self, speaker: str, told: str | Piece | None) -> Piece | None:
        return build_trusted_text(f"\n{speaker}: {self.policy.text(told)}") if isinstance(told, str) else told

    def _told(self, block: Block, origin: Provenance, msg: Msg) -> Iterator[tuple[str | Piece | None, Provenance]]:
        if isinstance(block, TextBlock):
            yield block.text, origin
        elif isinstance(block, ToolUseBlock):
            yield call_text(block), origin
        elif isinstance(block, ToolResultBlock):
            yield result_text(block, block.name), origin
            for number, item in enumerate(block.items):
                if not isinstance(item, TextBlock):
                    yield item, origin if isinstance(origin, str) else (*origin, number)
        elif isinstance(block, ThinkingBlock) or is_reply_part(block, msg):
            yield None, origin
        else:
            yield block, origin

    def _note_all(self, origins: Iterable[Provenance], note: Note) -> None:
        for origin in origins:
            if not isinstance(origin, str):
                self.ledger.note(origin, note)

    def _close(self) -> None:
        """Write the frame that is open, if anything is in it."""
        if not self.pieces:
            return
        tag = self.policy.tag
        pieces = [f"{self.opening or ''}<{tag}>", *self.pieces, f"\n</{tag}>"]
        origins: tuple[Provenance, ...] = ("frame", *self.places, "frame")
        if self.apart:
            blocks = tuple([build_trusted_text(piece) if isinstance(piece, str) else piece for piece in pieces])
        else:
            blocks, origins = _glued(pieces, origins)
        if self.opening is not None:
            self.ledger.add_synthesis("preamble", "the text before the first history frame")
        self.ledger.add_synthesis("frame", "the tags around a run of speakers")
        framed = build_trusted("user", blocks, "user", features=self.features | Feature.TEXT | Feature.OTHER)
        mark_frame(framed, tag)
        self.out.add(framed, origins)
        self.opening = None
        self.pieces, self.places, self.features = [], [], 0


def _origin(whole: int | Sequence[Provenance], at: int) -> Provenance:
    """Where one block of a draft's message comes from."""
    return (whole, at) if isinstance(whole, int) else whole[at]


def _glued(
    pieces: Sequence[str | Piece], origins: Sequence[Provenance]
) -> tuple[tuple[Piece, ...], tuple[Provenance, ...]]:
    """One text as far as no media stands in between: the server joins the parts by line breaks."""
    joined: list[Piece] = []
    places: list[Provenance] = []
    lines: list[str] = []
    for piece, origin in zip(pieces, origins, strict=True):
        if isinstance(piece, str | TextBlock):
            text = piece if isinstance(piece, str) else piece.text
            lines.append(text if lines or not joined else text[1:])
            continue
        if lines:
            joined.append(build_trusted_text("".join(lines)))
            places.append("frame")
            lines = []
        joined.append(piece)
        places.append(origin)
    joined.append(build_trusted_text("".join(lines)))
    return tuple(joined), (*places, "frame")
