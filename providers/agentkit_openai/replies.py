"""Replies of OpenAI Chat Completions, and of all servers that speak that wire, whole and streamed."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack, cast

from agentkit.provider_kit import (
    FinishReason,
    ImageBlock,
    MessageError,
    ParserOptions,
    StreamParserBase,
    ToolCallIndex,
    WireLayout,
    as_list,
    as_object,
    as_text,
    make_json_safe,
    reported_error,
    source_from_url,
)
from agentkit_openai._audio import AudioBuffer
from agentkit_openai._custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai._reasoning import DETAILS, ReasoningDetails, details_text, part_text
from agentkit_openai._refusals import REFUSAL_FIELD
from agentkit_openai._reply_fields import error_of, reason_of, usage_of
from agentkit_openai.capabilities import LAYOUT
from agentkit_openai.compatible import OPENAI, OpenAICompatible

__all__ = ["OpenAIChatStreamParser"]

_THINKING, _REFUSAL, _SOUND, _LEGACY = (0,), (2,), (3,), (6,)
_CONTENT, _CALLS = 1, 5
"""The order of the blocks, whatever order their pieces came in: a whole reply has no other. Texts and pictures of
the content stand in their own.
"""

_CUT = (FinishReason.LENGTH, FinishReason.CONTENT_FILTER, FinishReason.ERROR, FinishReason.INTERRUPTED)


class OpenAIChatStreamParser(StreamParserBase):
    """Reads `chat.completions`: a `ChatCompletion`, or its chunks, as SDK objects, dicts or raw bytes.

    Of several choices number 0 is read. Text, reasoning, refusal and sound are one block each; pieces are put
    together as the most careless servers need it (`ToolCallIndex`). Annotations are the text's `citations`.
    """

    vendor: ClassVar[OpenAICompatible] = OPENAI
    """Facts about the vendor. A subclass that sets them has the row's provider name and issuer."""
    provider: ClassVar[str] = OPENAI.name
    issuer: ClassVar[str] = OPENAI.issuer
    layout: ClassVar[WireLayout] = LAYOUT
    raw_arguments: ClassVar[bool] = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "vendor" in vars(cls):
            cls.provider, cls.issuer = cls.vendor.name, cls.vendor.issuer

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._choice: object = None
        self._call_index = ToolCallIndex(self.reply, _CALLS)
        self._custom: set[tuple[int, ...]] = set()
        self._sound = AudioBuffer()
        self._details = ReasoningDetails()
        self._is_sound_late = False  # whether a piece came after its block was complete
        self._text: tuple[int, ...] = (_CONTENT, 0)  # the text that is being said
        self._others: list[dict[str, Any]] = []  # pieces of other choices, until the first one comes
        self._citations: list[Any] = []
        self._last: dict[str, Any] = {}  # the choice that said why the reply ended

    # -- events --------------------------------------------------------------------------------------------------

    def read_event(self, event: dict[str, Any]) -> None:
        """A chunk (SDK: ChatCompletionChunk)."""
        if self.reply.model is None or self.reply.id is None:
            self.reply.begin(event.get("id"), event.get("model"), event.get("created"))
        choices = event.get("choices")
        if (not choices or "error" in event) and (error := error_of(event)):
            self.reply.fail(*error)  # before an end that the choices may tell of
        if choices and isinstance(choices, list):
            for choice in cast("list[Any]", choices):
                if isinstance(choice, dict):
                    self._read_choice(cast("dict[str, Any]", choice))
        if event.get("usage"):
            self._use(event["usage"])

    def _read_choice(self, choice: dict[str, Any]) -> None:
        index = choice.get("index")
        if index != self._choice and not self._is_first(index, choice):
            return
        delta = as_object(choice.get("delta"))
        if delta:
            self._read_message(delta)
        native = choice.get("finish_reason")
        if native and native != "null":  # DashScope writes the word while it streams
            self._last = choice
            if not any(said for name, said in delta.items() if name != "role"):
                self._take_last()

    def _is_first(self, index: object, choice: dict[str, Any]) -> bool:
        """Whether this is the choice that is read: number 0, or one without a number."""
        if self._choice is None and not index:
            self._choice, self._others = 0, []
        elif self._choice is None:
            self._others.append(choice)
        return self._choice is not None and not index

    def _take_last(self) -> None:
        """Some servers give a reason with every chunk: with content, it may not be the last."""
        last, self._last = self._last, {}
        if last:
            self._end(last, last.get("finish_reason"))

    def _take_another(self) -> None:
        """Read the choice that came first where there is none of the number 0."""
        others, self._others = self._others, []
        if others and self._choice is None:
            self._choice = others[0].get("index")
            for choice in others:
                if choice.get("index") == self._choice:
                    self._read_choice(choice)

    def read_reply(self, reply: dict[str, Any]) -> None:
        """A whole reply (SDK: ChatCompletion)."""
        choices = reply.get("choices")
        if not isinstance(choices, list):
            error = error_of(reply)
            if error:
                raise reported_error(error[0])
            raise MessageError(
                "reply", "expected an object with the key `choices`", "Pass a reply of Chat Completions."
            )
        self.reply.begin(reply.get("id"), reply.get("model"), reply.get("created"))
        read = [one for one in map(as_object, cast("list[Any]", choices)) if one]
        choice = next((one for one in read if not one.get("index")), read[0] if read else as_object(None))
        self._read_message(as_object(choice.get("message")), whole=True)
        native = choice.get("finish_reason")
        if error := error_of(reply):
            self.reply.fail(*error)
        self._end(choice, "" if native == "null" else native)
        self._use(reply.get("usage"))

    # -- a message, or a piece of one ----------------------------------------------------------------------------

    def _read_message(self, said: dict[str, Any], whole: bool = False) -> None:
        for field in self.vendor.reasoning_fields:
            thought = said.get(field)
            if thought and isinstance(thought, str):
                self.reply.add_thinking(_THINKING, thought)
                break
        for name, found in said.items():
            if not found:
                continue
            if name == "content":
                self._read_content(found)
            elif name == "tool_calls":
                self._read_calls(as_list(found), whole)
            elif name == "refusal":
                self._refuse(found if isinstance(found, str) else "")
            elif name == "annotations":
                self._citations.extend(make_json_safe(as_list(found)))
            elif name == "audio":
                self._read_sound(as_object(found))
            elif name == DETAILS and self.vendor.reasoning_details:
                self._details.add(found)
            elif name == "function_call":
                legacy = as_object(found)
                if any(legacy.values()):
                    self._read_call(_LEGACY, "", legacy.get("name"), legacy.get("arguments"))

    def _read_content(self, found: object) -> None:
        if isinstance(found, str):
            self.reply.add_text(self._text, found)
            return
        for part in as_list(found):  # some servers send parts here, as requests have them
            if isinstance(part, str):
                self._read_content(part)
            elif isinstance(part, dict):
                self._read_part(cast("dict[str, Any]", part))

    def _read_part(self, part: dict[str, Any]) -> None:
        if self.vendor.reasoning_parts and part.get("type") == "thinking":
            self.reply.add_thinking(_THINKING, part_text(part))
            self.reply.add_state(_THINKING, signature=as_text(part.get("signature")) or None)
            return
        image = part.get("image_url")
        source = source_from_url(as_object(image).get("url") or image)
        if source:
            self.reply.add_block((_CONTENT, self._text[1] + 1), ImageBlock(source))
            self._text = (_CONTENT, self._text[1] + 2)
        elif refusal := as_text(part.get("refusal")):
            self._refuse(refusal)
        elif text := as_text(part.get("text")):
            self.reply.add_text(self._text, text)

    def _refuse(self, text: str) -> None:
        if text:
            begins = not self.reply.has_block(_REFUSAL)
            self.reply.add_text(_REFUSAL, text)
            if begins:
                self.reply.add_metadata(_REFUSAL, refusal=True)
                self.reply.add_state(_REFUSAL, fields=REFUSAL_FIELD)

    def _read_sound(self, found: dict[str, Any]) -> None:
        self._sound.take(found)
        self._is_sound_late = self.reply.has_block(_SOUND)

    # -- calls ---------------------------------------------------------------------------------------------------

    def _read_calls(self, entries: list[Any], whole: bool) -> None:
        taken: set[tuple[int, ...]] = set()
        for entry in entries:
            if not isinstance(entry, dict):
                continue
            held = cast("dict[str, Any]", entry)
            function: Any = held.get("function")
            if not whole and type(function) is dict and self._goes_on(held, cast("dict[str, Any]", function)):
                continue
            custom = not function and held.get("custom")
            self._read_entry(held, as_object(cast("object", custom or function)), bool(custom), taken, whole)

    def _goes_on(self, entry: dict[str, Any], function: dict[str, Any]) -> bool:
        """Read what most entries are: more argument text of a call that has begun, and nothing else."""
        if entry.get("id") or function.get("name"):
            return False
        key, piece = self._call_index.get_latest(entry.get("index")), function.get("arguments")
        if key is None or type(piece) is not str:
            return False
        self.reply.add_tool_call(key, piece=piece)
        return True

    def _read_entry(
        self, entry: dict[str, Any], said: dict[str, Any], custom: bool, taken: set[tuple[int, ...]], whole: bool
    ) -> None:
        id, name = entry.get("id"), said.get("name")
        arguments = said.get("input" if custom else "arguments")
        if not (id or name or arguments):
            return
        id, name = as_text(id) if id else "", as_text(name) if name else ""
        key = self._call_index.begin() if whole else self._call_index.find(entry.get("index"), id, name, taken)
        taken.add(key)
        if custom:
            self._custom.add(key)
        self._read_call(key, id, name, arguments)

    def _read_call(self, key: tuple[int, ...], id: object, name: object, arguments: object) -> None:
        if isinstance(arguments, str):
            self.reply.add_tool_call(key, id, name, arguments)
        elif arguments and isinstance(arguments, dict):  # some servers send the object itself
            self.reply.add_tool_call(key, id, name)
            self.reply.replace_arguments(key, cast("dict[str, Any]", arguments))
        else:
            self.reply.add_tool_call(key, id, name)

    # -- the end -------------------------------------------------------------------------------------------------

    def _end(self, choice: dict[str, Any], native: object) -> None:
        if error := error_of(choice):  # gateways put the error of the server behind them here
            self.reply.fail(*error)
        if self.reply.finish_reason is not None:
            return
        word = as_text(native)
        complete = self._sound.ends and not word  # what a server may say of a sound in the place of a reason
        reason = FinishReason.STOP if complete else reason_of(word)
        self._settle()
        if reason is FinishReason.TOOL_USE and not self.reply.has_calls:
            reason = FinishReason.OTHER
        if reason in _CUT:
            self._mark_cut()
        if reason in (FinishReason.STOP, FinishReason.OTHER) and self.reply.has_block(_REFUSAL):
            reason = FinishReason.REFUSAL
        self.reply.end(reason, word or None)

    def read_done(self) -> None:
        """A server may leave the reason out: the reply is complete all the same, as a whole one would be."""
        self._take_another()
        self._take_last()
        if self.reply.finish_reason is None and not self.reply.error and self._choice is not None:
            self._end({}, None)

    def close(self) -> None:
        """What comes with no event of its own; a sound that is complete ends a reply that has no other end."""
        self._take_another()
        self._take_last()
        if self._is_sound_late:
            self.reply.add_metadata(_SOUND, **self._sound.metadata)
            self.reply.add_state(_SOUND, **self._sound.state)
        ended = self.reply.finish_reason is not None
        if self._sound.ends and not ended and not self.reply.error:
            self._end({}, None)
        elif ended:
            self._cite()
        else:
            self._cite()
            self._speak()

    def _settle(self) -> None:
        """What is known of blocks only when all of them came."""
        for key in (*self._call_index, *([_LEGACY] if self.reply.has_block(_LEGACY) else [])):
            text = self.reply.get_arguments(key)
            if key in self._custom:
                self.reply.replace_arguments(key, custom_input(text))
                self.reply.add_state(key, fields=CUSTOM_CALL)
            elif text.strip() in ("null", '""'):
                self.reply.replace_arguments(key, {})
        self._cite()
        self._speak()
        self._keep_details()

    def _cite(self) -> None:
        if self._citations and self.reply.has_block(self._text):
            self.reply.add_metadata(self._text, citations=self._citations)
        elif self._citations:
            self.reply.notes["citations"] = [*self.reply.notes.get("citations", ()), *self._citations]
        self._citations = []

    def _speak(self) -> None:
        """The sound as a block; a transcript whose sound never came as text."""
        if self.reply.has_block(_SOUND):
            return
        asked = as_object((self.request or {}).get("audio"))
        block = self._sound.block(asked.get("format"))
        if block:
            self.reply.add_block(_SOUND, block)
            self.reply.add_metadata(_SOUND, **self._sound.metadata)
            self.reply.add_state(_SOUND, **self._sound.state)
        elif self._sound.transcript:
            self.reply.add_text(_SOUND, self._sound.transcript)

    def _keep_details(self) -> None:
        """Keeps opaque details of reasoning as state of the thinking block, whose text they may be alone."""
        if self._details.items:
            if not self.reply.has_block(_THINKING):
                self.reply.add_thinking(_THINKING, details_text(self._details.items))
            self.reply.add_state(_THINKING, fields={DETAILS: self._details.items})

    def _mark_cut(self) -> None:
        """The last call of a reply that was too long says so, where its text does not show it."""
        last = self._call_index.last
        if last and (last in self._custom or not self.reply.get_arguments(last).strip()):
            self.reply.add_metadata(last, incomplete=True)

    def _use(self, found: object) -> None:
        usage = usage_of(found)
        if usage:
            self.reply.set_usage(usage)
