"""Writer of assistant turns as items of OpenAI Responses. `_reasoning` decides which items are sent with ids."""

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
from agentkit_openai._media_parts import copy_state_fields
from agentkit_openai._refusals import is_refusal, refusal_part
from agentkit_openai.responses._reasoning import pair_ids, reasoning_item

__all__ = ["CALL_FIELDS", "IMAGE_CALL", "ItemWriter"]

CALL_FIELDS = ("namespace", "caller", "async")
"""Additional keys of a tool call that are sent back to OpenAI (openai-python: ResponseFunctionToolCallParam)."""

IMAGE_CALL = "image_generation_call"
"""Type of the item that contains a generated image.

In the opaque state of the image block, this name is also the key of an object with the other keys of the item.
"""

_ID_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
"""Required prefixes of item ids, by item type. Error text: "Expected an ID that begins with 'fc'"."""

_MAX_ID_LENGTH = 64
"""Maximum length of an item id in characters. Some gateways create longer ids.

Error text: "string too long. Expected a string with maximum length 64".
"""

_TIED = Feature.STATE | Feature.THINKING | Feature.OPAQUE | Feature.MEDIA | Feature.INVALID
"""Message features. In a turn with one of these features, items can have ids, or can depend on adjacent items."""


class ItemWriter:
    """Writer for the assistant turns of one request.

    Args:
        rewritten: Call ids and tool names that were changed for the target. A tool call with a changed id or name
            is sent without its item id, because OpenAI stored a different item under that item id.

    Attributes:
        custom_ids: Call ids of the custom tool calls that the writer has written. Results of custom tool calls and
            results of function calls have different item types.
    """

    def __init__(self, rewritten: Collection[str]) -> None:
        self.custom_ids: set[str] = set()
        self._rewritten = rewritten
        # Ids that the request already contains. OpenAI refuses an id that is sent twice: "Duplicate item found
        # with id".
        self._sent: set[str] = set()

    def write(self, msg: Msg) -> Iterator[dict[str, Any]]:
        """Yields the items of an assistant turn. All items of the type `message` precede the tool calls.

        Source: OpenAI's docs, guides/reasoning.
        """
        if isinstance(msg.content, str):
            yield _message(msg.content)
            return
        if not msg.features & _TIED:
            yield from self._write_plain(msg)
            return
        runs = _runs(_messages_first(msg.content))
        for run, id in zip(runs, self._choose_ids(runs), strict=True):
            yield from self._write_run(run, id)

    def _write_plain(self, msg: Msg) -> Iterator[dict[str, Any]]:
        """Yields the items of a turn that has only texts and tool calls, all without opaque state.

        Most assistant turns are of this kind.
        """
        for block in msg.blocks:
            if isinstance(block, TextBlock):
                yield _message(block.text)
        for call in msg.tool_uses:
            self.custom_ids.discard(call.id)
            yield {
                "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments
            }  # fmt: skip

    def _choose_ids(self, runs: list[list[Block]]) -> list[str]:
        """Returns the id of each item, or an empty string for an item that is sent without its id."""
        ids = [self._find_id(run[0]) for run in runs]
        ids = [id if id not in ids[:index] else "" for index, id in enumerate(ids)]
        sent = pair_ids([run[0] for run in runs], ids)
        self._sent.update(sent)
        return sent

    def _find_id(self, block: Block) -> str:
        """Returns the id of the item from which a block was read.

        Returns an empty string if the id is unknown or must not be sent.
        """
        match block:
            case TextBlock():
                id = self._get_stored_id("message", block.state)
            case ThinkingBlock():
                id = self._get_stored_id("reasoning", block.state)
            case ToolUseBlock() if block.id in self._rewritten or block.name in self._rewritten:
                id = ""
            case ToolUseBlock():
                item_type = "function_call" if custom_text(block) is None else "custom_tool_call"
                id = self._get_stored_id(item_type, block.state)
            case OpaqueBlock():
                id = as_text(block.data.get("id"))
            case _:
                id = self._get_stored_id(IMAGE_CALL, block.state) if isinstance(block, ImageBlock) else ""
        return id

    def _get_stored_id(self, item_type: str, state: OpaqueState | None) -> str:
        id = as_text(state.item_id if state else None)
        is_accepted = id.startswith(_ID_PREFIXES.get(item_type, "")) and len(id) <= _MAX_ID_LENGTH
        return id if is_accepted and id not in self._sent else ""

    def _write_run(self, run: list[Block], id: str) -> Iterator[dict[str, Any]]:
        """Yields the items for one block, or for the texts of one message."""
        block = run[0]
        match block.type:
            case "text" if id:
                yield _stored_message(run, id)
            case "text":
                yield from (_message(text.text, text) for text in run if isinstance(text, TextBlock))
            case "thinking":
                yield reasoning_item(block, id)
            case "tool_use":
                yield self._write_call(block, id)
            case "image":
                yield _image_call(block)
            case "opaque":
                yield copy_json(block.data)
            case "audio" | "video" | "document" | "tool_result" | "invalid":
                raise ConversionError(block.type, "assistant turn")
            case _:
                assert_never(block)

    def _write_call(self, block: ToolUseBlock, id: str) -> dict[str, Any]:
        """Writes a tool call as an item for a function or for a custom tool."""
        text = custom_text(block)
        if text is None:
            self.custom_ids.discard(block.id)
            item_type, key, value = "function_call", "arguments", block.arguments
        else:
            self.custom_ids.add(block.id)
            item_type, key, value = "custom_tool_call", "input", text
        item = {"type": item_type, "call_id": block.id, "name": block.name, key: value}
        item |= copy_state_fields(block, *CALL_FIELDS)
        return {**item, "id": id} if id else item


