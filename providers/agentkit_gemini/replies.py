"""Parser for complete and streamed replies of Gemini (google-genai: GenerateContentResponse)."""

from __future__ import annotations

from typing import Any, Unpack, cast

from pydantic_core import to_json

from agentkit.provider_kit import (
    FinishReason,
    MessageError,
    OpaqueBlock,
    ParserOptions,
    StreamParserBase,
    as_list,
    as_object,
    as_text,
    make_json_safe,
)
from agentkit_gemini._part_reader import (
    OPAQUE_KEYS,
    copy_opaque_part,
    get_extra_fields,
    get_field,
    get_signature,
    has_content,
    normalize_keys,
    normalize_value,
    parse_media,
)
from agentkit_gemini._partial_arguments import PartialArguments
from agentkit_gemini._reply_fields import (
    BLOCK_REASONS,
    FINISH_REASONS,
    REASONS,
    check_reply,
    get_enum_name,
    parse_stream_error,
    parse_usage,
)
from agentkit_gemini.capabilities import LAYOUT

__all__ = ["GeminiStreamParser", "parse_response"]

_NOTE_KEYS = (
    # Source of the keys: google-genai, Candidate.
    *("finish_message", "safety_ratings", "citation_metadata", "grounding_metadata", "url_context_metadata"),
    "continuation_token",
)

_STRUCTURE_KEYS = frozenset({"content", "index", "role"})
"""Keys for the content and the position of a candidate. Other keys contain metadata or the finish reason."""


