"""What LangChain keeps of a reply beside its content, in `additional_kwargs`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentkit.blocks import Block, InvalidBlock, OpaqueState, TextBlock, ThinkingBlock
from agentkit.errors import MessageError
from agentkit.native import items_of, mapping_of, text_of
from agentkit.native_logs.langchain_blocks import ISSUERS
from agentkit.native_logs.langchain_calls import SIGNATURES
from agentkit.registry import load_provider

__all__ = ["Besides"]

_ALWAYS = frozenset({"tool_calls", "function_call", "reasoning_content", "refusal", SIGNATURES})


class Besides:
    """What a message says beside its content.

    Chat Completions has the words of a refusal there, and the sound of a reply that is spoken (langchain-openai:
    `_convert_dict_to_message`); DeepSeek, Qwen and Ollama their thinking.
    """

    def __init__(self, message: dict[str, Any], place: str) -> None:
        self._said = mapping_of(message.get("additional_kwargs"))
        self._provider = text_of(mapping_of(message.get("response_metadata")).get("model_provider"))
        self._in_content = {text_of(mapping_of(item).get("type")) for item in items_of(message.get("content"))}
        self._place = f"{place}.additional_kwargs"
        self._sound = mapping_of(self._said.get("audio"))

    @property
    def unread(self) -> dict[str, Any]:
        """What is none of these."""
        read = _ALWAYS | ({"audio"} if self._sound else set[str]())
        return {key: item for key, item in self._said.items() if key not in read}

    def before(self) -> Iterator[Block]:
        """What comes before the content: thinking."""
        thinking = text_of(self._said.get("reasoning_content"))
        if thinking:
            issuer = ISSUERS.get(self._provider)
            yield ThinkingBlock(thinking, OpaqueState(issuer) if issuer else None)

    def behind(self) -> Iterator[Block]:
        """What comes between the content and the calls: a refusal, a sound."""
        refusal = text_of(self._said.get("refusal"))
        if refusal and "refusal" not in self._in_content:
            yield TextBlock(refusal, metadata={"refusal": True})
        if self._sound:
            said = {"role": "assistant", "audio": self._sound}
            yield _as_told("openai", said, f"{self._place}.audio")


def _as_told(wire: str, entry: object, place: str) -> Block:
    """The one block that an entry of a wire's log is, as the wire's own loader reads it."""
    load = load_provider(wire).load_native
    try:
        blocks = load([entry])[0].blocks if load is not None else ()
    except MessageError as error:
        return InvalidBlock(entry, f"{error.place}: {error.reason}", place)
    block = next(iter(blocks), None)
    if block is None or isinstance(block, InvalidBlock):
        return InvalidBlock(entry, block.reason if block else "it says nothing", place)
    return block
