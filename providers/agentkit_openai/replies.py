"""Parser for replies from OpenAI Chat Completions and from compatible servers."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack, cast

from agentkit.provider_kit import (
    FinishReason,
    MessageError,
    ParserOptions,
    StreamParserBase,
    as_list,
    as_object,
    as_text,
    list_keys,
    reported_error,
)
from agentkit_openai._message_reader import MessageReader
from agentkit_openai._refusals import get_refusal_reason
from agentkit_openai._reply_fields import FINISH_REASONS, add_token_ids, parse_error, parse_usage
from agentkit_openai.capabilities import LAYOUT
from agentkit_openai.compatible import OPENAI, OpenAICompatible

__all__ = ["OpenAIChatStreamParser"]

_TRUNCATED = (FinishReason.LENGTH, FinishReason.CONTENT_FILTER, FinishReason.ERROR, FinishReason.INTERRUPTED)


class OpenAIChatStreamParser(StreamParserBase):
    """Parser for replies from Chat Completions, complete or streamed.

    A reply is a `ChatCompletion` or its chunks, as SDK objects, dicts or raw bytes. If a reply has several
    choices, the parser reads only choice 0. If there is no choice 0, the parser reads the choice that arrived
    first. `MessageReader` reads the content of the choice. `ToolCallIndex` matches the fragments of streamed tool
    calls.

    If a request to vLLM sets `return_token_ids`, `metadata["reply"]` of the message has the lists
    `prompt_token_ids` and `token_ids`.
    """

    vendor: ClassVar[OpenAICompatible] = OPENAI
    """Description of the vendor. A subclass that sets `vendor` gets the vendor's provider name and issuer."""
    provider = OPENAI.name
    issuer = OPENAI.issuer
    layout = LAYOUT
    raw_arguments = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "vendor" in vars(cls):
            cls.provider, cls.issuer = cls.vendor.name, cls.vendor.issuer

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        audio_options = as_object((self.request or {}).get("audio"))
        self._message = MessageReader(self.reply, self.vendor, audio_options.get("format"))
        self._choice: object = None  # index of the choice that the parser reads; None if not yet selected
        self._other_choices: list[dict[str, Any]] = []  # chunks of other choices, in case choice 0 never arrives
        self._last_choice: dict[str, Any] = {}  # latest chunk with a finish reason

    # -- events --------------------------------------------------------------------------------------------------

    def read_event(self, event: dict[str, Any]) -> None:
        """Reads a chunk of a streamed reply (openai-python: ChatCompletionChunk)."""
        if self.reply.model is None or self.reply.id is None:
            self.reply.begin(event.get("id"), event.get("model"), event.get("created"))
            add_token_ids(self.reply.notes, event)  # only the first chunk has the ids of the prompt
        choices = event.get("choices")
        if (not choices or "error" in event) and (error := parse_error(event)):
            self.reply.fail(*error)  # an error takes precedence over a finish reason in the same chunk
        for choice in as_list(choices):
            if isinstance(choice, dict):
                self._read_choice(choice)  # pyright: ignore[reportUnknownArgumentType] - a cast takes time
        if event.get("usage"):
            self._set_usage(event["usage"])

    def _read_choice(self, choice: dict[str, Any]) -> None:
        index = choice.get("index")
        if index != self._choice and not self._select_choice(index, choice):
            return
        delta = as_object(choice.get("delta"))
        if delta:
            self._message.read(delta)
        if choice.get("token_ids"):
            add_token_ids(self.reply.notes, choice)
        native_reason = choice.get("finish_reason")
        if native_reason and native_reason != "null":  # DashScope sends the string "null" until the reply ends
            self._last_choice = choice
            if not any(value for name, value in delta.items() if name != "role"):
                self._end_with_last_choice()

    def _select_choice(self, index: object, choice: dict[str, Any]) -> bool:
        """Returns True if the chunk belongs to choice 0 or to a choice without an index.

        Until such a chunk arrives, chunks of other choices are stored, because choice 0 may never arrive.
        """
        if self._choice is None and not index:
            self._choice, self._other_choices = 0, []
        elif self._choice is None:
            self._other_choices.append(choice)
        return self._choice is not None and not index

    def _end_with_last_choice(self) -> None:
        """Ends the reply with the finish reason that arrived last.

        Earlier finish reasons are ignored, because some servers send a finish reason in every chunk.
        """
        choice, self._last_choice = self._last_choice, {}
        if choice:
            self._end(choice, choice.get("finish_reason"))

    def _read_other_choices(self) -> None:
        """If there is no choice 0, reads the choice that arrived first."""
        choices, self._other_choices = self._other_choices, []
        if choices and self._choice is None:
            self._choice = choices[0].get("index")
            for choice in choices:
                if choice.get("index") == self._choice:
                    self._read_choice(choice)

    # -- complete replies ----------------------------------------------------------------------------------------

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Reads a complete reply (openai-python: ChatCompletion).

        Raises:
            MessageError: `reply` is not a reply of Chat Completions, or the reply reports an error.
        """
        choices = reply.get("choices")
        if not isinstance(choices, list):
            error = parse_error(reply)
            if error:
                raise reported_error(error[0])
            reason = f"expected an object in which `choices` is a list, got {list_keys(reply)}"
            raise MessageError("reply", reason, "Pass a reply of Chat Completions.")
        self.reply.begin(reply.get("id"), reply.get("model"), reply.get("created"))
        objects = [*filter(None, map(as_object, cast("list[object]", choices))), {}]
        choice = next((choice for choice in objects if choice and not choice.get("index")), objects[0])
        self._message.read(as_object(choice.get("message")), is_complete=True)
        add_token_ids(self.reply.notes, reply)
        add_token_ids(self.reply.notes, choice)
        native_reason = choice.get("finish_reason")
        if error := parse_error(reply):
            self.reply.fail(*error)
        self._end(choice, "" if native_reason == "null" else native_reason)
        self._set_usage(reply.get("usage"))

    # -- the end -------------------------------------------------------------------------------------------------

    def _end(self, choice: dict[str, Any], native_reason: object) -> None:
        if error := parse_error(choice):  # gateways report errors of other servers inside the choice
            self.reply.fail(*error)
        if self.reply.finish_reason is not None:
            return
        native = as_text(native_reason)
        # Some servers send no finish reason after audio.
        is_spoken = self._message.has_complete_audio and not native
        reason = FinishReason.STOP if is_spoken else FINISH_REASONS.get(native, FinishReason.OTHER)
        self._message.settle()
        if reason is FinishReason.TOOL_USE and not self.reply.has_calls:
            reason = FinishReason.OTHER
        if reason in _TRUNCATED:
            self._message.mark_truncated()
        if self._message.has_refusal:
            reason = get_refusal_reason(reason)
        self.reply.end(reason, native or None)

    def read_done(self) -> None:
        """Reads the end marker of a stream. The reply is then complete, even without a finish reason."""
        self._read_other_choices()
        self._end_with_last_choice()
        if self.reply.finish_reason is None and not self.reply.error and self._choice is not None:
            self._end({}, None)

    def close(self) -> None:
        """Ends a stream, and adds the citations and the audio that have arrived.

        A reply without a finish reason is complete only if its audio is complete.
        """
        self._read_other_choices()
        self._end_with_last_choice()
        self._message.add_late_audio()
        has_ended = self.reply.finish_reason is not None
        if self._message.has_complete_audio and not has_ended and not self.reply.error:
            self._end({}, None)
            return
        self._message.add_citations()
        if not has_ended:
            self._message.add_audio()

    def _set_usage(self, native_usage: object) -> None:
        if usage := parse_usage(native_usage):
            self.reply.set_usage(usage)
