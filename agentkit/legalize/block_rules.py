"""Rules of a target for the blocks of one message.

Content that the target refuses is replaced by a short text, dropped, or moved to a separate user turn.

`RULES` maps each block type to its rule. A rule lists features of messages (bits of `Feature`), and changes only
messages with at least one of these features. To save time, the blocks of all other messages are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import is_
from typing import Any, Final, cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Disposition
from agentkit.ledger.places import BlockPath
from agentkit.legalize.legal_message import LegalMessage
from agentkit.legalize.media import MediaLegalizer
from agentkit.media.acceptance import sanitize
from agentkit.media.resolution import is_base64
from agentkit.messages.blocks import (
    Block,
    InvalidBlock,
    MediaBlock,
    OpaqueBlock,
    ResultItem,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, Role, build_trusted
from agentkit.reprs import shorten

__all__ = ["BlockLegalizer", "BlockRule", "RULES", "find_omission_reason", "list_features"]

_FINAL_THINKING: Final = "the API requires a text or tool call after thinking, but neither follows in this message"


def find_omission_reason(block: ThinkingBlock, target: Capabilities, role: Role) -> str | None:
    """Returns the reason why a request omits a thinking block. Returns None if the target accepts the block."""
    state = block.state
    if target.thinking.mode == "never" or role != "assistant":
        return "the API does not accept thinking in this message"
    if state is not None and state.issuer != target.issuer:
        return f"the API does not accept thinking issued by {sanitize(state.issuer)}"
    if target.thinking.mode == "signed":
        has_proof = state is not None and any(getattr(state, name) for name in target.thinking.required_proof)
        if state is None or (target.thinking.required_proof and not has_proof):
            return "this thinking has no signature or encrypted data, but the API requires one of them"
        if state.thought_signature is not None and not is_base64(state.thought_signature):
            return "the signature of this thinking is not base64 text"
        if not target.thinking.required_proof and not block.thinking and not state.thought_signature:
            return "the thinking has neither text nor a signature"
    return None


class BlockLegalizer(MediaLegalizer):
    """Rewriter that applies the target's rules to each block of one message."""

    def run(self, msg: Msg) -> LegalMessage:
        """Applies the target's rules to each block of a message.

        Returns the rewritten message, with notes for the ledger.
        """
        pairs: list[tuple[Block, int]] = []
        for index, block in enumerate(msg.blocks):
            if type(block) is TextBlock and block.state is None and block.text and not block.text.isspace():
                pairs.append((block, index))  # no rule changes a text without state, except a blank text
            else:
                legalize = RULES[block.type].legalize
                pairs.extend((legal, index) for legal in legalize(self, block, (index,), msg))
        pairs = self._without_final_thinking(pairs)
        if not pairs:
            return self.out
        blocks = tuple(block for block, _ in pairs)
        is_unchanged = len(blocks) == len(msg.blocks) and all(map(is_, blocks, msg.blocks))
        self.out.msg = msg if is_unchanged else build_trusted(msg.name, blocks, msg.role)
        self.out.origins = tuple(index for _, index in pairs)
        return self.out

    def _without_final_thinking(self, pairs: list[tuple[Block, int]]) -> list[tuple[Block, int]]:
        """Removes thinking blocks at the end of a message, because some APIs refuse thinking there.

        Anthropic reports "the final block in an assistant message cannot be thinking". OpenAI Responses reports
        that a reasoning item "was provided without its required following item". If the target does not require
        signed thinking, the blocks are removed only if the message has no other blocks.
        """
        is_signed = self.capabilities.thinking.mode == "signed"
        while pairs and isinstance(pairs[-1][0], ThinkingBlock):
            if not is_signed and any(not isinstance(block, ThinkingBlock) for block, _ in pairs):
                break
            self._note((pairs[-1][1],), Disposition.DROPPED, _FINAL_THINKING)
            pairs = pairs[:-1]
        return pairs

    # -- rules -------------------------------------------------------------------------------------------------

    def text(self, block: TextBlock, path: BlockPath, _: Msg) -> Iterator[TextBlock]:
        """Yields a text block. Removes the opaque state that the target does not accept.

        Drops a block whose text is empty or only white space, unless the block has a signature that the target
        accepts.
        """
        legal = self._without_foreign_state(block, path)
        is_blank = not block.text or block.text.isspace()
        is_signed = self.capabilities.opaque.signed_parts and legal.state and legal.state.thought_signature
        if is_blank and not is_signed:
            self._note(path, Disposition.DROPPED, "the text is empty or has only white space")
        else:
            yield legal

    def thinking(self, block: ThinkingBlock, path: BlockPath, _: Msg) -> Iterator[ThinkingBlock]:
        """Yields a thinking block if the target accepts the block and its signature. Drops any other block."""
        reason = find_omission_reason(block, self.capabilities, self.role)
        if reason is None:
            yield block
        else:
            self._note(path, Disposition.DROPPED, reason)

    def tool_call(self, block: ToolUseBlock, path: BlockPath, _: Msg) -> Iterator[ToolUseBlock]:
        """Yields a tool call with an id and a name that the target accepts, and a JSON object as input."""
        block = self._without_foreign_state(block, path)
        legal_id, name = self._legalize_id(block.id), self._legalize_tool_name(block.name)
        if block.raw_is_broken:
            reason = (
                "`raw_input` is not the JSON text of `input`; the request contains `input`, or an object with "
                "`raw_input` if `input` is empty"
            )
            self._note(path, Disposition.REPAIRED, reason)
            block = replace(block, input=block.input or {"raw_input": block.raw_input}, raw_input=None)
        if (legal_id, name) != (block.id, block.name):
            reason = "call id or tool name replaced, because the API does not accept the original"
            self._note(path, Disposition.CARRIED, reason)
            block = replace(block, id=legal_id, name=name)
        yield block

    def _legalize_tool_name(self, name: str) -> str:
        rule = self.capabilities.tools.names
        legal_name = rule.fit(name) if rule else name or "unnamed_tool"
        if legal_name != name:
            self.out.tool_names[legal_name] = name
        return legal_name

    def tool_result(self, block: ToolResultBlock, path: BlockPath, _: Msg) -> Iterator[ToolResultBlock]:
        """Yields a tool result with an id, a tool name and content items that the target accepts."""
        changes: dict[str, Any] = {}
        if (legal_id := self._legalize_id(block.id)) != block.id:
            changes["id"] = legal_id
        if block.name and (name := self._legalize_tool_name(block.name)) != block.name:
            changes["name"] = name
        if not isinstance(block.output, str):
            items = tuple(
                legal
                for index, item in enumerate(block.output)
                for legal in self._legalize_item(item, (*path, index), block)
            )
            if len(items) != len(block.output) or not all(map(is_, items, block.output)):
                changes["output"] = items
        yield replace(block, **changes) if changes else block

    def _legalize_item(self, item: ResultItem, path: BlockPath, result: ToolResultBlock) -> Iterator[ResultItem]:
        if isinstance(item, TextBlock):
            if item.text and not item.text.isspace():
                yield self._without_foreign_state(item, path)
            else:
                self._note(path, Disposition.DROPPED, "the text is empty or has only white space")
        elif isinstance(item, OpaqueBlock):
            yield from self.opaque(item, path, result)
        elif isinstance(item, InvalidBlock):
            yield from self.invalid(item, path, result)
        else:
            call_id = sanitize(self._legalize_id(result.id))
            label = f"from the tool result of '{sanitize(result.name) or 'tool'}', call {call_id}"
            yield from cast("Iterator[ResultItem]", self._legalize_media(item, path, label, result))

    def opaque(
        self, block: OpaqueBlock, path: BlockPath, holder: Msg | ToolResultBlock
    ) -> Iterator[OpaqueBlock | TextBlock]:
        """Yields an opaque block if the target accepts the block in this message or tool result.

        Otherwise, the request omits the block, or contains a short text instead. The ledger records a loss, except
        in two cases:

        - The block is valid only in model replies.
        - The block is in an assistant turn, and the target does not accept the wire format of the block.
        """
        result = holder if isinstance(holder, ToolResultBlock) else None
        target, is_own = self.capabilities, block.wire == self.capabilities.wire
        turn = "result" if result is not None else self.role
        is_plain_error = result is not None and result.is_error and not target.media.error_results
        is_reply_data = bool(is_own and target.opaque.is_reply_data and target.opaque.is_reply_data(block.data))
        is_allowed = is_own and (target.opaque.places is None or turn in target.opaque.places(block.data))
        if is_allowed and (turn == "assistant" or not (is_reply_data or is_plain_error)):
            yield block
        elif is_reply_data or (turn == "assistant" and not is_own):
            reason = f"the API does not accept reply data in the format of {sanitize(block.wire)} in this message"
            self._note(path, Disposition.DROPPED, reason)
        elif is_plain_error:
            reason = "the API accepts only text in a tool result that reports an error"
            yield from self._lose(
                path, "part", "a tool result that reports an error can contain only text", ledger_reason=reason
            )
        elif is_own:
            turn_name = "a tool result" if result is not None else f"a message of role {self.role!r}"
            reason = f"{target.name} does not accept this type of block in {turn_name}"
            note = f"{target.name} does not accept it in {turn_name}"
            yield from self._lose(path, "part", note, ledger_reason=reason)
        else:
            wire = sanitize(block.wire)
            reason = f"block in a format that only {wire} accepts"
            yield from self._lose(path, "part", f"only {wire} accepts its format", ledger_reason=reason)

    def invalid(self, block: InvalidBlock, path: BlockPath, _: Msg | ToolResultBlock) -> Iterator[TextBlock]:
        """Yields a short text that replaces a block that could not be loaded from stored JSON or a log.

        The text does not say why the block is invalid, because the reason may quote content of the block that the
        request must not contain. The ledger has the reason.
        """
        reason = "it could not be read when the history was loaded"
        yield from self._lose(path, "block", reason, ledger_reason=f"invalid block: {shorten(block.reason, 300)}")

    def media_item(self, block: MediaBlock, path: BlockPath, msg: Msg) -> Iterator[Block]:
        """Yields a media item, or a text if the target does not accept the media item in this message."""
        yield from self._legalize_media(block, path, f"from the message of '{sanitize(msg.name)}'")


