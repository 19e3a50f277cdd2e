"""Parser for replies of DashScope's native API, whole and streamed, from both of its paths."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, ClassVar, Final, Unpack, cast

from agentkit.provider_kit import (
    BlockKey,
    FinishReason,
    MediaBlock,
    MessageError,
    ParserOptions,
    StreamParserBase,
    ToolCallIndex,
    URLSource,
    WireLayout,
    as_list,
    as_object,
    as_text,
    make_json_safe,
    reported_error,
)
from agentkit_dashscope._envelope import (
    find_first_choice,
    get_output,
    has_content,
    parse_error,
    parse_usage,
    requests_cumulative_events,
)
from agentkit_dashscope._increments import Increments
from agentkit_dashscope._media_parts import BLOCK_TYPES, ReplyAudio, create_media_block
from agentkit_dashscope.capabilities import LAYOUT

__all__ = ["DashScopeStreamParser"]

_REASONS: Final = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_USE,
}
"""model-studio, `finish_reason`. It is the string "null" until the last event."""

_FILTER_CODE: Final = "DataInspectionFailed"
"""model-studio, error codes: the input or output may be inappropriate. The error may arrive within a stream."""

_THINKING: Final = (0,)
_CONTENT: Final = 1
_TEXT: Final = (_CONTENT, 0)
_CALLS: Final = 2
_AUDIO: Final = (3,)


class DashScopeStreamParser(StreamParserBase):
    """Parser for responses of the SDK (classic and `dashscope.v2`), their dicts, and raw events.

    Events have increments or the whole text so far, as the request's `incremental_output` asks. Without a request,
    the parser detects which of the two. Errors are values, even with HTTP status 200; a stream has an ErrorEvent.
    `input_tokens` includes the tokens of media, `output_tokens` those of reasoning (model-studio). Only the first
    of several choices is read. Search results become the `citations` of the text.
    """

    provider: ClassVar[str] = "dashscope"
    issuer: ClassVar[str] = "dashscope"
    layout: ClassVar[WireLayout] = LAYOUT
    raw_arguments: ClassVar[bool] = True

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._increments: Increments[BlockKey] = Increments(requests_cumulative_events(self.request))
        self._is_decided = False  # True if the stream has shown whether events have increments or whole texts
        self._block_index = 0  # block index of the last part of the last event
        self._in_text = True
        self._media: set[str] = set()
        self._extras: list[Any] = []
        self._call_index = ToolCallIndex(self.reply, _CALLS)
        self._usage: object = None
        self._search_results: list[Any] = []
        self._logprobs: list[Any] = []
        self._audio = ReplyAudio()

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Reads a whole reply, which has the form of a single event.

        Raises:
            MessageError: The value is not a reply of the native API, or the reply is an error.
        """
        failed = parse_error(reply)
        if failed:
            message, code = failed
            raise reported_error(f"{message} ({code})" if code else message)
        choice = find_first_choice(get_output(reply))
        if choice is None:
            raise MessageError(
                "reply", "expected an object with the key `output`", "Pass a reply of DashScope's native API."
            )
        self._increments.cumulative = False
        self.read_event(reply)
        if choice.get("finish_reason") is None:
            self._end(None)

    def read_event(self, event: dict[str, Any]) -> None:
        """Reads one event of the stream."""
        if self.reply.id is None:
            self.reply.begin(event.get("request_id"), event.get("model"))
        if event.get("usage"):
            self._usage = event["usage"]
        if event.get("code") or event.get("error") or event.get("status_code", 200) != 200:
            failed = parse_error(event)
            if failed:
                self._fail(*failed, as_text(event.get("request_id")))
                return
        output = get_output(event)
        choice = find_first_choice(output)
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
        """Reads search results and audio, which are beside the choices."""
        if output.get("search_info"):
            self._search_results = (
                as_list(as_object(output["search_info"]).get("search_results")) or self._search_results
            )
        if output.get("audio"):
            self._audio.add(as_object(output["audio"]))

    def close(self) -> None:
        """Sets the last usage and citations, and adds audio that was sent in pieces."""
        self._set_usage()
        if self.reply.finish_reason is None:
            self._add_audio()
        key = _TEXT
        if self._extras:
            self.reply.notes["content_extras"] = make_json_safe(self._extras)
        if self._search_results and self.reply.has_block(key):
            self.reply.add_metadata(key, citations=make_json_safe(self._search_results))
        elif self._search_results:
            self.reply.notes["search_results"] = make_json_safe(self._search_results)
        if self._logprobs:
            self.reply.add_metadata(key, logprobs=make_json_safe(self._logprobs))

    # -- parts of an event ---------------------------------------------------------------------------------------

    def _read_choice(self, choice: dict[str, Any], is_unfinished: bool) -> None:
        message = as_object(choice.get("message")) or as_object(choice.get("delta"))
        thinking: object = message.get("reasoning_content")
        content: object = message.get("content")
        calls: object = message.get("tool_calls")
        if thinking and isinstance(thinking, str):
            self._add_text(_THINKING, thinking)
        if content:
            if isinstance(content, str):
                self._add_text(_TEXT, content)
            else:
                self._read_parts(as_list(content))
        if calls:
            self._read_calls(as_list(calls))
        if choice.get("logprobs"):
            self._read_logprobs(as_list(as_object(choice["logprobs"]).get("content")))
        if not self._is_decided:
            if not (is_unfinished or thinking or calls or has_content(content)):
                self._increments.end()
            self._correct_texts()

    def _add_text(self, key: BlockKey, piece: str) -> None:
        if self._increments.cumulative is not False:
            piece = self._increments.add(key, piece)
        if piece:
            if key is _THINKING:
                self.reply.add_thinking(key, piece)
            else:
                self.reply.add_text(key, piece)

    def _read_parts(self, parts: list[Any]) -> None:
        """Reads the parts of an event. Adjacent texts form one block.

        An increment continues the last block. The whole content so far starts again at the first block.
        """
        if len(parts) == 1 and self._read_single_text(parts[0]):
            return
        objects = [as_object(part) for part in parts]
        if self._restarts_content(objects):
            self._block_index, self._in_text, self._extras = 0, True, []
        texts: list[str] = []
        for part in objects:
            text = part.get("text")
            if text and isinstance(text, str):
                if not self._in_text:
                    self._block_index, self._in_text = self._block_index + 1, True
                texts.append(text)
            if len(part) > 1 or not text:
                self._flush(texts)
                self._read_media(part)
        self._flush(texts)

    def _read_single_text(self, part: dict[str, Any] | None) -> bool:
        """Reads the most common content, a single text. Returns False for any other content."""
        if not isinstance(part, dict) or len(part) > 1 or type(text := part.get("text")) is not str or not text:
            return False
        if self._increments.cumulative:
            self._block_index, self._in_text, self._extras = 0, True, []
        elif self._increments.cumulative is None or not self._in_text:
            return False
        self._add_text((_CONTENT, self._block_index), text)
        return True

    def _restarts_content(self, parts: list[dict[str, Any]]) -> bool:
        if self._increments.cumulative is not None:
            return self._increments.cumulative
        leading = takewhile(lambda part: not part.keys() & BLOCK_TYPES.keys(), parts)
        first = "".join(text for part in leading if isinstance(text := part.get("text"), str))
        return bool(first) and self._increments.extends(_TEXT, first)

    def _flush(self, texts: list[str]) -> None:
        if texts:
            self._add_text((_CONTENT, self._block_index), "".join(texts))
            texts.clear()

    def _read_media(self, part: dict[str, Any]) -> None:
        extras = {key: item for key, item in part.items() if key not in _CONTENT_KEYS}
        if extras:
            self._extras.append(extras)
        for kind in BLOCK_TYPES:
            block = create_media_block(kind, part.get(kind)) if part.get(kind) else None
            if block is not None:
                self._block_index, self._in_text = self._block_index + 1, False
                self._add_media((_CONTENT, self._block_index), block)

    def _add_media(self, key: BlockKey, block: MediaBlock) -> None:
        """Adds a media item, unless the stream is cumulative and repeats the item."""
        source = block.source.url if isinstance(block.source, URLSource) else block.source.data
        again = source in self._media and self._increments.cumulative is not False
        if not again and not self.reply.has_block(key):
            self._media.add(source)
            self.reply.add_block(key, block)

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
            self._read_arguments(key, arguments)

    def _read_arguments(self, key: BlockKey, arguments: object) -> None:
        if isinstance(arguments, dict):
            self.reply.replace_arguments(key, cast("dict[str, Any]", arguments))
        elif isinstance(arguments, str):
            self._add_arguments(key, arguments)

    def _add_arguments(self, key: BlockKey, piece: str) -> None:
        if piece and self._increments.cumulative is not False:
            piece = self._increments.add(key, piece)
        self.reply.add_tool_call(key, piece=piece)

    def _read_logprobs(self, logprobs: list[Any]) -> None:
        if self._increments.cumulative:
            self._logprobs = logprobs
        else:
            self._logprobs += logprobs

    # -- the end -------------------------------------------------------------------------------------------------

    def _correct_texts(self) -> None:
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
            self._mark_incomplete(last)
        self.reply.end(reason, as_text(native) or None)

    def _mark_incomplete(self, key: BlockKey) -> None:
        """Marks the last call of a truncated reply as incomplete if its arguments are missing."""
        if not (self.reply.has_complete_arguments(key) or self.reply.get_arguments(key).strip()):
            self.reply.add_metadata(key, incomplete=True)

    def _set_usage(self) -> None:
        """Sets the usage of the last event that has usage."""
        if self._usage is not None:
            usage = parse_usage(as_object(self._usage))
            if usage is not None:
                self.reply.set_usage(usage)
            self._usage = None

    def _fail(self, message: str, code: str | None, request_id: str) -> None:
        self._set_usage()
        self.reply.fail(message, code, request_id)
        if code == _FILTER_CODE:
            self.reply.end(FinishReason.CONTENT_FILTER, code)

    def _add_audio(self) -> None:
        block, self._audio = self._audio.create_block(), ReplyAudio()
        if block is not None:
            self._add_media(_AUDIO, block)


_CONTENT_KEYS: Final = frozenset({*BLOCK_TYPES, "text", "type"})
