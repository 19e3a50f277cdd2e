"""Replies of OpenAI Responses, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Unpack, cast

from agentkit.provider_kit import (
    FinishReason,
    MessageError,
    ParserOptions,
    StreamParserBase,
    WireLayout,
    as_list,
    as_object,
    as_text,
    make_json_safe,
    reported_error,
)
from agentkit_openai._reply_fields import error_of, reason_of, usage_of
from agentkit_openai.responses._item_index import ItemPlaces, Place
from agentkit_openai.responses._output_items import CALL, SAID, THINKING, OutputItems
from agentkit_openai.responses._reasoning import BETWEEN
from agentkit_openai.responses.capabilities import LAYOUT

__all__ = ["OpenAIResponsesStreamParser"]


class OpenAIResponsesStreamParser(StreamParserBase):
    """Reads `responses`: a `Response`, or the events of its stream, as SDK objects, dicts or raw bytes.

    Blocks stand in the order of the output. Messages keep their `phase`, calls their `namespace` and `caller`,
    reasoning its id and `encrypted_content`: `OpenAIResponsesFormatter` sends them back. What the service did by
    itself is an `OpaqueBlock`. An item that is done is the truth over its pieces.
    """

    provider: ClassVar[str] = "openai-responses"
    issuer: ClassVar[str] = "openai"
    layout: ClassVar[WireLayout] = LAYOUT
    binds_thinking: ClassVar[bool] = True
    raw_arguments: ClassVar[bool] = True

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._places = ItemPlaces()
        self._items = OutputItems(self.reply)
        self._summaries: dict[Place, object] = {}  # the part of the reasoning that is being said
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

    def read_reply(self, reply: dict[str, Any]) -> None:
        """A whole reply (SDK: Response)."""
        if not isinstance(reply.get("output"), list) and reply.get("object") != "response":
            error = error_of(reply)
            if error:
                raise reported_error(error[0])
            raise MessageError(
                "reply", "expected a Response with the key `output`", "Pass a reply of the Responses API."
            )
        self.reply.begin(reply.get("id"), reply.get("model"))
        self._end(reply)

    def _end(self, reply: dict[str, Any]) -> None:
        """A whole reply, of which some items may have been read before."""
        self._settle(as_list(reply.get("output")))
        transformed = as_list(reply.get("input_transformations"))
        if transformed:  # reasoning that the service left out of the prompt (SDK: InputTransformation)
            self.reply.notes["input_transformations"] = make_json_safe(transformed)
        error = error_of(reply)
        status = as_text(reply.get("status"))
        if error or status == "failed":
            self._fail(error, status)
        else:
            self._finish(status, as_text(as_object(reply.get("incomplete_details")).get("reason")))
        usage = usage_of(reply.get("usage"))
        if usage:
            self.reply.set_usage(usage)

    def _settle(self, output: list[Any]) -> None:
        """Read the items that no event told of; a gateway may send none, or an empty list at the end."""
        places = sorted(self._places.all)
        if len(places) != len(output):
            if any(at >= len(output) or again for at, again in places):
                return  # no telling which is which
            places = [(at, 0) for at in range(len(output))]
        for place, item in zip(places, output, strict=True):
            if isinstance(item, dict) and place in self._places.done:
                self._items.identify(place, cast("dict[str, Any]", item))  # some gateways change ids on the way
            elif isinstance(item, dict):
                self._places.done.add(place)
                self._items.finish(place, cast("dict[str, Any]", item))

    def _finish(self, status: str, detail: str) -> None:
        if status != "completed":
            self._items.mark_cut()
        word = detail or status
        reason = reason_of(word) if word else FinishReason.STOP
        if reason in (FinishReason.STOP, FinishReason.OTHER) and self._items.refused:
            reason = FinishReason.REFUSAL
        self.reply.end(reason, word or None)

    def _fail(self, error: tuple[str, str | None] | None, status: str) -> None:
        if self.reply.error is None:
            self.reply.fail(*(error or ("the response failed", None)))
        self.reply.native_reason = status or None

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
        held = as_object(event.get("response"))
        self.reply.begin(held.get("id"), held.get("model"))

    def _ended(self, event: dict[str, Any]) -> None:
        self.is_complete = True
        self._begun(event)
        held = as_object(event.get("response"))
        status = as_text(held.get("status")) or str(event["type"]).rpartition(".")[2]
        self._end({**held, "status": status})

    def _failed(self, event: dict[str, Any]) -> None:
        self._fail(error_of(event), "")

    def _added(self, event: dict[str, Any]) -> None:
        self._items.begin(self._places.begin(event), as_object(event.get("item")))

    def _done(self, event: dict[str, Any]) -> None:
        item = event.get("item")
        if isinstance(item, dict):
            place = self._places.end(event)
            if place is not None:
                self._items.finish(place, cast("dict[str, Any]", item))

    def _text_delta(self, event: dict[str, Any]) -> None:
        self._items.say(self._part(event), _piece(event))

    def _refusal_delta(self, event: dict[str, Any]) -> None:
        self._items.say(self._part(event), _piece(event), refused=True)

    def _text_done(self, event: dict[str, Any]) -> None:
        key, text = self._part(event), as_text(event.get("text"))
        if not self.reply.has_block(key):
            self._items.say(key, text)
        elif text:
            self.reply.replace_text(key, text)

    def _part(self, event: dict[str, Any]) -> tuple[int, ...]:
        number = event.get("content_index")
        return (*self._places.find(event), SAID, number if type(number) is int else 0)

    def _annotation(self, event: dict[str, Any]) -> None:
        if found := event.get("annotation"):
            self._items.cite(self._part(event), found)

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
        self.reply.add_thinking((*place, THINKING, 0), text if before == part else f"{BETWEEN}{text}")

    def _arguments_delta(self, event: dict[str, Any]) -> None:
        self.reply.add_tool_call((*self._places.find(event), CALL, 0), piece=_piece(event))

    _input_delta = _arguments_delta

    def _arguments_done(self, event: dict[str, Any]) -> None:
        key, text = (*self._places.find(event), CALL, 0), as_text(event.get("arguments"))
        if not text:
            return
        if self.reply.get_arguments(key):
            self.reply.replace_arguments(key, text)
        else:
            self.reply.add_tool_call(key, piece=text)

    def close(self) -> None:
        """What was left open."""
        self._items.close()


def _piece(event: dict[str, Any]) -> str:
    """The text of an event, as it is: half a character at its end may wait for the other half."""
    delta = event.get("delta")
    return delta if isinstance(delta, str) else ""