def _runs(blocks: list[Block]) -> list[list[Block]]:
    """Groups blocks so that each group becomes one item. Adjacent texts of one message form a group."""
    runs: list[list[Block]] = []
    for block in blocks:
        if runs and (id := _get_message_id(block)) and id == _get_message_id(runs[-1][-1]):
            runs[-1].append(block)
        else:
            runs.append([block])
    return runs


def _get_message_id(block: Block) -> str | None:
    return block.state.item_id if isinstance(block, TextBlock) and block.state else None


def _message(text: str, block: TextBlock | None = None) -> dict[str, Any]:
    """Writes a text as a message without an id (openai-python: EasyInputMessageParam).

    The content is a string, because a message with parts of the type `output_text` requires an id. OpenAI refuses
    parts of the type `input_text` in assistant messages.
    """
    content = [refusal_part(block)] if block and is_refusal(block) else text
    item = {"type": "message", "role": "assistant", "content": content}
    return {**item, **copy_state_fields(block, "phase")} if block else item


def _stored_message(texts: list[Block], id: str) -> dict[str, Any]:
    """Writes texts as a message with an id (openai-python: ResponseOutputMessageParam)."""
    blocks = [block for block in texts if isinstance(block, TextBlock)]
    parts: list[dict[str, Any]] = []
    for block in blocks:
        text: dict[str, Any] = {"type": "output_text", "text": block.text, "annotations": []}
        parts.append(refusal_part(block) if is_refusal(block) else text)
    item = {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": parts}
    return {**item, **copy_state_fields(blocks[0], "phase")}


def _image_call(block: ImageBlock) -> dict[str, Any]:
    """Writes a generated image as an item of a reply (openai-python: ImageGenerationCall)."""
    state, source = block.state, block.source
    if state is None or state.item_id is None or not isinstance(source, Base64Source):
        raise ConversionError(block.type, "assistant turn")
    fields = copy_json(as_object(get_state_fields(state).get(IMAGE_CALL)))
    return {"type": IMAGE_CALL, "id": state.item_id, "status": "completed", **fields, "result": source.data}


def _messages_first(blocks: tuple[Block, ...]) -> list[Block]:
    """Returns the blocks in another order: all texts precede the first tool call.

    Reasoning stays directly before the block that the model produced after the reasoning.
    """
    first = next((index for index, block in enumerate(blocks) if isinstance(block, ToolUseBlock)), len(blocks))
    early, late, thoughts = [*blocks[:first]], list[Block](), list[Block]()
    while early and isinstance(early[-1], ThinkingBlock):
        thoughts.insert(0, early.pop())
    for block in blocks[first:]:
        thoughts.append(block)
        if not isinstance(block, ThinkingBlock):
            (early if isinstance(block, TextBlock) else late).extend(thoughts)
            thoughts = []
    return [*early, *late]
