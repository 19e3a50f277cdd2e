"""Schema of the native chat requests of DashScope, for both endpoints, because its SDK has no types for messages.

Source: Alibaba's API reference and error-code pages (help.aliyun.com/zh/model-studio, 2025-12) and the
parameters of `dashscope.AioGeneration.call` and `dashscope.AioMultiModalConversation.call` (SDK 2.0.2).
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NotRequired, Required, TypeAlias, TypedDict, cast

__all__ = ["SCHEMAS", "MultimodalRequest", "Path", "TextRequest", "get_path"]

Path: TypeAlias = Literal["text", "multimodal"]


class CacheControl(TypedDict):
    """Marker for the explicit context cache. Only content parts accept it."""

    type: Literal["ephemeral"]


class FunctionCall(TypedDict):
    name: str
    arguments: str
    """JSON text, as in requests for OpenAI."""


class ToolCall(TypedDict):
    id: str
    type: Literal["function"]
    function: FunctionCall
    index: NotRequired[int]


class FunctionDefinition(TypedDict):
    name: str
    description: NotRequired[str]
    parameters: NotRequired[dict[str, object]]
    strict: NotRequired[bool]


class Tool(TypedDict):
    type: Literal["function"]
    function: FunctionDefinition


class ChosenFunction(TypedDict):
    name: str


class NamedToolChoice(TypedDict):
    type: Literal["function"]
    function: ChosenFunction


class PlainFormat(TypedDict):
    type: Literal["text", "json_object"]


class JSONSchema(TypedDict):
    name: str
    schema: dict[str, object]
    description: NotRequired[str]
    strict: NotRequired[bool]


class SchemaFormat(TypedDict):
    """Response format with a schema, which only newer models accept."""

    type: Literal["json_schema"]
    json_schema: JSONSchema


class Parameters(TypedDict, total=False):
    """All keys except the messages. The SDK moves them to `parameters`."""

    tools: list[Tool]
    tool_choice: Literal["none", "auto"] | NamedToolChoice
    """`required` is not accepted: 'tool_choice is one of the strings that should be ["none", "auto"]'."""
    parallel_tool_calls: bool
    result_format: Literal["message", "text"]
    response_format: PlainFormat | SchemaFormat
    incremental_output: bool
    enable_thinking: bool
    thinking_budget: int
    preserve_thinking: bool
    enable_search: bool
    vl_high_resolution_images: bool
    temperature: float
    top_p: float
    top_k: int
    seed: int
    stop: str | list[str]
    n: int
    logprobs: bool
    top_logprobs: int
    presence_penalty: float
    repetition_penalty: float


# --- the text path: content is a string ("input content must be a string.") -------------------------


class TextSystem(TypedDict):
    role: Literal["system"]
    content: str


class TextUser(TypedDict):
    role: Literal["user"]
    content: str


class TextAssistant(TypedDict):
    """With calls, content is "" and never null or absent ("The content field is a required field.")."""

    role: Literal["assistant"]
    content: str
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]


class TextTool(TypedDict):
    role: Literal["tool"]
    tool_call_id: str
    content: str
    name: NotRequired[str]


class TextRequest(Parameters, total=False):
    messages: Required[list[TextSystem | TextUser | TextAssistant | TextTool]]


# --- the multimodal path: content is a list of parts with one kind of content each ------------------


class TextPart(TypedDict):
    text: str
    cache_control: NotRequired[CacheControl]


class ImagePart(TypedDict):
    image: str
    """An http(s) or oss URL, or a data URL."""
    min_pixels: NotRequired[int]
    max_pixels: NotRequired[int]
    cache_control: NotRequired[CacheControl]


class AudioPart(TypedDict):
    audio: str
    cache_control: NotRequired[CacheControl]


class VideoPart(TypedDict):
    video: str | list[str]
    """A URL, or the URLs of the frames."""
    fps: NotRequired[float]
    min_pixels: NotRequired[int]
    max_pixels: NotRequired[int]
    total_pixels: NotRequired[int]
    cache_control: NotRequired[CacheControl]


class PartsSystem(TypedDict):
    role: Literal["system"]
    content: list[TextPart]


class PartsUser(TypedDict):
    role: Literal["user"]
    content: list[TextPart | ImagePart | AudioPart | VideoPart]


class PartsAssistant(TypedDict):
    role: Literal["assistant"]
    content: str | list[TextPart]
    reasoning_content: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]


class PartsTool(TypedDict):
    """Tool message, which accepts only text parts."""

    role: Literal["tool"]
    tool_call_id: str
    content: str | list[TextPart]
    name: NotRequired[str]


class MultimodalRequest(Parameters, total=False):
    messages: Required[list[PartsSystem | PartsUser | PartsAssistant | PartsTool]]


SCHEMAS: Final[dict[Path, Any]] = {"text": TextRequest, "multimodal": MultimodalRequest}


def get_path(request: Mapping[str, object]) -> Path:
    """Returns the endpoint of a request: multimodal if any content is a list."""
    messages = request.get("messages")
    if not isinstance(messages, list):
        return "text"
    objects = [
        cast("dict[str, object]", message)
        for message in cast("list[object]", messages)
        if isinstance(message, dict)
    ]
    return "multimodal" if any(isinstance(message.get("content"), list) for message in objects) else "text"
