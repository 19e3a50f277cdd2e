"""An assistant's turn as items of OpenAI Responses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, assert_never

from agentkit.provider_kit import (
    Base64Source,
    Block,
    ConversionError,
    Feature,
    ImageBlock,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    as_object,
    as_text,
    copy_json,
    get_state_fields,
)
from agentkit_openai._custom_calls import custom_text
from agentkit_openai._media_parts import came_with
from agentkit_openai._refusals import is_refusal, refusal_part
from agentkit_openai.responses._item_ids import FOLLOWED_BY, accepted_id
from agentkit_openai.responses._reasoning import reasoning_item

__all__ = ["CALL_FIELDS", "IMAGE_CALL", "ItemWriter"]

CALL_FIELDS = ("namespace", "caller", "async")
"""Keys with which a call goes back (SDK: ResponseFunctionToolCallParam)."""

IMAGE_CALL = "image_generation_call"
"""Type of the item of a generated image, and key of its other fields in the image's opaque state."""

_TIED = Feature.STATE | Feature.THINKING | Feature.OPAQUE | Feature.MEDIA | Feature.INVALID
"""Features of turns with blocks whose items depend on what the service knows of them or of those beside them."""


class ItemWriter:
    """Writes the assistant's turns of one request as items.

    `custom` holds the ids of the calls of custom tools so far: their results have another type. `rewritten` are
    the call ids and tool names that the request spells otherwise than the model did: such a call is sent without
    its id, because the service knows another item by it.
    """

    def __init__(self, rewritten: Collection[str]) -> None:
        self.custom: set[str] = set()
        self._rewritten = rewritten
        self._sent: set[str] = set()  # "Duplicate item found with id" (error text)

    def items(self, msg: Msg) -> Iterator[dict[str, Any]]:
        """Yields the items in their order, but messages before the first call (guides/reasoning)."""
        if isinstance(msg.content, str):
            yield _message(msg.content)
            return
        if not msg.features & _TIED:
            yield from self._untied(msg)
            return
        runs = _runs(_messages_first(msg.content))
        for run, id in zip(runs, self._ids(runs), strict=True):
            yield from self._written(run, id)

    def _untied(self, msg: Msg) -> Iterator[dict[str, Any]]:
        """Yields the items of a turn that is texts and calls without state, as most turns are."""
        for block in msg.blocks:
            if isinstance(block, TextBlock):
                yield _message(block.text)
        for call in msg.tool_uses:
            self.custom.discard(call.id)
            yield {
                "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments
            }  # fmt: skip

    def _ids(self, runs: list[list[Block]]) -> list[str]:
        """Returns the id that each item is sent with, or an empty string for none.

        Reasoning has its id if the item that the model produced after it comes next and has its own; so have the
        items after such reasoning.
        """
        known = [self._known_id(run[0]) for run in runs]
        known = [id if id not in known[:at] else "" for at, id in enumerate(known)]
        sent = [""] * len(runs)
        for at in reversed(range(len(runs) - 1)):
            head, following = runs[at][0], runs[at + 1][0]
            if isinstance(head, ThinkingBlock):
                id = sent[at + 1] if isinstance(following, ThinkingBlock) else known[at + 1]
                sent[at] = known[at] if id and _follower(head) in (None, id) else ""
        is_paired = False
        for at, run in enumerate(runs):
            if isinstance(run[0], ThinkingBlock):
                is_paired = bool(sent[at])
            elif is_paired:
                sent[at] = known[at]
        self._sent.update(sent)
        return sent

    def _known_id(self, block: Block) -> str:
        """Returns the id of the item that a block came as, if it may be sent."""
        match block:
            case TextBlock():
                id = self._stored_id("message", block.state)
            case ThinkingBlock():
                id = self._stored_id("reasoning", block.state)
            case ToolUseBlock() if block.id in self._rewritten or block.name in self._rewritten:
                id = ""
            case ToolUseBlock():
                kind = "function_call" if custom_text(block) is None else "custom_tool_call"
                id = self._stored_id(kind, block.state)
            case OpaqueBlock():
                id = as_text(block.data.get("id"))
            case _:
                id = self._stored_id(IMAGE_CALL, block.state) if isinstance(block, ImageBlock) else ""
        return id

    def _stored_id(self, kind: str, state: OpaqueState | None) -> str:
        id = accepted_id(kind, state.item_id if state else None)
        return "" if id in self._sent else id

    def _written(self, run: list[Block], id: str) -> Iterator[dict[str, Any]]:
        """Yields the item of one block, or of the texts of one message."""
        block = run[0]
        match block.type:
            case "text" if id:
                yield _stored_message(run, id)
            case "text":
                yield from (_message(text.text, text) for text in run if isinstance(text, TextBlock))
            case "thinking":
                yield reasoning_item(block, id)
            case "tool_use":
                yield self._call(block, id)
            case "image":
                yield _image_call(block)
            case "opaque":
                yield copy_json(block.data)
            case "audio" | "video" | "document" | "tool_result" | "invalid":
                raise ConversionError(block.type, "an assistant's turn")
            case _:
                assert_never(block)

    def _call(self, block: ToolUseBlock, id: str) -> dict[str, Any]:
        """Returns a call of a function, or of a custom tool."""
        text = custom_text(block)
        if text is None:
            self.custom.discard(block.id)
            kind, key, said = "function_call", "arguments", block.arguments
        else:
            self.custom.add(block.id)
            kind, key, said = "custom_tool_call", "input", text
        item = {"type": kind, "call_id": block.id, "name": block.name, key: said, **came_with(block, *CALL_FIELDS)}
        return {**item, "id": id} if id else item


