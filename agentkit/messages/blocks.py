"""The typed parts of a message.

Class and key names are AgentScope's where it has one. All are frozen values: positional or by keyword,
checked at the door. `metadata` is yours; it never reaches a provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias, cast

from pydantic import Discriminator
from pydantic_core import from_json, to_json

from agentkit.errors import MessageError
from agentkit.json_values import copy_json
from agentkit.messages.mcp_results import McpItem, McpResult, read_mcp_item, read_mcp_result
from agentkit.messages.sniffing import sniff_media_type
from agentkit.messages.sources import (
    MAX_FILE_BYTES,
    Base64Source,
    Source,
    URLSource,
    encode_base64,
    guess_media_type,
    read_regular_file,
)
from agentkit.messages.validation import Checked, Json, JsonObject, Text, Unwritten, same_json, validated_dataclass

__all__ = [
    "AudioBlock",
    "Block",
    "DocumentBlock",
    "ImageBlock",
    "InvalidBlock",
    "MediaBlock",
    "OpaqueBlock",
    "OpaqueState",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "VideoBlock",
]


@validated_dataclass
class OpaqueState(metaclass=Checked):
    """State that only the system that issued it can read, to go back to it byte for byte.

    `issuer` names that system by its provider's system name: `anthropic`, `gemini`, `openai`, `deepseek`,
    `vllm`, `ollama`, `dashscope`. `signature` and `redacted_data` are Anthropic's, `encrypted_content` is that of
    OpenAI's reasoning items, `item_id` the id of one of OpenAI's output items: of reasoning, of a message or call
    after it, of a generated image. `thought_signature` (standard base64) is Gemini's. `fields` are
    further keys that the block came with and goes back with: `phase` on OpenAI's messages, `caller` on Anthropic's
    calls, and in anybody's turn `detail` on a picture, `fps` on a film. `audio` on a sound that a model spoke has
    its `id`, by which it goes back to its issuer, and its `transcript`, which is sent where the sound cannot
    stand. `prefix` is the `prefix_digest` of the request that it came in answer to.
    """

    issuer: Text
    signature: Text | None = None
    redacted_data: Text | None = None
    encrypted_content: Text | None = None
    thought_signature: Text | None = None
    item_id: Text | None = None
    model: Text | None = None
    prefix: Text | None = None
    fields: JsonObject | None = None

    @property
    def proves(self) -> bool:
        """Whether it proves what a model made: such state has no place in a user's turn."""
        return any(getattr(self, name) is not None for name in _PROOFS)


_PROOFS = ("signature", "redacted_data", "encrypted_content", "thought_signature", "item_id")


@validated_dataclass
class _Block(metaclass=Checked):
    metadata: JsonObject | None = field(default=None, kw_only=True, repr=False)


@validated_dataclass
class TextBlock(_Block):
    """Text. `state` is what a provider signed onto it (Gemini signs text parts), or the keys it came with."""

    text: Text
    type: Literal["text"] = "text"
    state: OpaqueState | None = None


def build_trusted_text(text: str) -> TextBlock:
    """A text block of text that was checked before: no validation, for the stages of the pipeline."""
    block = _new(TextBlock)
    _set_text(block, text)
    _set_text_type(block, "text")
    _set_text_state(block, None)
    _set_text_metadata(block, None)
    return block


_new = object.__new__
_set_text = TextBlock.__dict__["text"].__set__
_set_text_type = TextBlock.__dict__["type"].__set__
_set_text_state = TextBlock.__dict__["state"].__set__
_set_text_metadata = _Block.__dict__["metadata"].__set__


@validated_dataclass
class ThinkingBlock(_Block):
    """A model's reasoning: its readable text (may be empty) and the opaque state that proves it."""

    thinking: Text
    state: OpaqueState | None = None
    type: Literal["thinking"] = "thinking"


