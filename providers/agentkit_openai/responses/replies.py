"""Parser for replies from OpenAI Responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack, cast

from agentkit.provider_kit import (
    BlockKey,
    FinishReason,
    MessageError,
    ParserOptions,
    StreamParserBase,
    as_list,
    as_object,
    as_text,
    make_json_safe,
    reported_error,
)
from agentkit_openai._refusals import get_refusal_reason
from agentkit_openai._reply_fields import FINISH_REASONS, parse_error, parse_usage
from agentkit_openai.responses._item_index import ItemIndex, ItemKey
from agentkit_openai.responses._output_items import CALL, TEXT, THINKING, OutputItems
from agentkit_openai.responses._reasoning import PART_SEPARATOR
from agentkit_openai.responses.capabilities import LAYOUT

__all__ = ["OpenAIResponsesStreamParser"]

_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


class OpenAIResponsesStreamParser(StreamParserBase):
    """Parser for replies from OpenAI Responses, complete or streamed.

    A reply is a `Response` or the events of its stream, as SDK objects, dicts or raw bytes. Blocks have the order
    of the output. The opaque state of a block stores values that `OpenAIResponsesFormatter` sends back. Examples
    are the `phase` of messages, the `namespace` and `caller` of tool calls, and the id and `encrypted_content` of
    reasoning.

    Items of tools that OpenAI runs become opaque blocks. A complete item replaces the pieces of the same item that
    arrived earlier.
    """

    provider = "openai-responses"
    issuer = "openai"
    layout = LAYOUT
    binds_thinking = True
    raw_arguments = True

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._index = ItemIndex()
        self._items = OutputItems(self.reply)
        self._reasoning_parts: dict[ItemKey, tuple[str, object]] = {}  # latest part of the reasoning, by item
        self._readers: dict[str, Callable[[dict[str, Any]], None]] = {
            "response.output_text.delta": self._read_text_delta,
            "response.function_call_arguments.delta": self._read_arguments_delta,
            "response.reasoning_summary_text.delta": self._read_summary_delta,
            "response.reasoning_text.delta": self._read_reasoning_delta,
            "response.refusal.delta": self._read_refusal_delta,
            "response.custom_tool_call_input.delta": self._read_arguments_delta,
            "response.output_text.annotation.added": self._read_annotation,
            "response.output_text.done": self._read_text_done,
            "response.function_call_arguments.done": self._read_arguments_done,
            "response.output_item.added": self._begin_item,
            "response.output_item.done": self._finish_item,
            **dict.fromkeys(("response.created", "response.queued", "response.in_progress"), self._begin),
            **dict.fromkeys(_LAST_EVENTS, self._read_last_event),
            "error": self._read_error,
        }

    # -- complete replies ----------------------------------------------------------------------------------------

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Reads a complete reply (openai-python: Response).

        Raises:
            MessageError: `reply` is not a reply of the Responses API, or the reply reports an error.
        """
        if not isinstance(reply.get("output"), list) and reply.get("object") != "response":
            error = parse_error(reply)
            if error:
                raise reported_error(error[0])
            raise MessageError(
                "reply", "expected a Response with the key `output`", "Pass a reply of the Responses API."
            )
        self.reply.begin(reply.get("id"), reply.get("model"))
        self._read_response(reply)

    def _read_response(self, response: dict[str, Any]) -> None:
        """Reads a complete response. Some of its items may already be known from events."""
        self._read_output(as_list(response.get("output")))
        transformations = as_list(response.get("input_transformations"))
        if transformations:  # reasoning that OpenAI removed from the prompt (openai-python: InputTransformation)
            self.reply.notes["input_transformations"] = make_json_safe(transformations)
        error = parse_error(response)
        status = as_text(response.get("status"))
        if error or status == "failed":
            self._fail(error, status)
        else:
            self._end(status, as_text(as_object(response.get("incomplete_details")).get("reason")))
        if usage := parse_usage(response.get("usage")):
            self.reply.set_usage(usage)

    def _read_output(self, output: list[Any]) -> None:
        """Reads the items of the final `output` that no event contained.

        Both sources are needed: Some gateways send no items in events. Others send an empty `output` at the end.
        """
        keys = sorted(self._index.keys)
        if len(keys) != len(output):
            if any(index >= len(output) or number for index, number in keys):
                return  # the items in `output` cannot be matched with the items from events
            keys = [(index, 0) for index in range(len(output))]
        for key, item in zip(keys, map(as_object, output), strict=True):
            if key in self._index.complete:
                self._items.set_id(key, item)  # an earlier event may contain another id for this item
            elif item:
                self._index.complete.add(key)
                self._items.finish(key, item)

    def _end(self, status: str, detail: str) -> None:
        if status != "completed":
            self._items.mark_truncated()
        native = detail or status
        reason = FINISH_REASONS.get(native, FinishReason.OTHER) if native else FinishReason.STOP
        if self._items.has_refusal:
            reason = get_refusal_reason(reason)
        self.reply.end(reason, native or None)

    def _fail(self, error: tuple[str, str | None] | None, status: str) -> None:
        if self.reply.error is None:
            self.reply.fail(*(error or ("the response failed", None)))
        self.reply.native_reason = status or None

    # -- events --------------------------------------------------------------------------------------------------

    def read_event(self, event: dict[str, Any]) -> None:
        """Reads a stream event (openai-python: ResponseStreamEvent). Ignores events that repeat other events."""
        event_type = event.get("type")
        read = self._readers.get(event_type) if isinstance(event_type, str) else None
        if read:
            read(event)
        elif (not event_type or "error" in event) and parse_error(event):
            self._read_error(event)

    def _begin(self, event: dict[str, Any]) -> None:
        response = as_object(event.get("response"))
        self.reply.begin(response.get("id"), response.get("model"))

    def _read_last_event(self, event: dict[str, Any]) -> None:
        self.is_complete = True
        self._begin(event)
        response = as_object(event.get("response"))
        status = as_text(response.get("status")) or str(event["type"]).rpartition(".")[2]
        self._read_response({**response, "status": status})

    def _read_error(self, event: dict[str, Any]) -> None:
        self._fail(parse_error(event), "")

    def _begin_item(self, event: dict[str, Any]) -> None:
        self._items.begin(self._index.begin(event), as_object(event.get("item")))

    def _finish_item(self, event: dict[str, Any]) -> None:
        item = event.get("item")
        if isinstance(item, dict) and (key := self._index.end(event)) is not None:
            self._items.finish(key, cast("dict[str, Any]", item))

    # -- text ----------------------------------------------------------------------------------------------------

    def _read_text_delta(self, event: dict[str, Any]) -> None:
        self._items.add_text(self._find_text(event), _get_delta(event))

    def _read_refusal_delta(self, event: dict[str, Any]) -> None:
        self._items.add_text(self._find_text(event), _get_delta(event), is_refusal=True)

    def _read_text_done(self, event: dict[str, Any]) -> None:
        key, text = self._find_text(event), as_text(event.get("text"))
        if not self.reply.has_block(key):
            self._items.add_text(key, text)
        elif text:
            self.reply.replace_text(key, text)

    def _read_annotation(self, event: dict[str, Any]) -> None:
        if annotation := event.get("annotation"):
            self._items.add_citation(self._find_text(event), annotation)

    def _find_text(self, event: dict[str, Any]) -> BlockKey:
        """Returns the key of the text block to which an event belongs."""
        number = event.get("content_index")
        return (*self._index.find(event), TEXT, number if type(number) is int else 0)

    # -- reasoning -----------------------------------------------------------------------------------------------

    def _read_summary_delta(self, event: dict[str, Any]) -> None:
        self._add_reasoning(event, ("summary", event.get("summary_index")))

    def _read_reasoning_delta(self, event: dict[str, Any]) -> None:
        """Reads a piece of full reasoning text, unless a summary of the reasoning has already arrived.

        Models with open weights send the full text.
        """
        part = self._reasoning_parts.get(self._index.find(event))
        if part is None or part[0] != "summary":
            self._add_reasoning(event, ("content", event.get("content_index")))

    def _add_reasoning(self, event: dict[str, Any], part: tuple[str, object]) -> None:
        text = _get_delta(event)
        if not text:
            return
        key = self._index.find(event)
        last_part = self._reasoning_parts.get(key, part)
        self._reasoning_parts[key] = part
        self.reply.add_thinking((*key, THINKING, 0), text if last_part == part else f"{PART_SEPARATOR}{text}")

    # -- tool calls ----------------------------------------------------------------------------------------------

    def _read_arguments_delta(self, event: dict[str, Any]) -> None:
        self.reply.add_tool_call((*self._index.find(event), CALL, 0), piece=_get_delta(event))

    def _read_arguments_done(self, event: dict[str, Any]) -> None:
        key, text = (*self._index.find(event), CALL, 0), as_text(event.get("arguments"))
        if not text:
            return
        if self.reply.get_arguments(key):
            self.reply.replace_arguments(key, text)
        else:
            self.reply.add_tool_call(key, piece=text)

    def close(self) -> None:
        """Adds citations, opaque state and unfinished items at the end of a stream, when they are final."""
        self._items.close()


def _get_delta(event: dict[str, Any]) -> str:
    """Returns the text of an event unchanged, even if the text begins or ends in the middle of a character.

    One event can contain the first half of a character, and the next event the second half. `as_text` would
    replace both halves with U+FFFD.
    """
    delta = event.get("delta")
    return delta if isinstance(delta, str) else ""
