"""Parser for replies from OpenAI Responses."""

from __future__ import annotations

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
    list_keys,
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


class OpenAIResponsesStreamParser(StreamParserBase):
    """Parser for replies from OpenAI Responses, complete or streamed.

    A reply is a `Response` or the events of its stream, as SDK objects, dicts or raw bytes. Blocks have the order
    of the items in `output`. The opaque state of a block stores values that `OpenAIResponsesFormatter` sends back.
    Examples are the `phase` of messages, the `namespace` and `caller` of tool calls, and the id and
    `encrypted_content` of reasoning.

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
        self._reasoning_parts: dict[ItemKey, tuple[object, ...]] = {}  # latest part of each reasoning item

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
            reason = f"expected a `Response` in which `output` is a list, got {list_keys(reply)}"
            raise MessageError("reply", reason, "Pass a reply of the Responses API.")
        self.reply.begin(reply.get("id"), reply.get("model"))
        self._read_response(reply)

    def _read_response(self, response: dict[str, Any]) -> None:
        """Reads a complete response. Some items of the response may have arrived earlier in events."""
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
        """Reads those items of the final `output` that no earlier event has completed.

        Items are read from events and from the final `output`. Some gateways send no items in events, and others
        send an empty `output` at the end.
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
        match event_type := event.get("type"):
            case "response.output_text.delta":
                self._items.add_text(self._find_text(event), _get_delta(event))
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                self.reply.add_tool_call((*self._index.find(event), CALL, 0), piece=_get_delta(event))
            case "response.reasoning_summary_text.delta":
                self._add_reasoning(event, "summary", event.get("summary_index"))
            case "response.reasoning_text.delta":
                self._add_reasoning(event, "content", event.get("content_index"))
            case "response.refusal.delta":
                self._items.add_text(self._find_text(event), _get_delta(event), is_refusal=True)
            case "response.output_text.annotation.added":
                self._items.add_citation(self._find_text(event), event.get("annotation"))
            case "response.output_text.done":
                self._read_text_done(event)
            case "response.function_call_arguments.done":
                self._read_arguments_done(event)
            case "response.output_item.added":
                self._items.begin(self._index.begin(event), as_object(event.get("item")))
            case "response.output_item.done":
                self._finish_item(event)
            case "response.created" | "response.queued" | "response.in_progress":
                self._begin(event)
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                self._read_last_event(event)
            case _:
                error = parse_error(event)
                if event_type == "error" or (error and (not event_type or "error" in event)):
                    self._fail(error, "")

    def _begin(self, event: dict[str, Any]) -> None:
        response = as_object(event.get("response"))
        self.reply.begin(response.get("id"), response.get("model"))

    def _read_last_event(self, event: dict[str, Any]) -> None:
        self.is_complete = True
        self._begin(event)
        response = as_object(event.get("response"))
        status = as_text(response.get("status")) or str(event["type"]).rpartition(".")[2]
        self._read_response({**response, "status": status})

    def _finish_item(self, event: dict[str, Any]) -> None:
        item = event.get("item")
        if isinstance(item, dict) and (key := self._index.end(event)) is not None:
            self._items.finish(key, cast("dict[str, Any]", item))

    # -- text ----------------------------------------------------------------------------------------------------

    def _read_text_done(self, event: dict[str, Any]) -> None:
        key, text = self._find_text(event), as_text(event.get("text"))
        if not self.reply.has_block(key):
            self._items.add_text(key, text)
        elif text:
            self.reply.replace_text(key, text)

    def _find_text(self, event: dict[str, Any]) -> BlockKey:
        """Returns the key of the text block to which an event belongs."""
        number = event.get("content_index")
        return (*self._index.find(event), TEXT, number if type(number) is int else 0)

    # -- reasoning -----------------------------------------------------------------------------------------------

    def _add_reasoning(self, event: dict[str, Any], *part: object) -> None:
        """Reads a piece of a reasoning summary, or a piece of the full reasoning text.

        Models with open weights send the full text. Full text that follows a summary is ignored. `part` identifies
        the text of the piece: the name of its list (`summary` or `content`), and its index in that list.
        """
        text, key = _get_delta(event), self._index.find(event)
        last_part = self._reasoning_parts.get(key, part)
        if not text or (part[0] == "content" and last_part[0] == "summary"):
            return
        self._reasoning_parts[key] = part
        self.reply.add_thinking((*key, THINKING, 0), text if last_part == part else f"{PART_SEPARATOR}{text}")

    # -- tool calls ----------------------------------------------------------------------------------------------

    def _read_arguments_done(self, event: dict[str, Any]) -> None:
        key, text = (*self._index.find(event), CALL, 0), as_text(event.get("arguments"))
        if not text:
            return
        if self.reply.get_arguments(key):
            self.reply.replace_arguments(key, text)
        else:
            self.reply.add_tool_call(key, piece=text)

    def close(self) -> None:
        """Adds citations, opaque state and unfinished items, which are final only at the end of a stream."""
        self._items.close()


def _get_delta(event: dict[str, Any]) -> str:
    """Returns the text of an event, or an empty string if the event has no text.

    The text is returned unchanged, even if the text begins or ends in the middle of a character.
    One event can contain the first half of a character, and the next event the second half. The function `as_text`
    would replace both halves with U+FFFD.
    """
    delta = event.get("delta")
    return delta if isinstance(delta, str) else ""
