"""Loading of blocks that LangChain stores in `additional_kwargs` instead of the message content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from agentkit.json_values import as_list, as_object, as_text
from agentkit.logs.langchain.blocks import ISSUERS, read_native_entry, strip_indexes
from agentkit.logs.langchain.tool_calls import SIGNATURES
from agentkit.messages.blocks import Block, OpaqueState, TextBlock, ThinkingBlock

__all__ = ["AdditionalBlocks", "read_additional_blocks"]

_READ_ALWAYS: Final = frozenset({"tool_calls", "function_call", "reasoning_content", "refusal", SIGNATURES})
_READ_IF_FILLED: Final = ("reasoning", "audio", "tool_outputs")
_WAITING_TYPES: Final = frozenset({"apply_patch_call", "computer_call", "mcp_approval_request"})
"""Item types of OpenAI's Responses API that the application must answer. A reply ends with these items."""


@dataclass(frozen=True, slots=True)
class AdditionalBlocks:
    """Blocks from the `additional_kwargs` of a message, grouped by their position in the message.

    Attributes:
        before_content: Thinking, and items of tools that the provider ran.
        after_content: Refusal and audio.
        after_calls: Items that the application must answer.
        unread: Keys of `additional_kwargs` that contain no blocks, with their values.
    """

    before_content: tuple[Block, ...]
    after_content: tuple[Block, ...]
    after_calls: tuple[Block, ...]
    unread: dict[str, Any]


def read_additional_blocks(message: dict[str, Any], place: str) -> AdditionalBlocks:
    """Returns the blocks in the `additional_kwargs` of a LangChain message.

    For OpenAI's Chat Completions these are the refusal and the audio (langchain-openai:
    `_convert_dict_to_message`). For the Responses API in the older format "v0" these are the reasoning item and
    the items of tools (`_convert_to_v03_ai_message`). For DeepSeek, Qwen and Ollama this is the thinking.
    """
    fields, place = as_object(message.get("additional_kwargs")), f"{place}.additional_kwargs"
    content_types = {as_text(as_object(item).get("type")) for item in as_list(message.get("content"))}
    before: list[Block] = []
    after: list[Block] = []
    waiting: list[Block] = []
    if thinking := as_text(fields.get("reasoning_content")):
        provider = as_text(as_object(message.get("response_metadata")).get("model_provider"))
        issuer = ISSUERS.get(provider)
        before.append(ThinkingBlock(thinking, OpaqueState(issuer) if issuer else None))
    reasoning = _reasoning_item(fields.get("reasoning"))
    if reasoning and "reasoning" not in content_types:
        before.append(read_native_entry("openai-responses", reasoning, f"{place}.reasoning"))
    for index, item in enumerate(as_list(fields.get("tool_outputs"))):
        output = strip_indexes(item)
        blocks = waiting if as_text(output.get("type")) in _WAITING_TYPES else before
        blocks.append(read_native_entry("openai-responses", output or item, f"{place}.tool_outputs[{index}]"))
    refusal = as_text(fields.get("refusal"))
    if refusal and "refusal" not in content_types:
        after.append(TextBlock(refusal, metadata={"refusal": True}))
    if audio := as_object(fields.get("audio")):
        after.append(read_native_entry("openai", {"role": "assistant", "audio": audio}, f"{place}.audio"))
    filled = (reasoning, audio, as_list(fields.get("tool_outputs")))
    read = _READ_ALWAYS | {key for key, value in zip(_READ_IF_FILLED, filled, strict=True) if value}
    unread = {key: value for key, value in fields.items() if key not in read}
    return AdditionalBlocks(tuple(before), tuple(after), tuple(waiting), unread)


def _reasoning_item(value: object) -> dict[str, Any]:
    """Adds the type to a reasoning item, because LangChain may omit it. Returns `{}` for any other value."""
    item = strip_indexes(value)
    if item.get("type", "reasoning") != "reasoning" or not item.keys() & {"summary", "encrypted_content", "id"}:
        return {}
    return {**item, "type": "reasoning"}
