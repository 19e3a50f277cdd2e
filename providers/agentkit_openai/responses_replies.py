"""Replies of OpenAI Responses, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Unpack, cast

from agentkit import (
    Base64Source,
    FinishReason,
    ImageBlock,
    MessageError,
    OpaqueBlock,
    ReadOptions,
    StreamParserBase,
    items_of,
    mapping_of,
    plain_values,
    text_of,
)
from agentkit_openai.custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai.item_places import ItemPlaces, Place
from agentkit_openai.reasoning import BETWEEN, reasoning_state, reasoning_text
from agentkit_openai.refusals import REFUSAL_PART
from agentkit_openai.reply_words import error_of, reason_of, usage_of
from agentkit_openai.responses import CALL_FIELDS, RESPONSES

__all__ = ["OpenAIResponsesStreamParser", "picture_of"]

_WIRE = str(RESPONSES.wire)
_CALLS = frozenset({"function_call", "custom_tool_call"})
_SHOWN = _CALLS | {"message", "reasoning"}  # items whose pieces are blocks

_THINKING, _SAID, _CALL, _WHOLE = range(4)
"""The kinds of blocks that an item may turn out to be: two of them only where a stream is at odds with itself."""


class OpenAIResponsesStreamParser(StreamParserBase):
    """Reads `responses`: a `Response`, or the events of its stream, as SDK objects, dicts or raw bytes.

    Blocks stand in the order of the output. Messages keep their `phase`, calls their `namespace` and `caller`,
    reasoning its id and `encrypted_content`: `OpenAIResponsesFormatter` sends them back. What the service did by
    itself is an `OpaqueBlock`. An item that is done is the truth over its pieces.
    """

    provider: ClassVar[str] = "openai-responses"
    issuer: ClassVar[str] = "openai"
    binds_thinking: ClassVar[bool] = True
    raw_arguments: ClassVar[bool] = True

    def __init__(self, **options: Unpack[ReadOptions]) -> None:
        super().__init__(**options)
        self._places = ItemPlaces()
        self._phases: dict[Place, str] = {}
        self._summaries: dict[Place, object] = {}  # the part of the reasoning that is being said
        self._citations: dict[tuple[int, ...], list[Any]] = {}
        self._custom: set[tuple[int, ...]] = set()
        self._asked: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {}  # finished calls by their ids
        self._open: dict[Place, dict[str, Any]] = {}  # items that have begun
        self._refused = False
        self._events: dict[str, Callable[[dict[str, Any]], None]] = {
            "response.output_text.delta": self._text_delta,
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.reasoning_summary_text.delta": self._summary_delta,
            "response.reasoning_text.delta": self._thought_delta,
            "response.refusal.delta": self._refusal_delta,
            "response.custom_tool_call_input.delta": self._input_delta,
            "response.output_text.annotation.added": self._annotation,
            "response.output_text.done": self._text_done,
            "response.function_call_arguments.done": self._arguments_done,
            "response.created": self._begun,
            "response.queued": self._begun,
            "response.in_progress": self._begun,
            "response.output_item.added": self._added,
            "response.output_item.done": self._done,
            "response.completed": self._ended,
            "response.incomplete": self._ended,
            "response.failed": self._ended,
            "response.cancelled": self._ended,
            "error": self._failed,
        }

    # -- a whole reply -------------------------------------------------------------------------------------------

    def read_whole(self, reply: dict[str, Any]) -> None:
        """A whole reply (SDK: Response)."""
        if not isinstance(reply.get("output"), list) and reply.get("object") != "response":
            error = error_of(reply)
            if error:
                raise MessageError("reply", f"the provider reports an error: {error[0]}", "Send it again.")
            raise MessageError("reply", "it has no output", "Give a reply of Responses.")
        self.reply.begin(reply.get("id"), reply.get("model"))
        self._end(reply)

    def _end(self, reply: dict[str, Any]) -> None:
        """A whole reply, of which some items may have been read before."""
        self._settle(items_of(reply.get("output")))
        transformed = items_of(reply.get("input_transformations"))
        if transformed:  # reasoning that the service left out of the prompt (SDK: InputTransformation)
            self.reply.notes["input_transformations"] = plain_values(transformed)
        error = error_of(reply)
        status = text_of(reply.get("status"))
        if error or status == "failed":
            self._fail(error, status)
        else:
            self._finish(status, text_of(mapping_of(reply.get("incomplete_details")).get("reason")))
        usage = usage_of(reply.get("usage"))
        if usage:
            self.reply.use(usage)

    def _settle(self, output: list[Any]) -> None:
        """Read the items that no event told of; a gateway may send none, or an empty list at the end."""
        places = sorted(self._places.all)
        if len(places) != len(output):
            if any(at >= len(output) or again for at, again in places):
                return  # no telling which is which
            places = [(at, 0) for at in range(len(output))]
        for place, item in zip(places, output, strict=True):
            if place not in self._places.done and isinstance(item, dict):
                self._places.done.add(place)
                self._read_item(place, cast("dict[str, Any]", item))

    def _mark_cut(self) -> None:
        """Calls that were cut before their first argument say so: nothing else shows it."""
        for place, item in self._open.items():
            key = (*place, _CALL, 0)
            if str(item.get("type")) in _CALLS and not self.reply.arguments_of(key).strip():
                self.reply.note(key, incomplete=True)

    def _finish(self, status: str, detail: str) -> None:
        if status != "completed":
            self._mark_cut()
        word = detail or status
        reason = reason_of(word) if word else FinishReason.STOP
        if reason in (FinishReason.STOP, FinishReason.OTHER) and self._refused:
            reason = FinishReason.REFUSAL
        self.reply.end(reason, word or None)

    def _fail(self, error: tuple[str, str | None] | None, status: str) -> None:
        if self.reply.error is None:
            self.reply.fail(*(error or ("the response failed", None)))
        self.reply.native_reason = status or None

    # -- items ---------------------------------------------------------------------------------------------------

    def _read_item(self, place: Place, item: dict[str, Any]) -> None:
        """A finished item (SDK: ResponseOutputItem): the truth over the pieces that came of it."""
        kind = item.get("type")
        self._open.pop(place, None)
        if kind == "message":
            self._message(place, item)
        elif kind == "reasoning":
            self._reasoning((*place, _THINKING, 0), item)
        elif kind == "function_call":
            self._call((*place, _CALL, 0), item)
        elif kind == "custom_tool_call":
            self._custom_call((*place, _CALL, 0), item)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._answer(place, item)
        elif picture := picture_of(item):
            self.reply.add((*place, _WHOLE, 0), picture)
        elif kind and isinstance(kind, str):
            self.reply.add((*place, _WHOLE, 0), OpaqueBlock(_WIRE, plain_values(item)))
        else:
            self.reply.notes.setdefault("unread", []).append(plain_values(item))

    def _answer(self, place: Place, item: dict[str, Any]) -> None:
        """The output of a call that the service ran by itself: the two are a pair, and nobody's to run.

        SDK: ResponseFunctionToolCallOutputItem, where a program of the service called (`caller`).
        """
        asked = self._asked.pop(text_of(item.get("call_id")), None)
        if asked is not None:
            self.reply.swap(asked[0], OpaqueBlock(_WIRE, plain_values(asked[1])))
        self.reply.add((*place, _WHOLE, 0), OpaqueBlock(_WIRE, plain_values(item)))

    def _message(self, place: Place, item: dict[str, Any]) -> None:
        self._phases[place] = text_of(item.get("phase"))
        for number, part in enumerate(items_of(item.get("content"))):
            held = mapping_of(part)
            key = (*place, _SAID, number)
            refused = held.get("type") == "refusal"
            text = text_of(held.get("refusal" if refused else "text"))
            if not self.reply.holds(key):
                self._say(key, text, refused)
            if text:
                self.reply.set_text(key, text)
            if refused:
                self._refuse(key)
            self._citations.pop(key, None)
            if cited := items_of(held.get("annotations")):
                self.reply.note(key, citations=plain_values(cited))
            self.reply.close(key)

    def _reasoning(self, key: tuple[int, ...], item: dict[str, Any]) -> None:
        text = reasoning_text(item)
        if not self.reply.holds(key):
            self.reply.think(key, text)
        elif text:
            self.reply.set_text(key, text)
        self.reply.sign(key, **reasoning_state(item))
        self.reply.close(key)

    def _call(self, key: tuple[int, ...], item: dict[str, Any]) -> None:
        arguments: Any = item.get("arguments")
        begun = self.reply.arguments_of(key)
        self.reply.call(key, _call_id(item), item.get("name"), "" if begun else text_of(arguments))
        if isinstance(arguments, dict) or text_of(arguments):
            self.reply.set_input(key, cast("object", arguments))
        if item.get("status") == "incomplete":
            self.reply.note(key, incomplete=True)
        self._sign_call(key, item)
        self.reply.close(key)

    def _custom_call(self, key: tuple[int, ...], item: dict[str, Any]) -> None:
        text = text_of(item.get("input"))
        begun = self.reply.arguments_of(key)
        self.reply.call(key, _call_id(item), item.get("name"), "" if begun else text)
        self.reply.set_input(key, custom_input(text or begun))
        self._sign_call(key, item, CUSTOM_CALL)
        self.reply.close(key)

    def _sign_call(self, key: tuple[int, ...], item: dict[str, Any], known: dict[str, Any] | None = None) -> None:
        held = {name: item[name] for name in CALL_FIELDS if item.get(name)}
        fields = {**(known or {}), **plain_values(held)}
        if fields:
            self.reply.sign(key, fields=fields)
        self._asked[_call_id(item)] = key, item

    # -- events --------------------------------------------------------------------------------------------------

    def read_event(self, event: dict[str, Any]) -> None:
        """An event (SDK: ResponseStreamEvent); what only repeats others is passed over."""
        kind = event.get("type")
        read = self._events.get(kind) if isinstance(kind, str) else None
        if read:
            read(event)
        elif (not kind or "error" in event) and error_of(event):
            self._failed(event)

    def _begun(self, event: dict[str, Any]) -> None:
        held = mapping_of(event.get("response"))
        self.reply.begin(held.get("id"), held.get("model"))

    def _ended(self, event: dict[str, Any]) -> None:
        self._begun(event)
        held = mapping_of(event.get("response"))
        status = text_of(held.get("status")) or str(event["type"]).rpartition(".")[2]
        self._end({**held, "status": status})

    def _failed(self, event: dict[str, Any]) -> None:
        self._fail(error_of(event), "")

    def _added(self, event: dict[str, Any]) -> None:
        place = self._places.begin(event)
        item = mapping_of(event.get("item"))
        kind = item.get("type")
        self._open[place] = item
        if kind == "message":
            self._phases[place] = text_of(item.get("phase"))
        elif str(kind) in _CALLS:
            key = (*place, _CALL, 0)
            self.reply.call(key, item.get("call_id"), item.get("name"))
            self._sign_call(key, item, CUSTOM_CALL if kind == "custom_tool_call" else None)

    def _done(self, event: dict[str, Any]) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            place = self._places.end(event)
            if place is not None:
                self._read_item(place, cast("dict[str, Any]", item))

    def _text_delta(self, event: dict[str, Any]) -> None:
        self._say(self._part(event), _piece(event))

    def _refusal_delta(self, event: dict[str, Any]) -> None:
        self._say(self._part(event), _piece(event), refused=True)

    def _text_done(self, event: dict[str, Any]) -> None:
        key, text = self._part(event), text_of(event.get("text"))
        if not self.reply.holds(key):
            self._say(key, text)
        elif text:
            self.reply.set_text(key, text)

    def _part(self, event: dict[str, Any]) -> tuple[int, ...]:
        number = event.get("content_index")
        return (*self._places.find(event), _SAID, number if type(number) is int else 0)

    def _say(self, key: tuple[int, ...], text: str, refused: bool = False) -> None:
        if not text:
            return
        begins = not self.reply.holds(key)
        self.reply.text(key, text)
        if begins and (phase := self._phases.get((key[0], key[1]))):
            self.reply.sign(key, fields={"phase": phase})
        if begins and refused:
            self._refuse(key)

    def _refuse(self, key: tuple[int, ...]) -> None:
        if self.reply.holds(key):
            self._refused = True
            self.reply.note(key, refusal=True)
            phase = self._phases.get((key[0], key[1]))
            self.reply.sign(key, fields={**REFUSAL_PART, **({"phase": phase} if phase else {})})

    def _annotation(self, event: dict[str, Any]) -> None:
        if found := event.get("annotation"):
            self._citations.setdefault(self._part(event), []).append(plain_values(found))

    def _summary_delta(self, event: dict[str, Any]) -> None:
        self._think(event, ("summary", event.get("summary_index")))

    def _thought_delta(self, event: dict[str, Any]) -> None:
        said = self._summaries.get(self._places.find(event))
        if not (isinstance(said, tuple) and said[0] == "summary"):  # the summary goes first where both come
            self._think(event, ("content", event.get("content_index")))

    def _think(self, event: dict[str, Any], part: tuple[str, object]) -> None:
        text = _piece(event)
        if not text:
            return
        place = self._places.find(event)
        before = self._summaries.get(place, part)
        self._summaries[place] = part
        self.reply.think((*place, _THINKING, 0), text if before == part else f"{BETWEEN}{text}")

    def _arguments_delta(self, event: dict[str, Any]) -> None:
        self.reply.call((*self._places.find(event), _CALL, 0), piece=_piece(event))

    _input_delta = _arguments_delta

    def _arguments_done(self, event: dict[str, Any]) -> None:
        key, text = (*self._places.find(event), _CALL, 0), text_of(event.get("arguments"))
        begun = self.reply.arguments_of(key)
        if text and begun:
            self.reply.set_input(key, text)
        elif text:
            self.reply.call(key, piece=text)

    def close(self) -> None:
        """Citations of texts that were never done, and what the service was doing when the stream broke off."""
        for key, cited in self._citations.items():
            self.reply.note(key, citations=cited)
        begun = [item for item in self._open.values() if str(item.get("type")) not in _SHOWN]
        if begun:
            self.reply.notes["incomplete_parts"] = plain_values(begun)


def _piece(event: dict[str, Any]) -> str:
    """The text of an event, as it is: half a character at its end may wait for the other half."""
    delta = event.get("delta")
    return delta if isinstance(delta, str) else ""


def _call_id(item: dict[str, Any]) -> str:
    return text_of(item.get("call_id")) or text_of(item.get("id"))


def picture_of(item: dict[str, Any]) -> ImageBlock | None:
    """The picture of an `image_generation_call` that succeeded; None for any other item."""
    data = text_of(item.get("result"))
    if item.get("type") != "image_generation_call" or not data or data.startswith("data:"):
        return None
    format = text_of(item.get("output_format")) or "png"
    media_type = {"svg": "image/svg+xml", "jpg": "image/jpeg"}.get(format, f"image/{format}")
    known = {name: item[name] for name in ("id", "revised_prompt", "size") if isinstance(item.get(name), str)}
    try:
        return ImageBlock(Base64Source(media_type, data), metadata=plain_values(known) or None)
    except MessageError:
        return ImageBlock(Base64Source("image/png", data), metadata=plain_values(known) or None)