@validated_dataclass
class ToolUseBlock(_Block):
    """A model's call of a tool. `raw_input` is the argument text exactly as the model wrote it.

    On wires that carry arguments as text, `raw_input` is what goes out, as long as it is a JSON object
    equal to `input`. (In stored JSON, `input` may be that text alone.)
    """

    id: Text
    name: Text
    input: Unwritten
    raw_input: Text | None = None
    state: OpaqueState | None = None
    type: Literal["tool_use"] = "tool_use"
    _arguments: str = field(default="", init=False, repr=False, compare=False)
    _flat: bool = field(default=True, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            encoded = to_json(self.input)
        except ValueError as error:
            raise MessageError("input", f"cannot be written as JSON: {error}", "Mend the text.") from None
        raw = self.raw_input
        _set_arguments(self, raw if raw is not None and _reads_as(raw, self.input, encoded) else encoded.decode())
        if not _SCALARS.issuperset(map(type, self.input.values())):
            _set_flat(self, False)

    @property
    def arguments(self) -> str:
        """The arguments as JSON text: `raw_input` where it says the same as `input`."""
        return self._arguments

    def copy_input(self) -> dict[str, Any]:
        """The input in containers of its own."""
        return self.input.copy() if self._flat else copy_json(self.input)

    @property
    def raw_is_broken(self) -> bool:
        """Whether `raw_input` says something else than `input`, as when the model was cut off."""
        return self.raw_input is not None and self._arguments is not self.raw_input


def _reads_as(text: str, expected: JsonObject, encoded: bytes) -> bool:
    """Returns True if a text is the JSON of the object, whose own JSON is `encoded`."""
    try:
        parsed = from_json(text)
        # Equal bytes tell 1 from 1.0 and true at no cost; the walk is for another order of keys.
        return (parsed == expected and to_json(parsed) == encoded) or same_json(parsed, expected)
    except ValueError:
        return False


_set_arguments = ToolUseBlock.__dict__["_arguments"].__set__
_set_flat = ToolUseBlock.__dict__["_flat"].__set__
_SCALARS = {str, int, float, bool, type(None)}


@validated_dataclass
class _Media(_Block):
    """What all media have. `state` is what a provider signed onto what its model made (Gemini signs pictures), or
    the keys that they came with (`OpaqueState.fields`).
    """

    source: Source
    state: OpaqueState | None = field(default=None, kw_only=True)

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> Self:
        """Media held in the message, from its bytes."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise MessageError("data", f"expected bytes, got {type(data).__name__}", "Give the bytes.")
        return cls(Base64Source(media_type, encode_base64(data)))

    @classmethod
    def from_path(cls, path: str | Path, media_type: str | None = None) -> Self:
        """Media held in the message, read from a file at once (blocking). Calling this is consent to read.

        Raises MessageError if the path is no regular file (a pipe, a device), if the file cannot be read or has
        more than 100 million bytes, or if neither `media_type`, its suffix nor its first bytes name its type.
        """
        if not isinstance(path, str | Path):
            raise MessageError("path", f"{type(path).__name__} is no path", "Give a path.")
        named = media_type or guess_media_type(Path(path).as_posix())
        try:
            content = read_regular_file(path, MAX_FILE_BYTES)
            named = named or sniff_media_type(encode_base64(content[:96]), "")
            if named is None:
                reason = "neither the suffix nor the content names a known media type"
                raise MessageError(str(path), reason, "Pass media_type.")
            return cls.from_bytes(content, named)
        except (OSError, ValueError) as error:
            if isinstance(error, MessageError):
                raise
            raise MessageError(str(path), f"the file cannot be read ({error})", "Check it.") from None

    @classmethod
    def from_url(cls, url: str, media_type: str | None = None) -> Self:
        """Media at a URL, which stays a URL."""
        return cls(URLSource(url, media_type))


@validated_dataclass
class ImageBlock(_Media):
    """A picture."""

    type: Literal["image"] = "image"


@validated_dataclass
class AudioBlock(_Media):
    """A sound recording."""

    type: Literal["audio"] = "audio"


@validated_dataclass
class VideoBlock(_Media):
    """A film."""

    type: Literal["video"] = "video"


@validated_dataclass
class DocumentBlock(_Media):
    """A document: PDF, plain text, an office file. `title` is its file name or heading."""

    title: Text | None = None
    type: Literal["document"] = "document"


@validated_dataclass
class InvalidBlock(_Block):
    """A stored block that could not be read, kept so that the rest of its history can be opened.

    `data` is the block as it was found, `reason` what is wrong with it, `place` where it stood.
    """

    data: Json
    reason: Text
    place: Text
    type: Literal["invalid"] = "invalid"


@validated_dataclass
class OpaqueBlock(_Block):
    """A part that only its wire knows, to go back verbatim: a search that the provider ran, a file by its id.

    `wire` is the name of the provider (`anthropic`, `openai-responses`, `gemini`) whose requests may carry `data`.
    It goes to no other. In an assistant's turn it is left off there, which loses nothing of yours; in a user's or
    system turn, or as an item of a tool's result, it is content, and leaving it off is a loss.
    """

    wire: Text
    data: JsonObject
    type: Literal["opaque"] = "opaque"


MediaBlock: TypeAlias = ImageBlock | AudioBlock | VideoBlock | DocumentBlock

ResultItem: TypeAlias = Annotated[
    TextBlock | ImageBlock | AudioBlock | VideoBlock | DocumentBlock | OpaqueBlock | InvalidBlock,
    Discriminator("type"),
]


@validated_dataclass
class ToolResultBlock(_Block):
    """What a tool answered: text, or a sequence of text, media and parts that only a wire knows.

    `name` may be left to its call's. `output` also takes a CallToolResult of the Model Context Protocol, or its
    `content`, as an object or a dict: it becomes blocks, and its `isError` sets `is_error`.
    """

    id: Text
    name: Text = ""
    output: Text | tuple[ResultItem, ...] = ""
    is_error: bool = False
    type: Literal["tool_result"] = "tool_result"

    @classmethod
    def _convert_refused(cls, values: dict[str, Any]) -> dict[str, Any] | None:
        """ArgumentBuffer that were refused, with an MCP result read; None if they hold none (see `Checked`)."""
        read = _read_output(values.get("output", ""))
        if read is None:
            return None
        read["is_error"] = read.get("is_error") or values.get("is_error", False)
        metadata: dict[str, Any] = {**(read.get("metadata") or {}), **(values.get("metadata") or {})}
        return {**values, **read, "metadata": metadata or None}

    if TYPE_CHECKING:

        def __init__(
            self,
            id: str,
            name: str = "",
            output: str
            | Sequence[TextBlock | MediaBlock | OpaqueBlock | InvalidBlock | Mapping[str, Any] | McpItem]
            | Mapping[str, Any]
            | McpResult = "",
            is_error: bool = False,
            type: Literal["tool_result"] = "tool_result",
            *,
            metadata: dict[str, Any] | None = None,
        ) -> None: ...

    @property
    def items(self) -> tuple[TextBlock | MediaBlock | OpaqueBlock | InvalidBlock, ...]:
        """The output as blocks."""
        return (TextBlock(self.output),) if isinstance(self.output, str) else self.output

    @property
    def listing(self) -> str:
        """The output as one text: several text blocks are the items of a list, as AgentScope writes them."""
        if isinstance(self.output, str):
            return self.output
        texts = [item.text for item in self.output if isinstance(item, TextBlock)]
        return texts[0] if len(texts) == 1 else "\n".join(f"- {text}" for text in texts)

    @property
    def marked_listing(self) -> str:
        """The listing, after `[error]` if the tool failed: for an API without a field for errors."""
        if not self.is_error:
            return self.listing
        return f"[error] {self.listing}" if self.listing else "[error]"

    @property
    def text(self) -> str:
        """The output's text blocks, joined by line breaks."""
        if isinstance(self.output, str):
            return self.output
        return "\n".join(item.text for item in self.output if isinstance(item, TextBlock))


def _read_output(output: object) -> dict[str, Any] | None:
    """The fields that an MCP result sets; None for an output that is none."""
    try:
        if not isinstance(output, list | tuple):
            return None if isinstance(output, str) else read_mcp_result(output)
        items = cast("Sequence[object]", output)
        read = [None if type(type(item)) is Checked else read_mcp_item(item, at) for at, item in enumerate(items)]
    except Exception:  # an object whose attributes fail: refused as an output
        return None
    blocks = [item if block is None else block for item, block in zip(items, read, strict=True)]
    return {"output": blocks} if any(read) else None


Block: TypeAlias = Annotated[
    TextBlock
    | ThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | AudioBlock
    | VideoBlock
    | DocumentBlock
    | OpaqueBlock
    | InvalidBlock,
    Discriminator("type"),
]