def _follower(block: ThinkingBlock) -> object:
    """Returns the id of the item that the model produced after this reasoning; None if it is not known."""
    return get_state_fields(block.state).get(FOLLOWED_BY)


def _runs(blocks: list[Block]) -> list[list[Block]]:
    """Returns the blocks item by item: the texts of one message are one item, any other block is one by itself."""
    runs: list[list[Block]] = []
    for block in blocks:
        if runs and (id := _message_id(block)) and id == _message_id(runs[-1][-1]):
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs


def _message_id(block: Block) -> str | None:
    return block.state.item_id if isinstance(block, TextBlock) and block.state else None


def _message(text: str, block: TextBlock | None = None) -> dict[str, Any]:
    """Returns a message without an id (SDK: EasyInputMessageParam).

    Its content is a string: a list of `output_text` belongs to a message with an id, and `input_text` is refused
    in an assistant's turn.
    """
    content = [refusal_part(block)] if block and is_refusal(block) else text
    item = {"type": "message", "role": "assistant", "content": content}
    return {**item, **came_with(block, "phase")} if block else item


def _stored_message(texts: list[Block], id: str) -> dict[str, Any]:
    """Returns a message with its id (SDK: ResponseOutputMessageParam)."""
    blocks = [block for block in texts if isinstance(block, TextBlock)]
    parts: list[dict[str, Any]] = [
        refusal_part(block)
        if is_refusal(block)
        else {"type": "output_text", "text": block.text, "annotations": []}
        for block in blocks
    ]
    item = {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": parts}
    return {**item, **came_with(blocks[0], "phase")}


def _image_call(block: ImageBlock) -> dict[str, Any]:
    """Returns an image that the model made, as the item that it came as (SDK: ImageGenerationCall)."""
    state, source = block.state, block.source
    if state is None or state.item_id is None or not isinstance(source, Base64Source):
        raise ConversionError(block.type, "an assistant's turn")
    kept = copy_json(as_object(get_state_fields(state).get(IMAGE_CALL)))
    return {"type": IMAGE_CALL, "id": state.item_id, "status": "completed", **kept, "result": source.data}


def _messages_first(blocks: tuple[Block, ...]) -> list[Block]:
    """Returns the blocks with every text before the first call, and each reasoning right before what it led to."""
    first = next((at for at, block in enumerate(blocks) if isinstance(block, ToolUseBlock)), len(blocks))
    early, late, thoughts = [*blocks[:first]], list[Block](), list[Block]()
    while early and isinstance(early[-1], ThinkingBlock):
        thoughts.insert(0, early.pop())
    for block in blocks[first:]:
        thoughts.append(block)
        if not isinstance(block, ThinkingBlock):
            (early if isinstance(block, TextBlock) else late).extend(thoughts)
            thoughts = []
    return [*early, *late]