# -- the table -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlockRule:
    """Rule of a target for blocks of one type.

    Attributes:
        legalize: Function that takes the `BlockLegalizer`, a block, the path of the block, and the message. The
            function yields the blocks that the target accepts.
        features: Function that takes a target and returns bits of `Feature`. For this target, the rule changes
            only messages with at least one of these features.
    """

    legalize: Callable[[Any, Any, BlockPath, Msg], Iterable[Block]]
    features: Callable[[Capabilities], int]


def _odd_names(target: Capabilities) -> int:
    """Returns bits of `Feature`. The target may refuse call ids or tool names of a message with these bits.

    The target accepts the call ids and the tool names of a message that has none of these bits.
    """
    rules = (target.tools.call_ids, target.tools.names)
    is_strict = not all(rule is None or rule.takes_plain for rule in rules)
    has_reserved = target.tools.names is not None and bool(target.tools.names.reserved)
    odd = Feature.ODD_ID | Feature.ODD_NAME | (Feature.RESERVED_NAME if has_reserved else 0)
    return odd | Feature.TOOL if is_strict else odd


_MEDIA_RULE = BlockRule(BlockLegalizer.media_item, lambda _: Feature.MEDIA)

RULES: Final[Mapping[str, BlockRule]] = {
    "text": BlockRule(BlockLegalizer.text, lambda _: Feature.BLANK | Feature.STATE),
    "thinking": BlockRule(BlockLegalizer.thinking, lambda _: Feature.THINKING),
    "tool_use": BlockRule(
        BlockLegalizer.tool_call,
        lambda target: Feature.STATE | Feature.ODD_ARGUMENTS | _odd_names(target),
    ),
    "tool_result": BlockRule(
        BlockLegalizer.tool_result,
        lambda target: Feature.STATE | Feature.RESULT_MEDIA | Feature.RESULT_BLANK | _odd_names(target),
    ),
    "opaque": BlockRule(BlockLegalizer.opaque, lambda _: Feature.OPAQUE),
    "invalid": BlockRule(BlockLegalizer.invalid, lambda _: Feature.INVALID),
    "image": _MEDIA_RULE,
    "audio": _MEDIA_RULE,
    "video": _MEDIA_RULE,
    "document": _MEDIA_RULE,
}
"""Maps each block type to its rule."""


@lru_cache(512)
def list_features(target: Capabilities) -> int:
    """Returns bits of `Feature`. The rules of a target may change only messages with one of these bits."""
    features = Feature.EMPTY  # for every target, messages without blocks are dropped
    for rule in RULES.values():
        features |= rule.features(target)
    return features
