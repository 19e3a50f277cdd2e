"""Parser for complete and streamed replies of DashScope's native API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Unpack, cast

from agentkit.provider_kit import (
    BlockKey,
    FinishReason,
    MessageError,
    ParserOptions,
    StreamParserBase,
    ToolCallIndex,
    Usage,
    as_list,
    as_object,
    as_text,
    as_token_count,
    list_keys,
    make_json_safe,
    reported_error,
)
from agentkit_dashscope._content_reader import TEXT, ContentReader
from agentkit_dashscope._increments import Increments
from agentkit_dashscope._reply_media import ReplyAudio
from agentkit_dashscope.capabilities import LAYOUT
from agentkit_openai import parse_usage

__all__ = ["DashScopeStreamParser"]

_REASONS: Final = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH, "tool_calls": FinishReason.TOOL_USE}
"""Finish reasons by their names in the API (Model Studio docs: `finish_reason`).

Before the last event of a stream, the API's finish reason is the string "null".
"""

_FILTER_CODE: Final = "DataInspectionFailed"
"""Code of the error for inappropriate input or output (Model Studio docs: error codes)."""

# Keys determine the order of the blocks in a message. Keys of text and media begin with 1 (see `ContentReader`).
_THINKING: Final = (0,)
_CALLS: Final = 2
_AUDIO: Final = (3,)


class DashScopeStreamParser(StreamParserBase):
    """Parser for replies and stream events of DashScope's native API.

    The parser accepts objects of the SDK (classic or `dashscope.v2`), their dicts, and raw bytes of an event
    stream. In some streams, each event repeats all earlier text. The parameter `incremental_output` of the request
    turns the repetition on or off. Without the request, the parser compares the texts to detect repetition.

    A reply with HTTP status 200 can contain an error. `input_tokens` includes media tokens, and `output_tokens`
    includes reasoning tokens (Model Studio docs). The parser reads only the first of several choices. Search
    results become the `citations` of the text.
    """

    provider = "dashscope"
    issuer = "dashscope"
    layout = LAYOUT
    raw_arguments = True

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._increments: Increments[BlockKey] = Increments(_requests_cumulative_events(self.request))
        self._is_decided = False  # True when the type of the stream (see `Increments`) is known
        self._content = ContentReader(self.reply, self._increments)
        self._call_index = ToolCallIndex(self.reply, _CALLS)
        self._usage: object = None
        self._search_results: list[Any] = []
        self._logprobs: list[Any] = []
        self._audio = ReplyAudio()

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Adds the content of a complete reply to `self.reply`. The reply has the same fields as a stream event.

        Raises:
            MessageError: The value is not a reply of the native API, or the reply is an error.
        """
        failed = _parse_error(reply)
        if failed:
            message, code = failed
            raise reported_error(f"{message} ({code})" if code else message)
        choice = _find_first_choice(_get_output(reply))
        if choice is None:
            reason = f"expected an object with `output` or `choices`, got {list_keys(reply)}"
            raise MessageError("reply", reason, "Pass a reply of DashScope's native API.")
        self._increments.cumulative = False
        self.read_event(reply)
        if choice.get("finish_reason") is None:
            self._end(None)

    def read_event(self, event: dict[str, Any]) -> None:
        """Adds the content of one stream event to `self.reply`."""
        if self.reply.id is None:
            self.reply.begin(event.get("request_id"), event.get("model"))
        if event.get("usage"):
            self._usage = event["usage"]
        if event.get("code") or event.get("error") or event.get("status_code", 200) != 200:
            failed = _parse_error(event)
            if failed:
                self._fail(*failed, as_text(event.get("request_id")))
                return
        output = _get_output(event)
        choice = _find_first_choice(output)
        if choice is None:
            return
        native = choice.get("finish_reason")
        is_unfinished = native is None or native == "null"
        self._read_choice(choice, is_unfinished)
        if len(output) > 1:
            self._read_extras(output)
        if not is_unfinished and isinstance(native, str):
            self._end(native)

    def _read_extras(self, output: dict[str, Any]) -> None:
        """Stores the search results and the audio of an event until the end of the reply."""
        if output.get("search_info"):
            self._search_results = (
                as_list(as_object(output["search_info"]).get("search_results")) or self._search_results
            )
        if output.get("audio"):
            self._audio.add(as_object(output["audio"]))

    def close(self) -> None:
        """Adds the usage, the citations and other metadata to the message at the end of a reply.

        If the reply has no finish reason, `_end` was not called. This method then also adds the audio block.
        """
        self._set_usage()
        if self.reply.finish_reason is None:
            self._add_audio()
        if self._content.extras:
            self.reply.notes["content_extras"] = make_json_safe(self._content.extras)
        if self._search_results and self.reply.has_block(TEXT):
            self.reply.add_metadata(TEXT, citations=make_json_safe(self._search_results))
        elif self._search_results:
            self.reply.notes["search_results"] = make_json_safe(self._search_results)
        if self._logprobs:
            self.reply.add_metadata(TEXT, logprobs=make_json_safe(self._logprobs))

    # -- parts of an event ---------------------------------------------------------------------------------------

    def _read_choice(self, choice: dict[str, Any], is_unfinished: bool) -> None:
        message = as_object(choice.get("message")) or as_object(choice.get("delta"))
        thinking: object = message.get("reasoning_content")
        content: object = message.get("content")
        calls: object = message.get("tool_calls")
        if thinking and isinstance(thinking, str):
            self.reply.add_thinking(_THINKING, self._increments.add(_THINKING, thinking))
        if content:
            self._content.read(content)
        if calls:
            self._read_calls(as_list(calls))
        if choice.get("logprobs"):
            logprobs = as_list(as_object(choice["logprobs"]).get("content"))
            self._logprobs = logprobs if self._increments.cumulative else [*self._logprobs, *logprobs]
        if not self._is_decided:
            if not (is_unfinished or thinking or calls or _has_content(content)):
                self._increments.end()
            self._correct_texts()

    def _read_calls(self, calls: list[Any]) -> None:
        used: set[BlockKey] = set()
        for position, call in enumerate(calls):
            entry = as_object(call)
            function = as_object(entry.get("function"))
            name, arguments = function.get("name"), function.get("arguments")
            index, id = entry.get("index"), as_text(entry.get("id"))
            index = index if type(index) is int else position
            key = self._call_index.find(index, id, as_text(name), used)
            used.add(key)
            self.reply.add_tool_call(key, id if self._call_index.is_first_with_id(key, id) else "", name)
            if isinstance(arguments, dict):
                self.reply.replace_arguments(key, cast("object", arguments))
            elif arguments and isinstance(arguments, str):
                self.reply.add_tool_call(key, piece=self._increments.add(key, arguments))

    # -- the end -------------------------------------------------------------------------------------------------

    def _correct_texts(self) -> None:
        """Corrects texts that `Increments` read incorrectly while the type of the stream was unknown."""
        self._is_decided = self._increments.cumulative is not None
        for key, text in self._increments.pop_corrections().items():
            if key[0] == _CALLS:
                self.reply.replace_arguments(key, text)
            else:
                self.reply.replace_text(key, text)

    def _end(self, native: str | None) -> None:
        self._set_usage()
        self._add_audio()
        reason = FinishReason.STOP if native is None else _REASONS.get(native, FinishReason.OTHER)
        if reason is FinishReason.LENGTH and (last := self._call_index.last):
            has_arguments = self.reply.has_complete_arguments(last) or self.reply.get_arguments(last).strip()
            if not has_arguments:
                self.reply.add_metadata(last, incomplete=True)
        self.reply.end(reason, as_text(native) or None)

    def _set_usage(self) -> None:
        """Sets the usage of the message to the last usage in the stream."""
        if fields := as_object(self._usage):
            self.reply.set_usage(parse_usage(fields) or Usage())
        self._usage = None

    def _fail(self, message: str, code: str | None, request_id: str) -> None:
        self._set_usage()
        self.reply.fail(message, code, request_id)
        if code == _FILTER_CODE:
            self.reply.end(FinishReason.CONTENT_FILTER, code)

    def _add_audio(self) -> None:
        block, self._audio = self._audio.create_block(), ReplyAudio()
        if block is not None:
            self._content.add_media(_AUDIO, block)