class GeminiStreamParser(StreamParserBase):
    """Parser for replies of `generate_content` and chunks of `generate_content_stream`.

    The parser also accepts raw bytes of server-sent events. Adjacent texts without a signature become one block,
    even if they are in different chunks. A part with a signature becomes a separate block, even if its text is
    empty. If a reply has several candidates, the parser reads only the first candidate.
    """

    provider = "gemini"
    issuer = "gemini"
    layout = LAYOUT

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._count = 0  # number of blocks that were started
        # True if the open block is thinking, False if it is text, None if no thinking or text block is open.
        self._is_thinking: bool | None = None
        self._key = (0,)
        self._usage: dict[str, Any] = {}
        self._native_reason = ""
        self._citations: dict[str, Any] = {}  # citations of all chunks, by `repr(citation)`
        self._partial: PartialArguments | None = None  # arguments of the unfinished tool call with the key `_key`

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Adds the content of a complete reply to `self.reply`.

        Raises:
            MessageError: The value is not a reply of Gemini, or the reply is an error.
        """
        check_reply(reply)
        self.read_event(reply)

    def read_event(self, event: dict[str, Any]) -> None:
        """Adds the content of one stream chunk to `self.reply`."""
        error = event.get("error")
        if error:
            failure = parse_stream_error(error)
            self.reply.fail(failure.message, failure.code, status=failure.status, retry_after=failure.retry_after)
            return
        reply = self.reply
        if reply.model is None or reply.id is None:
            reply.begin(get_field(event, "response_id"), get_field(event, "model_version"))
        for candidate in map(as_object, as_list(event.get("candidates"))):
            if candidate.get("index"):
                reply.notes["other_candidates"] = True
            else:
                self._read_candidate(candidate)
        usage = event.get("usageMetadata") or event.get("usage_metadata")
        if usage:
            self._update_usage(as_object(usage))
        feedback = event.get("promptFeedback") or event.get("prompt_feedback")
        if feedback:
            self._read_feedback(as_object(feedback))

    def close(self) -> None:
        """Completes the message at the end of a stream.

        Ends an unfinished tool call. Sets the usage, and the finish reason if the reply has one.
        """
        self._end_call()
        self._set_usage()
        self._end()

    def _end(self) -> None:
        """Ends the reply if a finish reason has arrived."""
        if self._native_reason:
            self._end_call()
            reason = REASONS.get(self._native_reason, FinishReason.OTHER)
            self.reply.end(reason, self._native_reason)

    # -- candidates --------------------------------------------------------------------------------------------

    def _read_candidate(self, candidate: dict[str, Any]) -> None:
        for part in map(as_object, _get_parts(candidate)):
            if "text" in part and (len(part) == 1 or (len(part) == 2 and "thought" in part)):
                # A fast path: most parts have only text.
                self._add_text(part["text"], is_thinking=part.get("thought") is True)
            elif self._partial is None or not self._partial.append_text(part):
                self._read_part(normalize_keys(part))
        for key in candidate:  # this loop is faster than a comparison of sets
            if key not in _STRUCTURE_KEYS:
                self._read_notes(candidate)
                break

    def _read_notes(self, candidate: dict[str, Any]) -> None:
        """Stores the metadata and the finish reason of a candidate.

        A chunk with content does not end the reply, because some servers send a finish reason in every chunk.
        """
        for key in _NOTE_KEYS:
            if value := get_field(candidate, key):
                value = normalize_value({key: value})[key]
                self.reply.notes[key] = self._merge_citations(value) if key == "citation_metadata" else value
        native = get_enum_name(get_field(candidate, "finish_reason"), FINISH_REASONS)
        if native and native != FINISH_REASONS[0]:
            self._native_reason = native
            if not any(any(as_object(part).values()) for part in _get_parts(candidate)):
                self._end()

    def _merge_citations(self, metadata: object) -> dict[str, Any]:
        """Returns the metadata with the citations of all chunks. Repeated citations are removed."""
        fields = as_object(metadata)
        self._citations |= {repr(citation): citation for citation in as_list(fields.get("citations"))}
        return {**fields, "citations": [*self._citations.values()]}

    # -- parts -------------------------------------------------------------------------------------------------

    def _add_text(self, text: object, *, is_thinking: bool) -> None:
        """Adds text without a signature. Begins a new block if the reply changes from thinking to text or back."""
        if type(text) is not str or not text:
            return
        if self._is_thinking is not is_thinking:
            self._begin_block()
            self._is_thinking = is_thinking
        add = self.reply.add_thinking if is_thinking else self.reply.add_text
        add(self._key, text)

    def _begin_block(self) -> tuple[int]:
        """Closes the open block, and returns the key for a new block."""
        self._end_call()
        if self._count:
            self.reply.close(self._key)
        self._is_thinking = None
        self._key = (self._count,)
        self._count += 1
        return self._key

    def _read_part(self, part: dict[str, Any]) -> None:
        state: dict[str, Any] = {"thought_signature": None, "fields": None}
        if len(part) > 1 or "function_call" not in part:  # a fast path: most pieces of a call have no other key
            state = {"thought_signature": get_signature(part), "fields": get_extra_fields(part) or None}
        has_state = any(state.values())
        if "function_call" in part:
            self._read_call(normalize_keys(as_object(part["function_call"])), state)
        elif "inline_data" in part or "file_data" in part:
            self._read_media(part, state)
        elif any(key in part for key in OPAQUE_KEYS) or (has_state and not has_content(part)):
            self.reply.add_block(self._begin_block(), OpaqueBlock("gemini", copy_opaque_part(part)))
        elif "text" in part or has_state:
            self._read_text(part, state if has_state else None)
        elif part.keys() - {"thought", "thought_signature"}:
            self.reply.notes.setdefault("unread_parts", []).append(normalize_value(part))

    def _read_text(self, part: dict[str, Any], state: dict[str, Any] | None) -> None:
        is_thinking = part.get("thought") is True
        if state is None:
            self._add_text(part["text"], is_thinking=is_thinking)
            return
        key = self._begin_block()
        add = self.reply.add_thinking if is_thinking else self.reply.add_text
        add(key, as_text(part.get("text")))
        self.reply.add_state(key, **state)
        self.reply.close(key)

    def _end_call(self) -> None:
        """Ends an unfinished tool call, if there is one.

        The received arguments become JSON text without the closing brace, because valid JSON would look like
        complete arguments.
        """
        if self._partial is not None:
            text = to_json(make_json_safe(self._partial.arguments)).decode().removesuffix("}")
            self.reply.add_tool_call(self._key, piece=text)
            self._partial = None

    def _read_media(self, part: dict[str, Any], state: dict[str, Any]) -> None:
        if part.get("thought") is True:  # the model generated the image while thinking
            state["fields"] = {**(state["fields"] or {}), "thought": True}
        try:
            block = parse_media(part)
        except MessageError:
            self.reply.notes.setdefault("unread_parts", []).append(normalize_value(part))
            return
        key = self._begin_block()
        self.reply.add_block(key, block)
        self.reply.add_state(key, **state)

    def _read_call(self, call: dict[str, Any], state: dict[str, Any]) -> None:
        if not call and self._partial is None:
            return
        is_unfinished = bool(call.get("will_continue"))
        if self._partial is None or call.get("name"):
            key = self._begin_block()
            self.reply.add_tool_call(key, call.get("id"), call.get("name"))
            self._partial = PartialArguments()
        if state["thought_signature"] or state["fields"]:
            self.reply.add_state(self._key, **state)
        for piece in as_list(call.get("partial_args")):
            self._partial.add(as_object(piece))
        if isinstance(args := call.get("args"), dict):
            self._partial.update(cast("dict[str, Any]", args))
        if not is_unfinished:
            self.reply.replace_arguments(self._key, self._partial.arguments)
            self._partial = None
            self.reply.close(self._key)

    # -- prompt feedback and usage -----------------------------------------------------------------------------

    def _read_feedback(self, feedback: dict[str, Any]) -> None:
        """Stores the feedback on the prompt. Ends the reply if the API blocked the prompt."""
        fields = normalize_value(feedback)
        self.reply.notes["prompt_feedback"] = fields
        reason = get_enum_name(fields.get("block_reason"), BLOCK_REASONS)
        if reason and reason not in ("BLOCK_REASON_UNSPECIFIED", BLOCK_REASONS[0]):
            self.reply.end(FinishReason.CONTENT_FILTER, reason)

    def _update_usage(self, usage: dict[str, Any]) -> None:
        """Merges the token usage of a chunk with the earlier usage, because a later chunk may omit fields.

        Every chunk has usage, but `self.reply` is updated only with the first chunk and at the end of the reply.
        """
        has_null = None in usage.values()
        self._usage |= {key: item for key, item in usage.items() if item is not None} if has_null else usage
        if self.reply.usage is None or self._native_reason:
            self._set_usage()

    def _set_usage(self) -> None:
        if self._usage:
            self.reply.set_usage(parse_usage(self._usage))


def _get_parts(candidate: dict[str, Any]) -> list[Any]:
    return as_list(as_object(candidate.get("content")).get("parts"))


parse_response = GeminiStreamParser.parse_response
