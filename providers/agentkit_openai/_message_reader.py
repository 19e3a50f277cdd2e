"""Reader that adds the content of Chat Completions messages and stream deltas to a `ReplyBuilder`."""

from __future__ import annotations

from typing import Any, cast

from agentkit.provider_kit import (
    BlockKey,
    ImageBlock,
    ReplyBuilder,
    ToolCallIndex,
    as_list,
    as_object,
    as_text,
    make_json_safe,
    source_from_url,
)
from agentkit_openai._audio import AudioBuffer
from agentkit_openai._custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai._reasoning import DETAILS, ReasoningDetails, details_text, part_text
from agentkit_openai._refusals import REFUSAL_FIELD
from agentkit_openai.compatible import OpenAICompatible

__all__ = ["MessageReader"]

# The key of a block determines its position in the message, because pieces of different blocks may arrive in any
# order. Texts and images in the content have the keys (1, 0), (1, 1) and so on. The keys of tool calls begin
# with 5.
_THINKING: BlockKey = (0,)
_CONTENT = 1
_REFUSAL: BlockKey = (2,)
_AUDIO: BlockKey = (3,)
_CALLS = 5
_LEGACY_CALL: BlockKey = (6,)


class MessageReader:
    """Reader for the message of one reply. The message arrives complete or in deltas.

    Content, reasoning, refusal and audio each become one block. An image in the content divides the text into two
    blocks. Annotations become `citations` in the metadata of the text. `settle` adds the values that are final
    only at the end of the reply.
    """

    def __init__(self, reply: ReplyBuilder, vendor: OpenAICompatible, audio_format: object) -> None:
        self.reply = reply
        self._vendor = vendor
        self._audio_format = audio_format
        self._calls = ToolCallIndex(reply, _CALLS)
        self._custom_calls: set[BlockKey] = set()
        self._audio = AudioBuffer()
        self._has_late_audio = False  # True if a piece of audio arrived after the audio block was created
        self._details = ReasoningDetails()
        self._text: BlockKey = (_CONTENT, 0)  # key of the block to which new text is added
        self._citations: list[Any] = []

    @property
    def has_refusal(self) -> bool:
        """True if the reply contains a refusal."""
        return self.reply.has_block(_REFUSAL)

    @property
    def has_complete_audio(self) -> bool:
        """True if the last piece of the audio has arrived. Some servers send no finish reason after this piece."""
        return self._audio.is_complete

    def read(self, message: dict[str, Any], is_complete: bool = False) -> None:
        """Reads a complete message or a stream delta (openai-python: ChatCompletionMessage, ChoiceDelta).

        If `is_complete` is True, each entry of `tool_calls` is a separate tool call.
        """
        for field in self._vendor.reasoning_fields:
            thinking = message.get(field)
            if thinking and isinstance(thinking, str):
                self.reply.add_thinking(_THINKING, thinking)
                break
        for name, value in message.items():
            if not value:
                continue
            if name == "content":
                self._read_content(value)
            elif name == "tool_calls":
                self._read_calls(as_list(value), is_complete)
            elif name == "refusal":
                self._add_refusal(value if isinstance(value, str) else "")
            elif name == "annotations":
                self._citations.extend(make_json_safe(as_list(value)))
            elif name == "audio":
                self._audio.add(as_object(value))
                self._has_late_audio = self.reply.has_block(_AUDIO)
            elif name == DETAILS and self._vendor.reasoning_details:
                self._details.add(value)
            elif name == "function_call":
                function = as_object(value)
                if any(function.values()):
                    self._add_call(_LEGACY_CALL, "", function.get("name"), function.get("arguments"))

    # -- content -------------------------------------------------------------------------------------------------

    def _read_content(self, content: object) -> None:
        if isinstance(content, str):
            self.reply.add_text(self._text, content)
            return
        for part in as_list(content):  # some servers send a list of content parts instead of text
            if isinstance(part, str):
                self._read_content(part)
            elif isinstance(part, dict):
                self._read_part(cast("dict[str, Any]", part))

    def _read_part(self, part: dict[str, Any]) -> None:
        if self._vendor.reasoning_parts and part.get("type") == "thinking":
            self.reply.add_thinking(_THINKING, part_text(part))
            self.reply.add_state(_THINKING, signature=as_text(part.get("signature")) or None)
            return
        image = part.get("image_url")
        source = source_from_url(as_object(image).get("url") or image)
        if source:
            self.reply.add_block((_CONTENT, self._text[1] + 1), ImageBlock(source))
            self._text = (_CONTENT, self._text[1] + 2)
        elif refusal := as_text(part.get("refusal")):
            self._add_refusal(refusal)
        elif text := as_text(part.get("text")):
            self.reply.add_text(self._text, text)

    def _add_refusal(self, text: str) -> None:
        if text:
            is_new = not self.reply.has_block(_REFUSAL)
            self.reply.add_text(_REFUSAL, text)
            if is_new:
                self.reply.add_metadata(_REFUSAL, refusal=True)
                self.reply.add_state(_REFUSAL, fields=REFUSAL_FIELD)

    # -- tool calls ----------------------------------------------------------------------------------------------

    def _read_calls(self, entries: list[Any], is_complete: bool) -> None:
        used: set[BlockKey] = set()
        for entry in map(as_object, entries):
            if is_complete or not self._continue_call(entry):
                self._read_entry(entry, used, is_complete)

    def _continue_call(self, entry: dict[str, Any]) -> bool:
        """Reads an entry of `tool_calls` that contains only a piece of the arguments of an earlier tool call.

        Returns False, without reading the entry, if the entry contains anything else. This method is a fast
        path, because most entries of a stream contain only a piece of arguments.
        """
        function: Any = entry.get("function")
        if function.__class__ is not dict or entry.get("id") or function.get("name"):
            return False
        key, piece = self._calls.get_latest(entry.get("index")), function.get("arguments")
        if key is None or type(piece) is not str:
            return False
        self.reply.add_tool_call(key, piece=piece)
        return True

    def _read_entry(self, entry: dict[str, Any], used: set[BlockKey], is_complete: bool) -> None:
        custom = not entry.get("function") and entry.get("custom")
        function = as_object(cast("object", custom or entry.get("function")))
        id, name = entry.get("id"), function.get("name")
        arguments = function.get("input" if custom else "arguments")
        if not (id or name or arguments):
            return
        id, name = as_text(id) if id else "", as_text(name) if name else ""
        key = self._calls.begin() if is_complete else self._calls.find(entry.get("index"), id, name, used)
        used.add(key)
        if custom:
            self._custom_calls.add(key)
        self._add_call(key, id, name, arguments)

    def _add_call(self, key: BlockKey, id: object, name: object, arguments: object) -> None:
        self.reply.add_tool_call(key, id, name, arguments if isinstance(arguments, str) else "")
        if arguments and isinstance(arguments, dict):  # some servers send an object instead of JSON text
            self.reply.replace_arguments(key, cast("dict[str, Any]", arguments))

    def mark_truncated(self) -> None:
        """Marks the last tool call of a truncated reply as incomplete.

        A function call with arguments gets no mark, because its invalid JSON already shows that the arguments are
        cut off.
        """
        key = self._calls.last
        if key and (key in self._custom_calls or not self.reply.get_arguments(key).strip()):
            self.reply.add_metadata(key, incomplete=True)

    # -- the end -------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Adds the values that are final only at the end of a reply.

        These values are the inputs of custom tools, citations, audio and reasoning details.
        """
        for key in (*self._calls, *([_LEGACY_CALL] if self.reply.has_block(_LEGACY_CALL) else [])):
            text = self.reply.get_arguments(key)
            if key in self._custom_calls:
                self.reply.replace_arguments(key, custom_input(text))
                self.reply.add_state(key, fields=CUSTOM_CALL)
            elif text.strip() in ("null", '""'):
                self.reply.replace_arguments(key, {})
        self.add_citations()
        self.add_audio()
        self._add_details()

    def add_citations(self) -> None:
        """Adds citations to the metadata of the text, or to the metadata of the reply if there is no text."""
        if self._citations and self.reply.has_block(self._text):
            self.reply.add_metadata(self._text, citations=self._citations)
        elif self._citations:
            self.reply.notes["citations"] = [*self.reply.notes.get("citations", ()), *self._citations]
        self._citations = []

    def add_audio(self) -> None:
        """Adds the audio block. If only a transcript arrived, the transcript becomes a text block."""
        if self.reply.has_block(_AUDIO):
            return
        block = self._audio.create_block(self._audio_format)
        if block:
            self.reply.add_block(_AUDIO, block)
            self._describe_audio()
        elif self._audio.transcript:
            self.reply.add_text(_AUDIO, self._audio.transcript)

    def add_late_audio(self) -> None:
        """Updates the metadata and opaque state of the audio block if audio arrived after the block's creation."""
        if self._has_late_audio:
            self._describe_audio()

    def _describe_audio(self) -> None:
        self.reply.add_metadata(_AUDIO, **self._audio.metadata)
        self.reply.add_state(_AUDIO, **self._audio.state)

    def _add_details(self) -> None:
        """Adds reasoning details to the opaque state of the thinking block.

        If no other reasoning arrived, the details also provide the text of the block.
        """
        if self._details.items:
            if not self.reply.has_block(_THINKING):
                self.reply.add_thinking(_THINKING, details_text(self._details.items))
            self.reply.add_state(_THINKING, fields={DETAILS: self._details.items})