# -- fields outside of the message ------------------------------------------------------------------------------


def _requests_cumulative_events(request: Mapping[str, Any] | None) -> bool | None:
    """Returns True if a request asks for a stream in which each event repeats all earlier text.

    The request contains `incremental_output` as an argument of the SDK's method, or in `parameters` of the JSON
    body. The result is the opposite of `incremental_output`, or None if the request does not contain this key.
    """
    if request is None:
        return None
    is_incremental = request.get("incremental_output")
    if is_incremental is None:
        is_incremental = as_object(request.get("parameters")).get("incremental_output")
    return not is_incremental if isinstance(is_incremental, bool) else None


def _get_output(event: dict[str, Any]) -> dict[str, Any]:
    """Returns the object that contains the choices: the field `output` of a reply or event.

    A reply of `dashscope.v2` contains the choices directly. For such a reply, returns the reply itself.
    """
    output: dict[str, Any] | None = event.get("output")
    return output if isinstance(output, dict) else event


def _find_first_choice(output: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the first choice in the output of a reply, or None if the output has no choice.

    With `result_format="text"`, the output has no list of choices. The function then builds a choice from the
    fields of the output.
    """
    choices: list[dict[str, Any] | None] | None = output.get("choices")
    if isinstance(choices, list) and choices:
        for choice in choices:
            if isinstance(choice, dict) and not choice.get("index"):
                return choice
        return None
    text = output.get("text")
    if isinstance(text, str):
        return {"finish_reason": output.get("finish_reason"), "message": {"content": text}}
    return {"finish_reason": output.get("finish_reason")} if output.get("audio") else None


def _has_content(content: object) -> bool:
    """Returns True if the content of a message is not empty. Content such as `[{"text": ""}]` is empty too."""
    return any(any(as_object(part).values()) for part in as_list(content)) or bool(as_text(content))


def _parse_error(event: dict[str, Any]) -> tuple[str, str | None] | None:
    """Returns the message and the code of an error, or None if the reply or event is not an error.

    An event with an empty code is not an error, because SDK objects of successful replies have an empty code.
    """
    inner = as_object(event.get("error"))  # in the compatible mode, an error has its fields in `error`
    code, status = as_text(event.get("code")) or as_text(inner.get("code")), event.get("status_code")
    has_bad_status = isinstance(status, int) and not isinstance(status, bool) and status != 200
    if not code and not inner and not has_bad_status:
        return None
    message = as_text(event.get("message")) or as_text(inner.get("message")) or "the error has no message"
    return message, code or (str(as_token_count(status)) if has_bad_status else None)
