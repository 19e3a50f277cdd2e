"""Replies of DashScope's own wire, whole and streamed, from both of its paths."""

from __future__ import annotations

import base64
import binascii
from itertools import count, takewhile
from typing import Any, ClassVar, Final, Unpack, cast

from pydantic_core import from_json

from agentkit import (
    AudioBlock,
    Base64Source,
    FinishReason,
    ImageBlock,
    MediaBlock,
    MessageError,
    ReadOptions,
    StreamParserBase,
    URLSource,
    VideoBlock,
    items_of,
    mapping_of,
    plain_values,
    text_of,
)
from agentkit_dashscope.envelopes import asked_cumulative, failure_of, first_choice, output_of, says, usage_of
from agentkit_dashscope.increments import Increments

__all__ = ["DashScopeStreamParser"]

_REASONS: Final = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_USE,
}
"""model-studio, `finish_reason`; the string "null" as long as the reply goes on."""

_FILTERED: Final = "DataInspectionFailed"
"""model-studio, error codes: what was asked, or answered, may be inappropriate; in the middle of a stream too."""

_KINDS: Final[dict[str, type[ImageBlock | AudioBlock | VideoBlock]]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "video": VideoBlock,
}

_THINKING: Final = (0,)
_SAID: Final = 1
_TEXT: Final = (_SAID, 0)
_CALLS: Final = 2
_SOUND: Final = (3,)

