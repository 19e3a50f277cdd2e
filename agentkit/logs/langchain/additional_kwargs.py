"""What LangChain keeps of a reply beside its content, in `additional_kwargs`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentkit.json_values import as_list, as_object, as_text
from agentkit.logs.langchain.blocks import ISSUERS, unnumbered
from agentkit.logs.langchain.native_entries import read_native_entry
from agentkit.logs.langchain.tool_calls import SIGNATURES
from agentkit.messages.blocks import Block, OpaqueState, TextBlock, ThinkingBlock

__all__ = ["AdditionalContent"]

_ALWAYS = frozenset({"tool_calls", "function_call", "reasoning_content", "refusal", SIGNATURES})
_ASKING = frozenset({"apply_patch_call", "computer_call", "mcp_approval_request"})
"""Items of Responses that wait for an answer of the client's: a reply ends with them."""


class AdditionalContent:
    """What a message says beside its content.

    Chat Completions has the words of a refusal there, and the sound of a reply that is spoken (langchain-openai:
    `_convert_dict_to_message`); its older form of Responses ("v0", `_convert_to_v03_ai_message`) the reasoning
    item, and the items of tools that the service ran; DeepSeek, Qwen and Ollama their thinking.
    """

    def __init__(self, message: dict[str, Any], place: str) -> None:
        self._said = as_object(message.get("additional_kwargs"))
        self._provider = as_text(as_object(message.get("response_metadata")).get("model_provider"))
        self._in_content = {as_text(as_object(item).get("type")) for item in as_list(message.get("content"))}
        self._place = f"{place}.additional_kwargs"
        self._item = _reasoning_item(self._said.get("reasoning"))
        self._sound = as_object(self._said.get("audio"))
        self._outputs = as_list(self._said.get("tool_outputs"))

    @property
    def unread(self) -> dict[str, Any]:
        """What is none of these."""
        held = {"reasoning": self._item, "audio": self._sound, "tool_outputs": self._outputs}
        read = _ALWAYS | {key for key, item in held.items() if item}
        return {key: item for key, item in self._said.items() if key not in read}

    def before(self) -> Iterator[Block]:
        """What comes before the content: thinking, and what the service's tools did."""
        thinking = as_text(self._said.get("reasoning_content"))
        if thinking:
            issuer = ISSUERS.get(self._provider)
            yield ThinkingBlock(thinking, OpaqueState(issuer) if issuer else None)
        if self._item and "reasoning" not in self._in_content:
            yield read_native_entry("openai-responses", self._item, f"{self._place}.reasoning")
        yield from self._ran(asking=False)

    def behind(self) -> Iterator[Block]:
        """What comes between the content and the calls: a refusal, a sound."""
        refusal = as_text(self._said.get("refusal"))
        if refusal and "refusal" not in self._in_content:
            yield TextBlock(refusal, metadata={"refusal": True})
        if self._sound:
            said = {"role": "assistant", "audio": self._sound}
            yield read_native_entry("openai", said, f"{self._place}.audio")

    def asked(self) -> Iterator[Block]:
        """What the service's tools wait for."""
        return self._ran(asking=True)

    def _ran(self, *, asking: bool) -> Iterator[Block]:
        for at, item in enumerate(self._outputs):
            held = unnumbered(item)
            if (as_text(held.get("type")) in _ASKING) == asking:
                yield read_native_entry("openai-responses", held or item, f"{self._place}.tool_outputs[{at}]")


def _reasoning_item(found: object) -> dict[str, Any]:
    """A reasoning item, as whose type langchain may leave off; empty for what is none."""
    item = unnumbered(found)
    if item.get("type", "reasoning") != "reasoning" or not item.keys() & {"summary", "encrypted_content", "id"}:
        return {}
    return {**item, "type": "reasoning"}
