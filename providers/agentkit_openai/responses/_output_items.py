"""Reader that adds the items of a Responses reply to a `ReplyBuilder`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from agentkit.provider_kit import (
    Base64Source,
    BlockKey,
    ImageBlock,
    MessageError,
    OpaqueBlock,
    ReplyBuilder,
    as_list,
    as_object,
    as_text,
    make_json_safe,
)
from agentkit_openai._custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai._refusals import REFUSAL_PART
from agentkit_openai.responses._item_index import ItemKey
from agentkit_openai.responses._reasoning import reasoning_state, reasoning_text
from agentkit_openai.responses._turn_items import CALL_FIELDS, IMAGE_CALL
from agentkit_openai.responses.capabilities import RESPONSES

__all__ = ["CALL", "OutputItems", "TEXT", "THINKING", "image_state", "parse_image"]

_WIRE = str(RESPONSES.wire)
_CALLS = frozenset({"function_call", "custom_tool_call"})
_STREAMED = _CALLS | {"message", "reasoning"}  # types of items whose content arrives in pieces

THINKING, TEXT, CALL, _OPAQUE = range(4)
"""Third number in the key of a block. This number determines the order of the blocks of one item.

A key is `(output_index, number, THINKING | TEXT | CALL | _OPAQUE, part)`. The first two numbers are an `ItemKey`.
"""


class OutputItems:
    """Reader for the items of one reply.

    A complete item replaces the pieces of the same item that arrived earlier.
    """

    def __init__(self, reply: ReplyBuilder) -> None:
        self._reply = reply
        self._open: dict[ItemKey, dict[str, Any]] = {}  # items that events announced and that are not complete
        self._ids: dict[ItemKey, str] = {}
        self._phases: dict[ItemKey, str] = {}
        self._texts: dict[ItemKey, list[BlockKey]] = {}  # the text blocks of each message item
        self._refusals: set[BlockKey] = set()
        self._citations: dict[BlockKey, list[Any]] = {}
        self._calls: dict[str, tuple[BlockKey, dict[str, Any]]] = {}  # tool calls by call id
        self._reasoning: dict[ItemKey, dict[str, Any]] = {}  # reasoning items, which later items depend on

    @property
    def has_refusal(self) -> bool:
        """True if the reply contains a refusal."""
        return bool(self._refusals)

    def begin(self, key: ItemKey, item: dict[str, Any]) -> None:
        """Records an item that an event announces. The content of the item arrives in later events."""
        item_type = item.get("type")
        self._open[key] = item
        self.set_id(key, item)
        if item_type == "message":
            self._phases[key] = as_text(item.get("phase"))
        elif str(item_type) in _CALLS:
            block_key = (*key, CALL, 0)
            self._reply.add_tool_call(block_key, item.get("call_id"), item.get("name"))
            self._add_call_state(block_key, item)

    def set_id(self, key: ItemKey, item: dict[str, Any]) -> None:
        """Stores the id of an item. A later id replaces an earlier id."""
        if item.get("type") == "reasoning":
            self._reasoning[key] = item
        if id := as_text(item.get("id")):
            self._ids[key] = id

    def finish(self, key: ItemKey, item: dict[str, Any]) -> None:
        """Reads a complete item (openai-python: ResponseOutputItem)."""
        item_type = item.get("type")
        self._open.pop(key, None)
        self.set_id(key, item)
        if item_type == "message":
            self._finish_message(key, item)
        elif item_type == "reasoning":
            self._finish_reasoning((*key, THINKING, 0), item)
        elif str(item_type) in _CALLS:
            self._finish_call((*key, CALL, 0), item)
        elif item_type in ("function_call_output", "custom_tool_call_output"):
            self._finish_output(key, item)
        elif image := parse_image(item):
            self._reply.add_block((*key, _OPAQUE, 0), image)
            self._reply.add_state((*key, _OPAQUE, 0), **image_state(item))
        elif item_type and isinstance(item_type, str):
            self._reply.add_block((*key, _OPAQUE, 0), OpaqueBlock(_WIRE, make_json_safe(item)))
        else:
            self._reply.notes.setdefault("unread", []).append(make_json_safe(item))

    def _finish_output(self, key: ItemKey, item: dict[str, Any]) -> None:
        """Reads the output of a tool call that OpenAI ran.

        The tool call and its output become opaque blocks, because the application must not run the tool again.

        Source: openai-python, ResponseFunctionToolCallOutputItem with a program of OpenAI as `caller`.
        """
        call = self._calls.pop(as_text(item.get("call_id")), None)
        if call is not None:
            self._reply.replace_block(call[0], OpaqueBlock(_WIRE, make_json_safe(call[1])))
        self._reply.add_block((*key, _OPAQUE, 0), OpaqueBlock(_WIRE, make_json_safe(item)))

    def _finish_message(self, key: ItemKey, item: dict[str, Any]) -> None:
        self._phases[key] = as_text(item.get("phase")) or self._phases.get(key, "")
        for number, part in enumerate(as_list(item.get("content"))):
            fields = as_object(part)
            block_key = (*key, TEXT, number)
            is_refusal = fields.get("type") == "refusal"
            text = as_text(fields.get("refusal" if is_refusal else "text"))
            if not self._reply.has_block(block_key):
                self.add_text(block_key, text, is_refusal)
            if text:
                self._reply.replace_text(block_key, text)
            if is_refusal:
                self._mark_refusal(block_key)
            self._citations.pop(block_key, None)
            if annotations := as_list(fields.get("annotations")):
                self._reply.add_metadata(block_key, citations=make_json_safe(annotations))
            self._reply.close(block_key)

    def _finish_reasoning(self, key: BlockKey, item: dict[str, Any]) -> None:
        text = reasoning_text(item)
        if not self._reply.has_block(key):
            self._reply.add_thinking(key, text)
        elif text:
            self._reply.replace_text(key, text)
        self._reply.add_state(key, **reasoning_state(item))
        self._reply.close(key)

    def _finish_call(self, key: BlockKey, item: dict[str, Any]) -> None:
        is_custom = item.get("type") == "custom_tool_call"
        arguments: object = item.get("input" if is_custom else "arguments")
        text, pieces = as_text(arguments), self._reply.get_arguments(key)
        self._reply.add_tool_call(key, _get_call_id(item), item.get("name"), "" if pieces else text)
        if is_custom:
            self._reply.replace_arguments(key, custom_input(text or pieces))
        elif text or isinstance(arguments, dict):
            self._reply.replace_arguments(key, cast("object", arguments))
        if item.get("status") == "incomplete" and not is_custom:
            self._reply.add_metadata(key, incomplete=True)
        self._add_call_state(key, item)
        self._reply.close(key)

    def _add_call_state(self, key: BlockKey, item: dict[str, Any]) -> None:
        custom = CUSTOM_CALL if item.get("type") == "custom_tool_call" else {}
        call_fields = {name: item[name] for name in CALL_FIELDS if item.get(name)}
        fields = {**custom, **make_json_safe(call_fields)}
        item_id = self._ids.get((key[0], key[1])) if self._reasoning else None
        self._reply.add_state(key, item_id=item_id, fields=fields or None)
        self._calls[_get_call_id(item)] = key, item

    def add_text(self, key: BlockKey, text: str, is_refusal: bool = False) -> None:
        """Adds a piece of text to the block with the key `key`. The block is a refusal if `is_refusal` is True."""
        if not text:
            return
        is_new = not self._reply.has_block(key)
        self._reply.add_text(key, text)
        if is_new:
            self._texts.setdefault((key[0], key[1]), []).append(key)
        if is_new and is_refusal:
            self._mark_refusal(key)

    def _mark_refusal(self, key: BlockKey) -> None:
        if self._reply.has_block(key):
            self._reply.add_metadata(key, refusal=True)
            self._refusals.add(key)

    def add_citation(self, key: BlockKey, annotation: object) -> None:
        """Adds a citation to a text block. The complete message, which arrives later, replaces all citations."""
        if annotation:
            self._citations.setdefault(key, []).append(make_json_safe(annotation))

    def mark_truncated(self) -> None:
        """Marks unfinished tool calls without arguments as incomplete.

        A tool call with arguments gets no mark, because its invalid JSON already shows that the arguments are cut
        off.
        """
        for key, item in self._open.items():
            block_key = (*key, CALL, 0)
            if str(item.get("type")) in _CALLS and not self._reply.get_arguments(block_key).strip():
                self._reply.add_metadata(block_key, incomplete=True)

    def close(self) -> None:
        """Adds citations and opaque state to the blocks of a reply, after its last item.

        Unfinished items of tools that OpenAI runs are stored in the metadata of the message.
        """
        for key, citations in self._citations.items():
            self._reply.add_metadata(key, citations=citations)
        self._add_text_states()
        for reasoning_key, next_key in pairwise(sorted(self._ids)):
            if reasoning_key in self._reasoning:
                state = reasoning_state(self._reasoning[reasoning_key], self._ids[next_key])
                self._reply.add_state((*reasoning_key, THINKING, 0), fields=state["fields"])
        items = [item for item in self._open.values() if str(item.get("type")) not in _STREAMED]
        if items:
            self._reply.notes["incomplete_parts"] = make_json_safe(items)

    def _add_text_states(self) -> None:
        """Stores the `phase` of each message item in the opaque state of its text blocks.

        If the text blocks follow reasoning, their opaque state also stores the id of the message item.
        """
        for key, texts in self._texts.items():
            follows_reasoning = any(reasoning_key < key for reasoning_key in self._reasoning)
            item_id = self._ids.get(key) if follows_reasoning else None
            phase = {"phase": self._phases[key]} if self._phases.get(key) else {}
            for text_key in texts:
                refusal = REFUSAL_PART if text_key in self._refusals else {}
                self._reply.add_state(text_key, item_id=item_id, fields={**refusal, **phase} or None)


def _get_call_id(item: dict[str, Any]) -> str:
    return as_text(item.get("call_id")) or as_text(item.get("id"))


def parse_image(item: dict[str, Any]) -> ImageBlock | None:
    """Reads the image of a successful `image_generation_call`. Returns None for any other item."""
    data = as_text(item.get("result"))
    if item.get("type") != IMAGE_CALL or not data or data.startswith("data:"):
        return None
    format = as_text(item.get("output_format")) or "png"
    media_type = {"svg": "image/svg+xml", "jpg": "image/jpeg"}.get(format, f"image/{format}")
    fields = {name: item[name] for name in ("id", "revised_prompt", "size") if isinstance(item.get(name), str)}
    metadata = make_json_safe(fields) or None
    try:
        return ImageBlock(Base64Source(media_type, data), metadata=metadata)
    except MessageError:
        return ImageBlock(Base64Source("image/png", data), metadata=metadata)


def image_state(item: dict[str, Any]) -> dict[str, Any]:
    """Returns the opaque state of a generated image, as keyword arguments of `OpaqueState`.

    The state contains the id of the item, and all item keys that no field of the image block can store.
    """
    fields = {
        key: value for key, value in item.items() if key not in ("id", "type", "result") and value is not None
    }
    return {"item_id": as_text(item.get("id")) or None, "fields": {IMAGE_CALL: make_json_safe(fields)}}
