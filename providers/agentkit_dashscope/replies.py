"""Replies of DashScope's own wire, whole and streamed, from both of its paths."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, ClassVar, Final, Unpack, cast

from agentkit.provider_kit import (
    FinishReason,
    MediaBlock,
    MessageError,
    ParserOptions,
    StreamParserBase,
    URLSource,
    as_list,
    as_object,
    as_text,
    make_json_safe,
)
from agentkit_dashscope._envelope import asked_cumulative, failure_of, first_choice, output_of, says, usage_of
from agentkit_dashscope._increments import Increments
from agentkit_dashscope._media_parts import KINDS, Sound, medium
from agentkit_dashscope._tool_call_index import Key, ToolCallIndex

__all__ = ["DashScopeStreamParser"]

_REASONS: Final = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_USE,
}
"""model-studio, `finish_reason`; the string "null" as long as the reply goes on."""

_FILTERED: Final = "DataInspectionFailed"
"""model-studio, error codes: what was asked, or answered, may be inappropriate; in the middle of a stream too."""

_THINKING: Final = (0,)
_SAID: Final = 1
_TEXT: Final = (_SAID, 0)
_CALLS: Final = 2
_SOUND: Final = (3,)


class DashScopeStreamParser(StreamParserBase):
    """Reads `GenerationResponse`s, `MultiModalConversationResponse`s, those of `dashscope.v2`, dicts, raw events.

    Whether events have increments or the whole text so far is what the request says in `incremental_output`, and
    else what they show. Errors come as values, with HTTP 200 too: in a stream they are an ErrorEvent.
    `input_tokens` has the tokens of media in it, `output_tokens` those of the reasoning (model-studio). Only the
    first of several choices is read. What a search found is the `citations` of the text.
    """

    provider: ClassVar[str] = "dashscope"
    issuer: ClassVar[str] = "dashscope"
    raw_arguments: ClassVar[bool] = True

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._increments: Increments[Key] = Increments(asked_cumulative(self.request))
        self._settled = False  # whether it is known which of the two
        self._place = 0  # of the part that the last event ended with
        self._in_text = True
        self._media: set[str] = set()
        self._extras: list[Any] = []
        self._places = ToolCallIndex(self.reply, _CALLS)
        self._usage: object = None
        self._found: list[Any] = []
        self._logprobs: list[Any] = []
        self._sound = Sound()

    def read_reply(self, reply: dict[str, Any]) -> None:
        """A whole reply, which looks like the one event of a stream."""
        failed = failure_of(reply)
        if failed:
            message, code = failed
            reason = f"DashScope says: {code}: {message}" if code else f"DashScope says: {message}"
            raise MessageError("reply", reason, "Fix the request, or send it again.")
        choice = first_choice(output_of(reply))
        if choice is None:
            raise MessageError(
                "reply", "expected an object with the key `output`", "Pass a reply of DashScope's native API."
            )
        self._increments.cumulative = False
        self.read_event(reply)
        if choice.get("finish_reason") is None:
            self._end(None)

    def read_event(self, event: dict[str, Any]) -> None:
        """One event."""
        if self.reply.id is None:
            self.reply.begin(event.get("request_id"), event.get("model"))
        if event.get("usage"):
            self._usage = event["usage"]
        if event.get("code") or event.get("error") or event.get("status_code", 200) != 200:
            failed = failure_of(event)
            if failed:
                self._fail(*failed, as_text(event.get("request_id")))
                return
        output = output_of(event)
        choice = first_choice(output)
        if choice is None:
            return
        native = choice.get("finish_reason")
        going_on = native is None or native == "null"
        self._read_choice(choice, going_on)
        if len(output) > 1:
            self._read_beside(output)
        if not going_on and isinstance(native, str):
            self._end(native)

    def _read_beside(self, output: dict[str, Any]) -> None:
        """What stands beside the choices."""
        if output.get("search_info"):
            self._found = as_list(as_object(output["search_info"]).get("search_results")) or self._found
        if output.get("audio"):
            self._sound.take(as_object(output["audio"]))

    def close(self) -> None:
        """What came last counts: the tokens, the citations, a sound that came in pieces."""
        self._settle()
        if self.reply.finish_reason is None:
            self._add_sound()
        key = _TEXT
        if self._extras:
            self.reply.notes["content_extras"] = make_json_safe(self._extras)
        if self._found and self.reply.has_block(key):
            self.reply.add_metadata(key, citations=make_json_safe(self._found))
        elif self._found:
            self.reply.notes["search_results"] = make_json_safe(self._found)
        if self._logprobs:
            self.reply.add_metadata(key, logprobs=make_json_safe(self._logprobs))

    # -- parts of an event ---------------------------------------------------------------------------------------

    def _read_choice(self, choice: dict[str, Any], going_on: bool) -> None:
        message = as_object(choice.get("message")) or as_object(choice.get("delta"))
        thinking: object = message.get("reasoning_content")
        content: object = message.get("content")
        calls: object = message.get("tool_calls")
        if thinking and isinstance(thinking, str):
            self._grow(_THINKING, thinking)
        if content:
            if isinstance(content, str):
                self._grow(_TEXT, content)
            else:
                self._read_parts(as_list(content))
        if calls:
            self._read_calls(as_list(calls))
        if choice.get("logprobs"):
            self._read_logprobs(as_list(as_object(choice["logprobs"]).get("content")))
        if not self._settled:
            if not (going_on or thinking or calls or says(content)):
                self._increments.end()
            self._mend()

    def _grow(self, key: Key, piece: str) -> None:
        if self._increments.cumulative is not False:
            piece = self._increments.new(key, piece)
        if piece:
            if key is _THINKING:
                self.reply.add_thinking(key, piece)
            else:
                self.reply.add_text(key, piece)

    def _read_parts(self, parts: list[Any]) -> None:
        """The parts of a turn: texts in a row are one, media stand between.

        An event with an increment goes on where the last one stopped, one with the whole so far begins anew.
        """
        if len(parts) == 1 and self._goes_on(parts[0]):
            return
        found = [as_object(part) for part in parts]
        if self._begins_anew(found):
            self._place, self._in_text, self._extras = 0, True, []
        texts: list[str] = []
        for part in found:
            text = part.get("text")
            if text and isinstance(text, str):
                if not self._in_text:
                    self._place, self._in_text = self._place + 1, True
                texts.append(text)
            if len(part) > 1 or not text:
                self._flush(texts)
                self._read_media(part)
        self._flush(texts)

    def _goes_on(self, part: dict[str, Any] | None) -> bool:
        """Read what most events have: one text, a piece or the whole so far, and nothing else."""
        if not isinstance(part, dict) or len(part) > 1 or type(text := part.get("text")) is not str or not text:
            return False
        if self._increments.cumulative:
            self._place, self._in_text, self._extras = 0, True, []
        elif self._increments.cumulative is None or not self._in_text:
            return False
        self._grow((_SAID, self._place), text)
        return True

    def _begins_anew(self, parts: list[dict[str, Any]]) -> bool:
        if self._increments.cumulative is not None:
            return self._increments.cumulative
        leading = takewhile(lambda part: not part.keys() & KINDS.keys(), parts)
        first = "".join(text for part in leading if isinstance(text := part.get("text"), str))
        return bool(first) and self._increments.extends(_TEXT, first)

    def _flush(self, texts: list[str]) -> None:
        if texts:
            self._grow((_SAID, self._place), "".join(texts))
            texts.clear()

    def _read_media(self, part: dict[str, Any]) -> None:
        extras = {key: item for key, item in part.items() if key not in _NO_EXTRAS}
        if extras:
            self._extras.append(extras)
        for kind in KINDS:
            block = medium(kind, part.get(kind)) if part.get(kind) else None
            if block is not None:
                self._place, self._in_text = self._place + 1, False
                self._add((_SAID, self._place), block)

    def _add(self, key: Key, block: MediaBlock) -> None:
        """A medium; an event with the whole so far brings it again."""
        source = block.source.url if isinstance(block.source, URLSource) else block.source.data
        again = source in self._media and self._increments.cumulative is not False
        if not again and not self.reply.has_block(key):
            self._media.add(source)
            self.reply.add_block(key, block)

    def _read_calls(self, calls: list[Any]) -> None:
        taken: set[Key] = set()
        for at, call in enumerate(calls):
            found = as_object(call)
            function = as_object(found.get("function"))
            name, arguments = function.get("name"), function.get("arguments")
            key = self._places.of_more(found, name) if len(calls) == 1 else None
            if key is not None and type(arguments) is str:
                self._say_arguments(key, arguments)  # what most entries are
                continue
            key, id = self._places.find(found, as_text(name), at, taken)
            taken.add(key)
            self.reply.add_tool_call(key, id, name)
            self._read_arguments(key, arguments)

    def _read_arguments(self, key: Key, arguments: object) -> None:
        if isinstance(arguments, dict):
            self.reply.replace_arguments(key, cast("dict[str, Any]", arguments))
            if arguments:
                self._places.told.add(key)
        elif isinstance(arguments, str):
            self._say_arguments(key, arguments)

    def _say_arguments(self, key: Key, piece: str) -> None:
        if piece and self._increments.cumulative is not False:
            piece = self._increments.new(key, piece)
        self.reply.add_tool_call(key, piece=piece)

    def _read_logprobs(self, found: list[Any]) -> None:
        if self._increments.cumulative:
            self._logprobs = found
        else:
            self._logprobs += found

    # -- the end -------------------------------------------------------------------------------------------------

    def _mend(self) -> None:
        self._settled = self._increments.cumulative is not None
        for key, whole in self._increments.mended().items():
            if key[0] == _CALLS:
                self.reply.replace_arguments(key, whole)
            else:
                self.reply.replace_text(key, whole)

    def _end(self, native: str | None) -> None:
        self._settle()
        self._add_sound()
        reason = FinishReason.STOP if native is None else _REASONS.get(native, FinishReason.OTHER)
        if reason is FinishReason.LENGTH and (last := self._places.last):
            self._mark_cut(last)
        self.reply.end(reason, as_text(native) or None)

    def _mark_cut(self, key: Key) -> None:
        """The last call of a reply that was too long may lack its arguments, where their text does not show it."""
        if key not in self._places.told and not self.reply.get_arguments(key).strip():
            self.reply.add_metadata(key, incomplete=True)

    def _settle(self) -> None:
        """The tokens of the last event that had any."""
        if self._usage is not None:
            usage = usage_of(as_object(self._usage))
            if usage is not None:
                self.reply.set_usage(usage)
            self._usage = None

    def _fail(self, message: str, code: str | None, request_id: str) -> None:
        self._settle()
        self.reply.fail(message, code, request_id)
        if code == _FILTERED:
            self.reply.end(FinishReason.CONTENT_FILTER, code)

    def _add_sound(self) -> None:
        block, self._sound = self._sound.block(), Sound()
        if block is not None:
            self._add(_SOUND, block)


_NO_EXTRAS: Final = frozenset({*KINDS, "text", "type"})
