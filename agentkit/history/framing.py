"""`Framing`: writes a conversation as history frames.

A history frame is one user turn of `NAME: TEXT` lines between tags. Messages that cannot become lines remain
separate turns (native turns) between the frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from agentkit.capabilities.capabilities import Capabilities
from agentkit.history.frame_texts import closing_text
from agentkit.history.framed_lines import FramedBlocks, Piece, frame_blocks, is_reply_part, is_tool_block
from agentkit.ledger.entries import FRAME_LINE, Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import (
    FrameOrigins,
    MessageOrigin,
    Provenance,
    TracedConversation,
    TracedMessage,
)
from agentkit.messages.blocks import (
    Block,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    build_trusted_text,
)
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted
from agentkit.messages.system_prompt import prompt_length
from agentkit.tools.result_texts import call_text, result_text

if TYPE_CHECKING:
    from agentkit.history.policies import MultiAgentHistory

__all__ = ["Framing"]

_INVISIBLE = Note(
    Disposition.DROPPED, "the history policy hides this message from the agent that the request is for"
)
_TOOL_USE = Note(Disposition.DROPPED, "the history policy omits tool calls and results of other agents")
_NO_LINE = Note(
    Disposition.DROPPED,
    "thinking and provider-specific data of another speaker cannot be written as a line of the history",
)


class Framing:
    """Builder of the history frames of one conversation.

    Consecutive messages become lines of one frame. A message that must stay unchanged becomes a separate turn
    (native turn) and ends the frame.
    """

    def __init__(
        self,
        policy: MultiAgentHistory,
        conversation: TracedConversation,
        ledger: Ledger,
        capabilities: Capabilities,
    ) -> None:
        self.policy = policy
        self.conversation = conversation
        self.ledger = ledger
        self.capabilities = capabilities
        self.open_pairs: set[str] = set()  # keys of provider-run tool calls that still have no response block
        self.native_features = policy.get_native_features(capabilities)
        self.keeps_parts_apart = capabilities.turns.text_joining == "apart"
        self.out = TracedConversation([], [])
        self.opening: str | None = policy.opening  # text before the first frame; None after the first frame
        self.pieces: list[str | Piece] = []  # contents of the current frame; each text starts with a line break
        self.origins: list[Provenance] = []
        self.features = 0
        self.framed: list[int] = []  # indexes of the input messages that became lines

    def run(self) -> TracedConversation:
        """Returns the conversation with history frames in place of the messages that become lines."""
        prompt = prompt_length(self.conversation.msgs)
        for index in range(prompt):
            if self._is_visible(index, index + 1):
                self.out.add(*self.conversation.get(index))
        if self.policy.viewer is None and self.policy.visible is None:
            self._frame_messages(prompt)
        else:
            self._frame_units(prompt)
        self._close_frame()
        if self.framed:
            self.ledger.note_messages(self.framed, FRAME_LINE)
        if self.conversation.normal_form is not None:
            # A tool call and its results stay separate turns, become lines, or are omitted, always together.
            # Each remaining tool call therefore still has its result, so the turns need no repair.
            turns = self.out.msgs[prompt_length(self.out.msgs) :]
            self.out.normal_form = self.conversation.normal_form.for_messages(turns)
        return self.out

    def _frame_messages(self, start: int) -> None:
        """Writes the conversation for a policy whose `viewer` and `visible` are None."""
        native, msgs, origins = self.native_features, self.conversation.msgs, self.conversation.origins
        for index in range(start, len(msgs)):
            msg = msgs[index]
            if msg.features & native or self._continues_pair(msg):
                if self.pieces:
                    self._close_frame()
                self.out.add(msg, origins[index])
                self._note_pairs(msg)
            else:
                self._add_message(index)

    def _frame_units(self, start: int) -> None:
        """Writes the messages that the viewer sees. A tool call and its results are visible or hidden together."""
        msgs = self.conversation.msgs
        while start < len(msgs):
            stop = start + 1
            while stop < len(msgs) and msgs[stop].features & Feature.RESULT:
                stop += 1
            if self._is_visible(start, stop):
                self._frame_unit(start, stop)
            start = stop

    def _frame_unit(self, start: int, stop: int) -> None:
        msg = self.conversation.msgs[start]
        is_native = msg.features & self.native_features or self.policy.is_own_turn(msg)
        if is_native or self._continues_pair(msg):
            self._close_frame()
            for index in range(start, stop):
                self.out.add(*self.conversation.get(index))
                self._note_pairs(self.conversation.msgs[index])
        elif msg.features & Feature.TOOL:
            self._add_exchange(start, stop)
        else:
            self._add_message(start)

    def _is_visible(self, start: int, stop: int) -> bool:
        """Returns True if the viewer sees all messages from `start` up to, but not including, `stop`.

        Otherwise, the method records in the ledger that these messages are hidden, and returns False.
        """
        visible = self.policy.visible
        if visible is None or all(visible(msg) for msg in self.conversation.msgs[start:stop]):
            return True
        for traced in self.conversation.part(start, stop):
            self.ledger.note_origins(traced.block_origins, _INVISIBLE)
        return False

    def _note_pairs(self, msg: Msg) -> None:
        """Updates `open_pairs`: the provider-run tool calls (opaque blocks) that still have no response block."""
        if msg.features & Feature.OPAQUE:
            pairs = [self.capabilities.find_pair(block) for block in msg.blocks]
            self.open_pairs |= {key for role, key in pairs if role == "request"}
            self.open_pairs -= {key for role, key in pairs if role == "response"}

    def _continues_pair(self, msg: Msg) -> bool:
        """Returns True if a message has the response block for an earlier tool call that the provider ran.

        Both blocks must stay in native turns, because the API refuses one block without the other.
        """
        if not self.open_pairs or not msg.features & Feature.OPAQUE:
            return False
        pairs = map(self.capabilities.find_pair, msg.blocks)
        return any(role == "response" and key in self.open_pairs for role, key in pairs)

    # -- lines ---------------------------------------------------------------------------------------------------

    def _add_message(self, index: int) -> None:
        origin = self.conversation.origins[index]
        lines = self.policy.render_lines(self.conversation.msgs[index])
        if isinstance(lines, str):
            self.pieces.append(lines)
            self.origins.append("line")
        elif isinstance(lines, tuple):
            self.pieces.extend(lines)
            self.origins.extend(["line"] * len(lines))
        else:
            self._add_pieces(lines, origin)
        self._note_framed(origin)

    def _note_framed(self, origin: MessageOrigin) -> None:
        if isinstance(origin, int):
            self.framed.append(origin)
        else:
            self.ledger.note_origins(origin, FRAME_LINE)

    def _add_pieces(self, framed: FramedBlocks, origin: int | Sequence[Provenance]) -> None:
        """Adds blocks to the frame.

        `origin` is the index of the message that contains the blocks, or a sequence with the origin of each input
        block.
        """
        self.pieces.extend(framed.pieces)
        self.origins.extend(
            [item if isinstance(item, str) else _block_origin(origin, item) for item in framed.origins]
        )
        self.features |= framed.features
        self.ledger.note_origins([_block_origin(origin, index) for index in framed.omitted], _NO_LINE)

    def _add_exchange(self, start: int, stop: int) -> None:
        """Adds another agent's tool calls and results as lines.

        If the policy drops tool calls and results of other agents, only the other blocks of the messages are
        added.
        """
        drops_tools = self.policy.other_agents_tools == "drop"
        speaker = self.policy.format_speaker(self.conversation.msgs[start])
        for traced in self.conversation.part(start, stop):
            blocks = [*traced.traced_blocks]
            if drops_tools:
                self.ledger.note_origins([origin for block, origin in blocks if is_tool_block(block)], _TOOL_USE)
            remaining = [pair for pair in blocks if not (drops_tools and is_tool_block(pair[0]))]
            parts = [*self._list_parts(remaining, traced)]
            pieces = [self._as_piece(speaker, part) for part, _ in parts]
            self._add_pieces(frame_blocks(speaker, pieces), [origin for _, origin in parts])
            is_whole = len(remaining) == len(blocks)
            self._note_framed(traced.origin if is_whole else tuple(origin for _, origin in remaining))

    def _as_piece(self, speaker: str, part: str | Piece | None) -> Piece | None:
        if isinstance(part, str):
            return build_trusted_text(f"\n{speaker}: {self.policy.format_text(part)}")
        return part

    def _list_parts(
        self, blocks: Iterable[tuple[Block, Provenance]], traced: TracedMessage
    ) -> Iterator[tuple[str | Piece | None, Provenance]]:
        """Yields, for each input block, the text or block to write in the frame, and the origin of the block.

        None means that the frame omits the input block.
        """
        for block, origin in blocks:
            if isinstance(block, TextBlock):
                yield block.text, origin
            elif isinstance(block, ToolUseBlock):
                yield call_text(block), origin
            elif isinstance(block, ToolResultBlock):
                yield result_text(block, block.name), origin
                for index, item in enumerate(block.items):
                    if not isinstance(item, TextBlock):
                        yield item, origin if isinstance(origin, str) else (*origin, index)
            elif isinstance(block, ThinkingBlock) or is_reply_part(block, traced.msg):
                yield None, origin
            else:
                yield block, origin

    # -- frames --------------------------------------------------------------------------------------------------

    def _close_frame(self) -> None:
        if not self.pieces:
            return
        tag = self.policy.tag
        pieces = [f"{self.opening or ''}<{tag}>", *self.pieces, closing_text(tag)]
        origins: tuple[Provenance, ...] = ("frame", *self.origins, "frame")
        if self.keeps_parts_apart:
            blocks = tuple([build_trusted_text(piece) if isinstance(piece, str) else piece for piece in pieces])
        else:
            blocks, origins = _join_texts(pieces, origins)
        if self.opening is not None:
            self.ledger.add_synthesis(
                "preamble", "text that tells the model that the conversation history follows"
            )
        self.ledger.add_synthesis("frame", "tags around the lines of the conversation history")
        frame = build_trusted("user", blocks, "user", features=self.features | Feature.TEXT | Feature.OTHER)
        self.out.add(frame, FrameOrigins(origins, tag))
        self.opening = None
        self.pieces, self.origins, self.features = [], [], 0


def _block_origin(origin: int | Sequence[Provenance], index: int) -> Provenance:
    return (origin, index) if isinstance(origin, int) else origin[index]


def _join_texts(
    pieces: Sequence[str | Piece], origins: Sequence[Provenance]
) -> tuple[tuple[Piece, ...], tuple[Provenance, ...]]:
    """Joins neighboring texts into one text, because some servers would add line breaks between separate texts."""
    joined: list[Piece] = []
    joined_origins: list[Provenance] = []
    lines: list[str] = []
    for piece, origin in zip(pieces, origins, strict=True):
        if isinstance(piece, str | TextBlock):
            text = piece if isinstance(piece, str) else piece.text
            lines.append(text if lines or not joined else text[1:])
            continue
        if lines:
            joined.append(build_trusted_text("".join(lines)))
            joined_origins.append("frame")
            lines = []
        joined.append(piece)
        joined_origins.append(origin)
    joined.append(build_trusted_text("".join(lines)))
    return tuple(joined), (*joined_origins, "frame")
