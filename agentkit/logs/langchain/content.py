"""`read_content`: reads the blocks of a LangChain message from its content, tool calls and `additional_kwargs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby, zip_longest
from typing import Any, Final, TypeAlias, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text
from agentkit.logs.embedded_items import EmbeddedItem
from agentkit.logs.langchain.blocks import SIGNATURE, get_call_name, is_call, read_block, strip_indexes
from agentkit.messages.blocks import Block, OpaqueState, TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.reprs import shorten_repr

__all__ = ["read_content"]

_Object: TypeAlias = dict[str, Any]
_Item: TypeAlias = tuple[Any, str]
"""Content block, text or `EmbeddedItem`, with its place in the log."""
_Call: TypeAlias = tuple[_Object, str]
"""Tool call with its place in the log."""


def read_content(message: _Object, place: str) -> tuple[tuple[Block, ...], _Object]:
    """Returns the blocks of a message, and the entries of `additional_kwargs` that were not converted to blocks.

    First, all items of the message are listed in the order of the reply. Then `read_block` converts each item to a
    block.

    Raises:
        MessageError: An entry of `tool_calls` is not an object.
    """
    provider = as_text(as_object(message.get("response_metadata")).get("model_provider"))
    fields = as_object(message.get("additional_kwargs"))
    content, calls = _list_content(message.get("content"), f"{place}.content"), _list_calls(message, place)
    content_types = {as_text(as_object(item).get("type")) for item, _ in content}
    before: list[_Item] = []
    after: list[_Item] = []
    waiting: list[_Item] = []
    unread = {key: value for key, value in fields.items() if key not in _USED_KEYS}
    for key, item in _list_additional(fields):
        unread.pop(key.partition("[")[0], None)
        is_waiting = isinstance(item, EmbeddedItem) and as_object(item.entry).get("type") in _WAITING_TYPES
        items = waiting if is_waiting else after if key in ("refusal", "audio") else before
        # If the content has a block of the type `reasoning` or `refusal`, the entry of `additional_kwargs` with
        # this key is skipped, because the entry is a copy of the block.
        if key not in content_types or key not in ("reasoning", "refusal"):
            items.append((item, f"{place}.additional_kwargs.{key}"))
    content = [_take_call(item, calls) or (item, place) for item, place in _join_reasoning(content, provider)]
    return tuple(_read([*before, *content, *after, *calls, *waiting], provider)), unread


def _list_content(content: Any, place: str) -> list[_Item]:
    if isinstance(content, list):
        items = [(item, f"{place}[{index}]") for index, item in enumerate(cast("list[Any]", content))]
        return list(_unwrap_calls(items))
    return [] if content is None or content == "" else [(content, place)]


def _read(items: Iterable[_Item], provider: str) -> Iterator[Block]:
    """Converts items to blocks. Texts and tool calls that follow a reasoning item of OpenAI get their item ids.

    The item id is stored as opaque state. A request with a reasoning item must also contain the ids of the items
    after the reasoning item.
    """
    follows_reasoning = False
    for item, place in items:
        if isinstance(item, EmbeddedItem):
            block = item.read(place)
            follows_reasoning |= isinstance(block, ThinkingBlock)
        else:
            block = read_block(item, provider, place)
        item_id = _item_id(item) if follows_reasoning else ""
        if item_id and isinstance(block, TextBlock | ToolUseBlock) and block.state is None:
            block = replace(block, state=OpaqueState("openai", item_id=item_id))
        yield block


# -- tool calls ---------------------------------------------------------------------------------------------------

_SIGNATURES: Final = "__gemini_function_call_thought_signatures__"
"""Key in `additional_kwargs` whose value is a dict from call ids to signatures (langchain-google-genai)."""


def _list_calls(message: _Object, place: str) -> list[_Call]:
    """Returns the tool calls that a message lists outside its content, each with its place.

    Raises:
        MessageError: A listed tool call is not an object.
    """
    additional = as_object(message.get("additional_kwargs"))
    signatures = as_object(additional.get(_SIGNATURES))
    listed = [*as_list(message.get("tool_calls")), *as_list(message.get("invalid_tool_calls"))]
    listed = listed or as_list(message.get("tool_call_chunks"))
    if not listed:
        legacy = [{"function": additional["function_call"]}] if additional.get("function_call") else []
        listed = [*as_list(additional.get("tool_calls")), *legacy]
    calls: list[_Call] = []
    for index, call in enumerate(listed):
        call_place = f"{place}.tool_calls[{index}]"
        if not isinstance(call, dict):
            reason = f"expected an object, got {shorten_repr(call, 60)}"
            raise MessageError(call_place, reason, "Pass each tool call as a dict.")
        fields = cast("_Object", call)
        signature = signatures.get(as_text(fields.get("id")))
        calls.append(({**fields, "type": "tool_call", SIGNATURE: signature}, call_place))
    return calls


def _take_call(item: Any, calls: list[_Call]) -> _Item | None:
    """Returns the tool call in `calls` that matches the content block `item`, and removes it from `calls`.

    Most tool calls are both in `calls` and in the content. Two calls match if they have a common id, or if both
    have no id and the same name. The returned call also has the item id of `item`. Returns None if no call
    matches.
    """
    if not is_call(item):
        return None
    ids, name = _call_ids(item), get_call_name(item)
    for index, (call, place) in enumerate(calls):
        call_ids = _call_ids(call)
        if ids & call_ids or (not ids | call_ids and get_call_name(call) == name):
            del calls[index]
            return {**call, "extras": {"item_id": _item_id(item)}}, place
    return None


def _unwrap_calls(items: list[_Item]) -> Iterator[_Item]:
    """Yields all items. If a `non_standard` block contains a tool call, yields the call instead of the block.

    If another item is the same call, the `non_standard` block is omitted. For a provider that langchain-core does
    not know, the property `content_blocks` of a message has both the `non_standard` block and the call.
    """
    ids = {id for item, _ in items if is_call(item) for id in _call_ids(item)}
    for item, place in items:
        block = as_object(item)
        value = block.get("value") if block.get("type") == "non_standard" else None
        if not is_call(value):
            yield item, place
        elif ids.isdisjoint(_call_ids(as_object(value))):
            yield value, place


def _call_ids(call: _Object) -> set[str]:
    return {id for key in ("call_id", "id") if (id := as_text(call.get(key)))}


# -- reasoning and item ids of OpenAI -----------------------------------------------------------------------------

_OPENAI: Final = frozenset({"openai", "azure_openai"})
_GENERATED_PREFIX: Final = "lc_"  # LangChain creates ids with this prefix for blocks without an id


def _join_reasoning(items: list[_Item], provider: str) -> Iterator[_Item]:
    """Yields all items. Joins the blocks of each OpenAI reasoning item into one `EmbeddedItem`.

    Version 1 of LangChain's content format splits a reasoning item into several blocks. All these blocks have the
    id of the item, and one block has the encrypted content of the item. langchain-openai joins the blocks in the
    same way (`_implode_reasoning_blocks`).
    """
    groups = [list(group) for _, group in groupby(items, lambda item: _reasoning_id(item[0]) or item[1])]
    for group, next_group in zip_longest(groups, groups[1:], fillvalue=[(None, "")]):
        part, place = strip_indexes(group[0][0]), group[0][1]
        encrypted = [text for item, _ in group if (text := _encrypted_content(item))]
        if part.get("type") == "reasoning" and "summary" in part:
            entry = part
        elif _reasoning_id(part) and (encrypted or provider in _OPENAI):
            texts = [text for item, _ in group if (text := as_text(as_object(item).get("reasoning")))]
            summary = [{"type": "summary_text", "text": text} for text in texts]
            entry = {"type": "reasoning", "id": part["id"], "summary": summary}
            entry |= {"encrypted_content": encrypted[-1]} if encrypted else {}
        else:
            yield from group
            continue
        yield EmbeddedItem("openai-responses", entry, _item_id(next_group[0][0])), place


def _reasoning_id(item: Any) -> str:
    """Returns the id of the reasoning item of which a block is a part, or an empty string for any other block."""
    block = as_object(item)
    return _item_id(block) if block.get("type") == "reasoning" and "summary" not in block else ""


def _encrypted_content(item: Any) -> str:
    part = as_object(item)
    return as_text(part.get("encrypted_content") or as_object(part.get("extras")).get("encrypted_content"))


def _item_id(item: Any) -> str:
    """Returns the id of the OpenAI output item from which a block was created, or an empty string.

    A tool call has the item id in `extras`, because the `id` of a tool call is the call id. Other blocks have the
    item id as `id`.
    """
    block = as_object(item)
    has_call_id = block.get("type") in ("tool_call", "invalid_tool_call", "tool_call_chunk", "tool_use")
    item_id = as_text(as_object(block.get("extras")).get("item_id") if has_call_id else block.get("id"))
    return "" if item_id.startswith(_GENERATED_PREFIX) else item_id


# -- additional_kwargs --------------------------------------------------------------------------------------------

_USED_KEYS: Final = frozenset({"tool_calls", "function_call", "reasoning_content", "refusal", _SIGNATURES})
_WAITING_TYPES: Final = ("apply_patch_call", "computer_call", "mcp_approval_request")
"""Types of OpenAI output items to which the application must respond. A reply ends with such an item."""


def _list_additional(fields: _Object) -> Iterator[tuple[str, Any]]:
    """Yields the items in the `additional_kwargs` of a message, each with its key.

    For OpenAI's Chat Completions API, the items are the refusal and the audio (langchain-openai:
    `_convert_dict_to_message`). For the Responses API in LangChain's older format "v0", the items are the
    reasoning item and the items in `tool_outputs` (`_convert_to_v03_ai_message`). For DeepSeek, Qwen and
    Ollama, the item is the thinking.
    """
    if thinking := as_text(fields.get("reasoning_content")):
        yield "reasoning_content", {"type": "reasoning", "reasoning": thinking}
    item = {"type": "reasoning", **strip_indexes(fields.get("reasoning"))}  # LangChain sometimes omits the type
    if item["type"] == "reasoning" and item.keys() & {"summary", "encrypted_content", "id"}:
        yield "reasoning", EmbeddedItem("openai-responses", item)
    for index, output in enumerate(as_list(fields.get("tool_outputs"))):
        yield f"tool_outputs[{index}]", EmbeddedItem("openai-responses", strip_indexes(output) or output)
    if refusal := as_text(fields.get("refusal")):
        yield "refusal", {"type": "refusal", "refusal": refusal}
    if audio := as_object(fields.get("audio")):
        yield "audio", EmbeddedItem("openai", {"role": "assistant", "audio": audio})
