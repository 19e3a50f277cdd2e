"""Gemini's replies, whole and streamed (SDK: GenerateContentResponse)."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack, cast

from pydantic_core import to_json

from agentkit.provider_kit import (
    FinishReason,
    MessageError,
    Msg,
    OpaqueBlock,
    ParserOptions,
    StreamParserBase,
    as_list,
    as_object,
    as_text,
    make_json_safe,
)
from agentkit_gemini._partial_arguments import PartialArguments
from agentkit_gemini._parts import (
    OPAQUE,
    carried,
    holds_content,
    media_block,
    opaque_data,
    pick,
    settled,
    shallow,
    signature_of,
)
from agentkit_gemini._reply_fields import (
    BLOCK_REASONS,
    FINISH_REASONS,
    check_reply,
    enum_name,
    error_of,
    reason_of,
    usage_of,
)

__all__ = ["GeminiStreamParser", "parse_response"]

_NOTED = (
    # SDK: Candidate
    "finish_message",
    "safety_ratings",
    "citation_metadata",
    "grounding_metadata",
    "url_context_metadata",
    "continuation_token",
)

_QUIET = frozenset({"content", "index", "role"})  # keys of a candidate that say nothing of it


class GeminiStreamParser(StreamParserBase):
    """Reads the replies of `generate_content`, whole, and the chunks of `generate_content_stream`.

    Text without a signature runs on over the chunks, as far as no other part stands between; a part with a
    signature is a block of its own, an empty text too. Of several candidates the first is read. Raw bytes are
    server-sent events.
    """

    provider: ClassVar[str] = "gemini"
    issuer: ClassVar[str] = "gemini"

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._count = 0  # the blocks so far
        self._run: bool | None = None  # whether the run of text that goes on is thinking; None: there is none
        self._key = (0,)
        self._usage: dict[str, Any] = {}
        self._native = ""  # why it ended, as far as it is known
        self._cited: list[Any] = []
        self._known: set[str] = set()  # of the citations
        self._partial: PartialArguments | None = None  # of the call that goes on, under `_key`

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Read a GenerateContentResponse."""
        check_reply(reply)
        self.read_event(reply)

    def read_event(self, event: dict[str, Any]) -> None:
        """Read one chunk: a GenerateContentResponse with new parts."""
        error = event.get("error")
        if error:
            told = error_of(error)
            self.reply.fail(told.message, told.code, status=told.status, retry_after=told.retry_after)
            return
        reply = self.reply
        if reply.model is None or reply.id is None:
            reply.begin(pick(event, "response_id"), pick(event, "model_version"))
        candidates = event.get("candidates")
        if isinstance(candidates, list) and candidates:
            self._read_candidates(cast("list[Any]", candidates))
        usage = event.get("usageMetadata") or event.get("usage_metadata")
        if usage:
            self._keep_usage(as_object(usage))
        if ("promptFeedback" in event or "prompt_feedback" in event) and (
            feedback := as_object(pick(event, "prompt_feedback"))
        ):
            self._read_feedback(feedback)

    def close(self) -> None:
        """What broke off in a call keeps the arguments that came; the last reason is the reply's."""
        self._cut_call()
        self._tell_usage()
        self._end()

    def _end(self) -> None:
        """The reply is over. Some servers give a reason with every chunk: with content, it may not be the last."""
        if self._native:
            self._cut_call()
            self.reply.end(reason_of(self._native), self._native)

    # -- candidates --------------------------------------------------------------------------------------------

    def _read_candidates(self, candidates: list[Any]) -> None:
        for candidate in candidates:
            if isinstance(candidate, dict):
                found = cast("dict[str, Any]", candidate)
                if found.get("index"):
                    self.reply.notes["other_candidates"] = True
                else:
                    self._read_candidate(found)

    def _read_candidate(self, candidate: dict[str, Any]) -> None:
        for part in _parts_of(candidate):
            if isinstance(part, dict):
                found = cast("dict[str, Any]", part)
                if "text" in found and (len(found) == 1 or (len(found) == 2 and "thought" in found)):
                    self._say(found["text"], thinking=found.get("thought") is True)  # what most parts are
                elif self._partial is None or not self._partial.grow(found):
                    self._read_part(shallow(found))
        for key in candidate:
            if key not in _QUIET:
                self._read_rest(candidate)
                break

    def _read_rest(self, candidate: dict[str, Any]) -> None:
        for key in _NOTED:
            found = pick(candidate, key)
            if found:
                self._note(key, settled({key: found})[key])
        native = enum_name(pick(candidate, "finish_reason"), FINISH_REASONS)
        if native and native != FINISH_REASONS[0]:
            self._native = native
            if not any(any(as_object(part).values()) for part in _parts_of(candidate)):
                self._end()

    def _note(self, key: str, found: Any) -> None:
        """What is said of the candidate: the citations of every chunk, and the last of all else."""
        if key == "citation_metadata":
            self._cite(as_object(found))
        else:
            self.reply.notes[key] = found

    def _cite(self, found: dict[str, Any]) -> None:
        """New citations; some servers repeat the old ones."""
        for one in as_list(found.get("citations")):
            said = repr(one)
            if said not in self._known:
                self._known.add(said)
                self._cited.append(one)
        self.reply.notes["citation_metadata"] = {**found, "citations": self._cited}

    # -- parts -------------------------------------------------------------------------------------------------

    def _say(self, text: object, *, thinking: bool) -> None:
        """Text without a signature: it goes on with the run before it."""
        if type(text) is not str or not text:
            return
        if self._run is not thinking:
            self._next()
            self._run = thinking
        if thinking:
            self.reply.add_thinking(self._key, text)
        else:
            self.reply.add_text(self._key, text)

    def _next(self) -> tuple[int]:
        """The key of the next block; the one before is complete."""
        self._cut_call()
        if self._count:
            self.reply.close(self._key)
        self._run = None
        self._key = (self._count,)
        self._count += 1
        return self._key

    def _read_part(self, part: dict[str, Any]) -> None:
        state: dict[str, Any] = {"thought_signature": None, "fields": None}
        if len(part) > 1 or "function_call" not in part:  # a piece of a call has nothing else, as a rule
            state = {"thought_signature": signature_of(part), "fields": carried(part) or None}
        signed = any(state.values())
        if "function_call" in part:
            self._read_call(shallow(as_object(part["function_call"])), state)
        elif "inline_data" in part or "file_data" in part:
            self._read_media(part, state)
        elif any(key in part for key in OPAQUE) or (signed and not holds_content(part)):
            self.reply.add_block(self._next(), OpaqueBlock("gemini", opaque_data(part)))
        elif "text" in part or signed:
            self._read_text(part, state if signed else None)
        elif part.keys() - {"thought", "thought_signature"}:
            self.reply.notes.setdefault("unread_parts", []).append(settled(part))

    def _read_text(self, part: dict[str, Any], state: dict[str, Any] | None) -> None:
        thinking = part.get("thought") is True
        if state is None:
            self._say(part["text"], thinking=thinking)
            return
        key = self._next()
        say = self.reply.add_thinking if thinking else self.reply.add_text
        say(key, as_text(part.get("text")))
        self.reply.add_state(key, **state)
        self.reply.close(key)

    def _cut_call(self) -> None:
        """The arguments of a call that goes on no more, as text without its end."""
        if self._partial is not None:
            text = to_json(make_json_safe(self._partial.found)).decode().removesuffix("}")
            self.reply.add_tool_call(self._key, piece=text)
            self._partial = None

    def _read_media(self, part: dict[str, Any], state: dict[str, Any]) -> None:
        if part.get("thought") is True:  # a draft of the model's
            state["fields"] = {**(state["fields"] or {}), "thought": True}
        try:
            block = media_block(part)
        except MessageError:
            self.reply.notes.setdefault("unread_parts", []).append(settled(part))
            return
        key = self._next()
        self.reply.add_block(key, block)
        self.reply.add_state(key, **state)

    def _read_call(self, call: dict[str, Any], state: dict[str, Any]) -> None:
        if not call and self._partial is None:
            return
        goes_on = bool(call.get("will_continue"))
        if self._partial is None or call.get("name"):
            key = self._next()
            self.reply.add_tool_call(key, call.get("id"), call.get("name"))
            self._partial = PartialArguments()
        if state["thought_signature"] or state["fields"]:
            self.reply.add_state(self._key, **state)
        for piece in as_list(call.get("partial_args")):
            self._partial.add(as_object(piece))
        if isinstance(args := call.get("args"), dict):
            self._partial.update(cast("dict[str, Any]", args))
        if not goes_on:
            self.reply.replace_arguments(self._key, self._partial.found)
            self._partial = None
            self.reply.close(self._key)

    # -- the reply as a whole ----------------------------------------------------------------------------------

    def _read_feedback(self, feedback: dict[str, Any]) -> None:
        """A prompt that was blocked has no candidates at all."""
        found = settled(feedback)
        self.reply.notes["prompt_feedback"] = found
        reason = enum_name(found.get("block_reason"), BLOCK_REASONS)
        if reason and reason not in ("BLOCK_REASON_UNSPECIFIED", BLOCK_REASONS[0]):
            self.reply.end(FinishReason.CONTENT_FILTER, reason)

    def _keep_usage(self, found: dict[str, Any]) -> None:
        """The figures so far: a later chunk may leave out one that an earlier one had.

        Every chunk has them; they are told with the first one and when the reply is over.
        """
        told = {key: item for key, item in found.items() if item is not None} if None in found.values() else found
        self._usage.update(told)
        if self.reply.usage is None or self._native:
            self._tell_usage()

    def _tell_usage(self) -> None:
        if self._usage:
            self.reply.set_usage(usage_of(self._usage))


def _parts_of(candidate: dict[str, Any]) -> list[Any]:
    return as_list(as_object(candidate.get("content")).get("parts"))


def parse_response(reply: object, **options: Unpack[ParserOptions]) -> Msg:
    """A GenerateContentResponse, as the SDK's object, its dict or JSON text, as a message of ours.

    Raises MessageError for what is none, the provider's error included.
    """
    return GeminiStreamParser.parse_response(reply, **options)