_Key = tuple[int, ...]


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

    def __init__(self, **options: Unpack[ReadOptions]) -> None:
        super().__init__(**options)
        self._increments: Increments[_Key] = Increments(asked_cumulative(self.request))
        self._settled = False  # whether it is known which of the two
        self._place = 0  # of the part that the last event ended with
        self._in_text = True
        self._media: set[str] = set()
        self._extras: list[Any] = []
        self._calls: dict[int, _Key] = {}
        self._names: dict[_Key, str] = {}
        self._ids: dict[str, _Key] = {}
        self._told: set[_Key] = set()  # the calls whose arguments came as an object
        self._usage: object = None
        self._found: list[Any] = []
        self._logprobs: list[Any] = []
        self._sound: dict[str, Any] = {}
        self._sound_data: list[str] = []

    def read_whole(self, reply: dict[str, Any]) -> None:
        """A whole reply, which looks like the one event of a stream."""
        failed = failure_of(reply)
        if failed:
            message, code = failed
            reason = f"DashScope says: {code}: {message}" if code else f"DashScope says: {message}"
            raise MessageError("reply", reason, "Mend the request, or send it again.")
        choice = first_choice(output_of(reply))
        if choice is None:
            raise MessageError("reply", "it has no output", "Give a reply of DashScope's own wire.")
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
                self._fail(*failed, text_of(event.get("request_id")))
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
            self._found = items_of(mapping_of(output["search_info"]).get("search_results")) or self._found
        if output.get("audio"):
            self._read_sound(mapping_of(output["audio"]))

    def close(self) -> None:
        """What came last counts: the tokens, the citations, a sound that came in pieces."""
        self._settle()
        if self.reply.finish_reason is None:
            self._add_sound()
        key = _TEXT
        if self._extras:
            self.reply.notes["content_extras"] = plain_values(self._extras)
        if self._found and self.reply.holds(key):
            self.reply.note(key, citations=plain_values(self._found))
        elif self._found:
            self.reply.notes["search_results"] = plain_values(self._found)
        if self._logprobs:
            self.reply.note(key, logprobs=plain_values(self._logprobs))

    # -- parts of an event ---------------------------------------------------------------------------------------

    def _read_choice(self, choice: dict[str, Any], going_on: bool) -> None:
        message = mapping_of(choice.get("message")) or mapping_of(choice.get("delta"))
        thinking: object = message.get("reasoning_content")
        content: object = message.get("content")
        calls: object = message.get("tool_calls")
        if thinking and isinstance(thinking, str):
            self._grow(_THINKING, thinking)
        if content:
            if isinstance(content, str):
                self._grow(_TEXT, content)
            else:
                self._read_parts(items_of(content))
        if calls:
            self._read_calls(items_of(calls))
        if choice.get("logprobs"):
            self._read_logprobs(items_of(mapping_of(choice["logprobs"]).get("content")))
        if not self._settled:
            if not (going_on or thinking or calls or says(content)):
                self._increments.end()
            self._mend()

    def _grow(self, key: _Key, piece: str) -> None:
        if self._increments.cumulative is not False:
            piece = self._increments.new(key, piece)
        if piece:
            if key is _THINKING:
                self.reply.think(key, piece)
            else:
                self.reply.text(key, piece)

    def _read_parts(self, parts: list[Any]) -> None:
        """The parts of a turn: texts in a row are one, media stand between.

        An event with an increment goes on where the last one stopped, one with the whole so far begins anew.
        """
        if len(parts) == 1 and self._goes_on(parts[0]):
            return
        found = [mapping_of(part) for part in parts]
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
        leading = takewhile(lambda part: not part.keys() & _KINDS.keys(), parts)
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
        for kind in _KINDS:
            block = _medium(kind, part.get(kind)) if part.get(kind) else None
            if block is not None:
                self._place, self._in_text = self._place + 1, False
                self._add((_SAID, self._place), block)

    def _add(self, key: _Key, block: MediaBlock) -> None:
        """A medium; an event with the whole so far brings it again."""
        source = block.source.url if isinstance(block.source, URLSource) else block.source.data
        again = source in self._media and self._increments.cumulative is not False
        if not again and not self.reply.holds(key):
            self._media.add(source)
            self.reply.add(key, block)

    def _read_calls(self, calls: list[Any]) -> None:
        seen: set[_Key] = set()
        for at, call in enumerate(calls):
            found = mapping_of(call)
            function = mapping_of(found.get("function"))
            if len(calls) > 1 or not self._is_more(found, function):
                self._read_call(found, function, at, seen)

    def _is_more(self, found: dict[str, Any], function: dict[str, Any]) -> bool:
        """Read what most entries are: argument text of a call that has begun at their index."""
        index, id, name = found.get("index"), found.get("id"), function.get("name")
        piece = function.get("arguments")
        key = self._calls.get(index) if type(index) is int else None
        if key is None or type(piece) is not str or (name and name != self._names.get(key)):
            return False
        if id and (type(id) is not str or self._ids.get(id) != key):
            return False
        self._say_arguments(key, piece)
        return True

    def _read_call(self, found: dict[str, Any], function: dict[str, Any], at: int, seen: set[_Key]) -> None:
        id, name, arguments = found.get("id"), text_of(function.get("name")), function.get("arguments")
        key = self._call_key(found, at, seen, name)
        seen.add(key)
        if name:
            self._names.setdefault(key, name)
        if isinstance(id, str) and id and self._ids.setdefault(id, key) != key:
            id = None  # another call's
        self.reply.call(key, id, name)
        if isinstance(arguments, dict):
            self.reply.set_input(key, cast("dict[str, Any]", arguments))
            if arguments:
                self._told.add(key)
        elif isinstance(arguments, str):
            self._say_arguments(key, arguments)

    def _say_arguments(self, key: _Key, piece: str) -> None:
        if piece and self._increments.cumulative is not False:
            piece = self._increments.new(key, piece)
        self.reply.call(key, piece=piece)

    def _call_key(self, found: dict[str, Any], at: int, seen: set[_Key], name: str) -> _Key:
        """The place of a call: its index, or its place in the list; another id under the same is another call, and
        so is another name behind whole arguments.
        """
        index = found.get("index")
        place = index if isinstance(index, int) and 0 <= index < _MANY else at
        key = self._calls.get(place, (_CALLS, place, 0))
        known, id = self.reply.id_of(key), text_of(found.get("id"))
        renamed = name and name != self._names.get(key, name) and self._is_whole(key)
        if (known and id and id != known) or (key in seen and not id) or renamed:
            id = "" if renamed and id == known else id
            candidates = ((_CALLS, place, number) for number in count())
            key = next(
                one for one in candidates if not self.reply.holds(one) or (id and self.reply.id_of(one) == id)
            )
        self._calls[place] = key
        return key

    def _is_whole(self, key: _Key) -> bool:
        """Whether the arguments of a call so far are an object."""
        text = self.reply.arguments_of(key)
        try:
            return isinstance(from_json(text.encode("utf-8", "replace")), dict) if text else key in self._told
        except ValueError:
            return False

    def _read_logprobs(self, found: list[Any]) -> None:
        if self._increments.cumulative:
            self._logprobs = found
        else:
            self._logprobs += found

    def _read_sound(self, found: dict[str, Any]) -> None:
        data = found.get("data")
        if data and isinstance(data, str):
            self._sound_data.append(data)
        self._sound |= {name: item for name, item in found.items() if item and name != "data"}

    # -- the end -------------------------------------------------------------------------------------------------

    def _mend(self) -> None:
        self._settled = self._increments.cumulative is not None
        for key, whole in self._increments.mended().items():
            if key[0] == _CALLS:
                self.reply.set_input(key, text_of(whole))
            else:
                self.reply.set_text(key, text_of(whole))

    def _end(self, native: str | None) -> None:
        self._settle()
        self._add_sound()
        reason = FinishReason.STOP if native is None else _REASONS.get(native, FinishReason.OTHER)
        if reason is FinishReason.LENGTH and self._calls:
            self._mark_cut(max(self._calls.values()))
        self.reply.end(reason, text_of(native) or None)

    def _mark_cut(self, key: _Key) -> None:
        """The last call of a reply that was too long may lack its arguments, where their text does not show it."""
        if key not in self._told and not self.reply.arguments_of(key).strip():
            self.reply.note(key, incomplete=True)

    def _settle(self) -> None:
        """The tokens of the last event that had any."""
        if self._usage is not None:
            usage = usage_of(mapping_of(self._usage))
            if usage is not None:
                self.reply.use(usage)
            self._usage = None

    def _fail(self, message: str, code: str | None, request_id: str) -> None:
        self._settle()
        self.reply.fail(message, code, request_id)
        if code == _FILTERED:
            self.reply.end(FinishReason.CONTENT_FILTER, code)

    def _add_sound(self) -> None:
        """The sound of a reply: at a URL in the end, else what came in pieces."""
        if self._sound or self._sound_data:
            block = _medium("audio", self._sound.get("url")) or _joined(self._sound_data)
            if block is not None:
                self._add(_SOUND, block)
            self._sound, self._sound_data = {}, []


_NO_EXTRAS: Final = frozenset({*_KINDS, "text", "type"})

_MANY = 10_000
"""More calls than a reply has: an index beyond is none."""


def _medium(kind: str, found: object) -> MediaBlock | None:
    url = text_of(found)
    if not url.strip():
        return None
    return _KINDS[kind](URLSource(url))


def _joined(pieces: list[str]) -> AudioBlock | None:
    """Sound that came in pieces of base64 text: a WAVE file, or bare samples."""
    try:
        data = b"".join(base64.b64decode(piece) for piece in pieces)
    except (binascii.Error, ValueError):
        return None
    media_type = "audio/wav" if data.startswith(b"RIFF") else "audio/pcm"
    return AudioBlock(Base64Source(media_type, base64.b64encode(data).decode("ascii"))) if data else None
