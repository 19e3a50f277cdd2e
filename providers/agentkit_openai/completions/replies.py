"""Parser for replies of `/v1/completions`."""

from __future__ import annotations

from typing import Any, Final, cast

from agentkit.provider_kit import (
    FinishReason,
    MessageError,
    PromptReplyParser,
    as_list,
    as_object,
    as_text,
    list_keys,
    reported_error,
)
from agentkit_openai._reply_fields import FINISH_REASONS, add_token_ids, parse_error, parse_usage
from agentkit_openai.completions.convert import OpenAICompletionsFormatter

__all__ = ["OpenAICompletionsParser"]

_REASONS = {
    **FINISH_REASONS,
    # Source: text-generation-inference, router/src/lib.rs (FinishReason).
    "eos_token": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
}


_LLAMA_CPP: Final = "expected the key `choices`, got `content`. The base URL of llama.cpp must end with /v1"
"""Error text for a reply of llama.cpp's own API, whose path is `/completions`."""


class OpenAICompletionsParser(PromptReplyParser):
    """Parser for complete and streamed replies of `/v1/completions`.

    A reply is a `Completion` or its chunks, as SDK objects, dicts or raw bytes. The parser reads choice 0.

    If a request to vLLM sets `return_token_ids`, `metadata["reply"]` of the message has the lists
    `prompt_token_ids` and `token_ids`. If a request sets `logprobs`, the metadata also has the dict `logprobs`.
    The lists in this dict contain the items of all chunks.
    """

    provider = "openai-completions"
    issuer = "openai-completions"
    layout = OpenAICompletionsFormatter.base.layout

    def read_event(self, event: dict[str, Any]) -> None:
        """Adds the text of one chunk of a stream: a `Completion` of the OpenAI SDK."""
        if self.reply.model is None or self.reply.id is None:
            self.reply.begin(event.get("id"), event.get("model"), event.get("created"))
        choices = event.get("choices")
        if (not choices or "error" in event) and (error := parse_error(event)):
            self.reply.fail(*error)
        if choices is None and "content" in event:
            self.reply.fail(_LLAMA_CPP)
        for choice in map(as_object, as_list(choices)):
            if not choice.get("index"):
                self._read_choice(choice)
        if usage := parse_usage(event.get("usage")):
            self.reply.set_usage(usage)

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Adds the text of a complete reply: a `Completion` of the OpenAI SDK.

        Raises:
            MessageError: `reply` is not a reply of `/v1/completions`, or the reply reports an error.
        """
        choices = reply.get("choices")
        if not isinstance(choices, list):
            if error := parse_error(reply):
                raise reported_error(error[0])
            reason = f"expected an object in which `choices` is a list, got {list_keys(reply)}"
            reason = _LLAMA_CPP if "content" in reply else reason
            raise MessageError("reply", reason, "Pass a reply of /v1/completions.")
        self.read_event(reply)
        has_text = any(isinstance(as_object(item).get("text"), str) for item in cast("list[object]", choices))
        if self.reply.finish_reason is None and has_text:
            self.end_text(FinishReason.OTHER)

    def _read_choice(self, choice: dict[str, Any]) -> None:
        self.add_text(choice.get("text"))
        add_token_ids(self.reply.notes, choice)
        for key, values in as_object(choice.get("logprobs")).items():
            self.reply.notes.setdefault("logprobs", {}).setdefault(key, []).extend(as_list(values))
        if native := as_text(choice.get("finish_reason")):
            self.end_text(_REASONS.get(native, FinishReason.OTHER), native)
