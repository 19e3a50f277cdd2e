"""Checks the shape of a request against the type annotations of the SDK.

pydantic cannot do this: it validates the SDKs' `Iterable[...]` lazily and cannot forbid extra keys of a
TypedDict. This module reports unknown keys and missing keys, and chooses members of unions by `type` and `role`.
A bool is not an int, and a string is not a sequence. `EXTENSIONS` lists values that an API accepts beyond the
types, with sources.
"""

import base64
import binascii
import collections.abc
import datetime
import enum
import functools
import math
import types as builtin_types
import typing
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NotRequired, TypedDict, Union, cast

import pydantic
import typing_extensions
from anthropic.types import message_create_params as anthropic_params
from google.genai import types as gemini
from ollama import Message as OllamaMessage
from ollama import Tool as OllamaTool
from openai.types import chat as openai_chat
from openai.types import responses as openai_responses
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

from tests.wire.dashscope_schema import SCHEMAS, get_path

__all__ = ["EXTENSIONS", "Extension", "Member", "Optionality", "check_request"]

CALLER_KEYS: Final = frozenset({"model", "max_tokens", "stream"})
"""Arguments of the SDK that the caller passes in addition to the request. A request never has these keys."""


# --- values that an API accepts beyond the types of its SDK -----------------------------------------


@dataclass(frozen=True, slots=True)
class Extension:
    """Key of `owner` that the API accepts and the type of the SDK lacks or restricts."""

    owner: Any
    key: str
    annotation: Any
    source: str


@dataclass(frozen=True, slots=True)
class Member:
    """Shape that the API accepts at any position where the types of the SDK allow `beside`."""

    beside: Any
    annotation: Any
    source: str


@dataclass(frozen=True, slots=True)
class Optionality:
    """Keys of `owner` that the type of the SDK requires and the API does not require."""

    owner: Any
    keys: frozenset[str]
    source: str


class URLReference(TypedDict):
    url: str


class AudioURLPart(TypedDict):
    type: Literal["audio_url"]
    audio_url: URLReference
    uuid: NotRequired[str]


class VideoURLPart(TypedDict):
    type: Literal["video_url"]
    video_url: URLReference
    uuid: NotRequired[str]


class CacheControl(TypedDict):
    type: Literal["ephemeral"]


class DashScopeVideoURLPart(TypedDict):
    type: Literal["video_url"]
    video_url: URLReference
    fps: NotRequired[float]
    min_pixels: NotRequired[int]
    max_pixels: NotRequired[int]
    total_pixels: NotRequired[int]
    cache_control: NotRequired[CacheControl]


class DashScopeFramesPart(TypedDict):
    type: Literal["video"]
    video: list[str]
    fps: NotRequired[float]
    min_pixels: NotRequired[int]
    max_pixels: NotRequired[int]
    total_pixels: NotRequired[int]
    cache_control: NotRequired[CacheControl]


class FlatFilePart(TypedDict):
    type: Literal["file"]
    file_id: str


class ThinkingSwitch(TypedDict):
    type: Literal["enabled", "disabled"]


class NoExtraBody(TypedDict):
    """`extra_body` of an API that needs none."""


class DeepSeekBody(TypedDict, total=False):
    thinking: ThinkingSwitch
    reasoning_effort: str


class VLLMBody(TypedDict, total=False):
    chat_template_kwargs: dict[str, object]
    include_reasoning: bool
    thinking_token_budget: int
    structured_outputs: dict[str, object]
    mm_processor_kwargs: dict[str, object]
    add_generation_prompt: bool
    continue_final_message: bool
    documents: list[dict[str, object]]
    top_k: int
    min_p: float
    repetition_penalty: float
    stop_token_ids: list[int]
    min_tokens: int
    ignore_eos: bool
    truncate_prompt_tokens: int
    cache_salt: str
    priority: int
    return_token_ids: bool


class DashScopeBody(TypedDict, total=False):
    enable_thinking: bool
    thinking_budget: int
    preserve_thinking: bool
    top_k: int
    enable_search: bool
    search_options: dict[str, object]
    vl_high_resolution_images: bool


_ASSISTANT = openai_chat.ChatCompletionAssistantMessageParam
_TEXT = openai_chat.ChatCompletionContentPartTextParam
_IMAGE = openai_chat.ChatCompletionContentPartImageParam
_AUDIO = openai_chat.ChatCompletionContentPartInputAudioParam
_CHAT = completion_create_params.CompletionCreateParamsNonStreaming
_RESPONSES = response_create_params.ResponseCreateParamsNonStreaming
_MESSAGES = anthropic_params.MessageCreateParamsNonStreaming
_OUTPUT_MESSAGE = openai_responses.ResponseOutputMessageParam
_REASONING = openai_responses.ResponseReasoningItemParam
_FUNCTION_TOOL = openai_responses.FunctionToolParam

_DEEPSEEK_THINKING = "https://api-docs.deepseek.com/guides/thinking_mode"
_DEEPSEEK_VISION = "https://api-docs.deepseek.com/guides/vision"
_VLLM_CHAT = "vllm-project/vllm: vllm/entrypoints/chat_utils.py"
_VLLM_BODY = "vllm-project/vllm: vllm/entrypoints/openai/chat_completion/protocol.py"
_DASHSCOPE_CHAT = "https://www.alibabacloud.com/help/en/model-studio/use-qwen-by-calling-api"
_DASHSCOPE_CACHE = "https://www.alibabacloud.com/help/en/model-studio/context-cache"
_OLLAMA_WIRE = "ollama/ollama: api/types.go"
_VERCEL = "vercel/ai: packages/openai, the Responses converter"
_RECORDED = "recorded traffic of the service"

EXTENSIONS: Final[dict[str, tuple[Extension | Member | Optionality, ...]]] = {
    "openai": (
        Extension(_ASSISTANT, "annotations", list[dict[str, object]], _RECORDED),
        Extension(_CHAT, "extra_body", NoExtraBody, "openai-python: `extra_body` of every call"),
    ),
    "openai-responses": (
        Optionality(_OUTPUT_MESSAGE, frozenset({"id", "status", "type"}), _VERCEL),
        Optionality(_REASONING, frozenset({"id"}), _VERCEL),
        Optionality(_FUNCTION_TOOL, frozenset({"strict", "parameters"}), _RECORDED),
        Extension(_RESPONSES, "extra_body", NoExtraBody, "openai-python: `extra_body` of every call"),
    ),
    "anthropic": (
        Extension(_MESSAGES, "extra_body", NoExtraBody, "anthropic-sdk-python: `extra_body` of every call"),
    ),
    "gemini": (
        Extension(
            gemini.GenerateContentConfig, "tools", list[gemini.Tool], "google-genai: `ToolListUnion`, as JSON"
        ),
    ),
    "ollama": (
        Extension(OllamaMessage, "tool_call_id", str, f"{_OLLAMA_WIRE}, `Message.ToolCallID`"),
        Extension(OllamaMessage, "images", list[str], f"{_OLLAMA_WIRE}, `Message.Images`: base64 text"),
        Extension(OllamaMessage.ToolCall, "id", str, f"{_OLLAMA_WIRE}, `ToolCall.ID`"),
        Extension(
            OllamaMessage.ToolCall, "type", Literal["function"], "ollama/ollama: docs, tool calling examples"
        ),
        Extension(OllamaMessage.ToolCall.Function, "index", int, f"{_OLLAMA_WIRE}, `ToolCallFunction.Index`"),
        Extension(
            OllamaTool.Function, "parameters", dict[str, object], f"{_OLLAMA_WIRE}, `ToolFunctionParameters`"
        ),
    ),
    "dashscope": (),
    "dashscope-compatible": (
        Extension(_ASSISTANT, "reasoning_content", str, _DASHSCOPE_CHAT),
        Extension(_TEXT, "cache_control", CacheControl, _DASHSCOPE_CACHE),
        Extension(_IMAGE, "cache_control", CacheControl, _DASHSCOPE_CACHE),
        Extension(_AUDIO, "cache_control", CacheControl, _DASHSCOPE_CACHE),
        Extension(_IMAGE, "min_pixels", int, _DASHSCOPE_CHAT),
        Extension(_IMAGE, "max_pixels", int, _DASHSCOPE_CHAT),
        Member(_IMAGE, DashScopeVideoURLPart, _DASHSCOPE_CHAT),
        Member(_IMAGE, DashScopeFramesPart, _DASHSCOPE_CHAT),
        Extension(_CHAT, "extra_body", DashScopeBody, _DASHSCOPE_CHAT),
    ),
    "deepseek": (
        Extension(_ASSISTANT, "reasoning_content", str, _DEEPSEEK_THINKING),
        Extension(_ASSISTANT, "prefix", bool, "https://api-docs.deepseek.com/guides/chat_prefix_completion"),
        Member(_IMAGE, FlatFilePart, _DEEPSEEK_VISION),
        Extension(_CHAT, "extra_body", DeepSeekBody, _DEEPSEEK_THINKING),
    ),
    "vllm": (
        Extension(_ASSISTANT, "reasoning", str, _VLLM_CHAT),
        Extension(_ASSISTANT, "reasoning_content", str, f"{_VLLM_CHAT}, older servers"),
        Extension(_IMAGE, "uuid", str, _VLLM_CHAT),
        Extension(_AUDIO, "uuid", str, _VLLM_CHAT),
        Member(_IMAGE, AudioURLPart, _VLLM_CHAT),
        Member(_IMAGE, VideoURLPart, _VLLM_CHAT),
        Extension(_CHAT, "extra_body", VLLMBody, _VLLM_BODY),
    ),
}
"""Values that the API of each provider accepts beyond the types of its SDK."""


class GeminiRequest(TypedDict):
    """Arguments of `models.generate_content` as JSON."""

    contents: list[gemini.Content]
    config: NotRequired[gemini.GenerateContentConfig]


class OllamaRequest(TypedDict):
    """Arguments of `ollama.AsyncClient.chat`."""

    messages: list[OllamaMessage]
    tools: NotRequired[list[OllamaTool]]
    format: NotRequired[Literal["json"] | dict[str, object]]
    think: NotRequired[bool | Literal["low", "medium", "high", "max"]]
    options: NotRequired[dict[str, object]]
    keep_alive: NotRequired[float | str]


# --- annotations -----------------------------------------------------------------------------------

_WRAPPERS: Final = frozenset(
    {typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired}
)
_LISTS: Final = frozenset({list, collections.abc.Iterable, collections.abc.Sequence, tuple, set})
_MAPPINGS: Final = frozenset({dict, collections.abc.Mapping, collections.abc.MutableMapping})
_SCALARS: Final[dict[Any, str]] = {str: "text", bool: "a bool", int: "an integer", float: "a number"}


@dataclass(frozen=True, slots=True)
class Field:
    """Key of a typed mapping: the type of its value, and True if the key is required."""

    annotation: Any
    required: bool


def _unwrap(annotation: Any) -> Any:
    """Returns an annotation without `Annotated`, `Required`, `NotRequired` and type aliases."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated or origin in _WRAPPERS:
        return _unwrap(typing.get_args(annotation)[0])
    if isinstance(annotation, typing_extensions.TypeAliasType):
        return _unwrap(annotation.__value__)
    return None.__class__ if annotation is None else annotation


def _get_members(annotation: Any) -> list[Any]:
    """Returns all members of a union and of the unions inside it, or any other annotation as the only member."""
    annotation = _unwrap(annotation)
    if typing.get_origin(annotation) in (Union, builtin_types.UnionType):
        return [member for argument in typing.get_args(annotation) for member in _get_members(argument)]
    return [annotation]


def _is_typed(annotation: Any) -> bool:
    return typing_extensions.is_typeddict(annotation) or _is_model(annotation)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel)


@functools.cache
def _get_declared_fields(owner: Any) -> dict[str, Field]:
    """Returns the keys that a TypedDict or a pydantic model declares.

    `__required_keys__` misses `Required` inside postponed annotations, so the resolved hints decide.
    """
    if _is_model(owner):
        owner.model_rebuild()
        model_fields = cast("dict[str, Any]", owner.model_fields)
        return {name: Field(field.annotation, field.is_required()) for name, field in model_fields.items()}
    hints: dict[str, Any] = typing_extensions.get_type_hints(owner, include_extras=True)
    return {name: Field(hint, _is_required(owner, name, hint)) for name, hint in hints.items()}


def _is_required(owner: Any, name: str, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _is_required(owner, name, typing.get_args(hint)[0])
    if origin in (typing.Required, typing_extensions.Required):
        return True
    if origin in (typing.NotRequired, typing_extensions.NotRequired):
        return False
    return name in owner.__required_keys__


def _describe_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a bool"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


# --- the checks -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """Annotation that is not a union, and its properties, which are read once."""

    annotation: Any
    origin: Any
    arguments: tuple[Any, ...]
    is_model: bool
    is_typed: bool
    literals: tuple[object, ...] | None
    """Values of a literal type or an enum."""
    json_types: tuple[type, ...] | None
    """Python types of the JSON values that fit. None if every value fits."""

    def fits(self, value: object) -> bool:
        """Returns True if a value has the JSON type of the annotation. Inner values are not checked."""
        if self.json_types is None:
            return True
        if self.origin is Literal:
            return type(value) in self.json_types
        return isinstance(value, self.json_types) and (not isinstance(value, bool) or self.annotation is bool)

    def describe(self) -> str:
        """Returns a description of the annotation."""
        if self.literals is not None:
            return "one of " + ", ".join(map(repr, self.literals))
        if self.is_typed or self.origin in _MAPPINGS:
            return "an object"
        if self.origin in _LISTS:
            return "a list"
        if self.annotation is bytes:
            return "base64 text"
        return _SCALARS.get(self.annotation, "null" if self.annotation is type(None) else f"a {self.annotation}")


def _create_shape(annotation: Any) -> Shape:
    origin = typing.get_origin(annotation) or annotation
    arguments, literals = typing.get_args(annotation), None
    if origin is Literal:
        literals = arguments
    elif isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        literals = tuple(member.value for member in annotation)
    return Shape(
        annotation,
        origin,
        arguments,
        _is_model(annotation),
        _is_typed(annotation),
        literals,
        _get_json_types(annotation, origin, literals),
    )


def _get_json_types(annotation: Any, origin: Any, literals: tuple[object, ...] | None) -> tuple[type, ...] | None:
    if origin in (Any, object):
        return None
    if origin is Literal:
        return tuple({type(value) for value in literals or ()})
    if _is_typed(annotation) or origin in _MAPPINGS:
        return (dict,)
    if origin in _LISTS:
        return (list,)
    if annotation is float:
        return (int, float)
    if annotation in (type(None), bool, int):
        return (annotation,)
    return (str,) if literals is not None or annotation in (str, bytes, datetime.datetime) else ()


@dataclass(frozen=True, slots=True)
class CheckedField:
    """Key of a typed mapping: the shapes of its value, and True if the key is required."""

    shapes: tuple[Shape, ...]
    required: bool


@dataclass(frozen=True, slots=True)
class ShapeChecker:
    """Compares a JSON value with an annotation and the extensions of a provider."""

    entries: tuple[Extension | Member | Optionality, ...] = ()
    accepts_null: bool = False
    """True if the API accepts null for an optional key."""
    fields: dict[Any, dict[str, CheckedField]] = field(default_factory=dict[Any, dict[str, CheckedField]])
    items: dict[Shape, tuple[Shape, ...]] = field(default_factory=dict[Shape, "tuple[Shape, ...]"])
    """Shapes of the items of a list, or of the values of a mapping, by the shape of the list or mapping."""
    tags: dict[tuple[Shape, str], tuple[object, ...]] = field(
        default_factory=dict["tuple[Shape, str]", "tuple[object, ...]"]
    )

    def check(self, value: object, annotation: Any, path: str) -> list[str]:
        """Returns the problems of `value`, whose place is `path` and which should match `annotation`."""
        return self._check_shapes(value, self._create_shapes(annotation), path)

    def _create_shapes(self, annotation: Any) -> tuple[Shape, ...]:
        members = _get_members(annotation)
        added = [
            entry.annotation for entry in self.entries if isinstance(entry, Member) and entry.beside in members
        ]
        return tuple(map(_create_shape, members + added))

    def _check_shapes(self, value: object, shapes: tuple[Shape, ...], path: str) -> list[str]:
        if len(shapes) == 1:
            return self._check_shape(value, shapes[0], path)
        fitting = [shape for shape in shapes if shape.fits(value)]
        if not fitting:
            expected = dict.fromkeys(shape.describe() for shape in shapes)
            return [f"{path}: {_describe_value(value)}, expected {' or '.join(expected)}"]
        if isinstance(value, dict):
            return self._check_by_tag(cast("dict[str, object]", value), fitting, path)
        return self._check_best_shape(value, fitting, path)

    def _check_best_shape(self, value: object, shapes: list[Shape], path: str) -> list[str]:
        """Returns the problems with the first shape that has the fewest."""
        best = self._check_shape(value, shapes[0], path)
        for shape in shapes[1:]:
            if not best:
                break
            best = min(best, self._check_shape(value, shape, path), key=len)
        return best

    def _check_by_tag(self, value: dict[str, object], shapes: list[Shape], path: str) -> list[str]:
        """Chooses a typed mapping by `type`, then by `role`, then by the fewest problems. Returns its problems."""
        for tag in ("type", "role"):
            tags = dict.fromkeys(name for shape in shapes for name in self._get_tag_values(shape, tag))
            if not tags:
                continue
            chosen = [shape for shape in shapes if self._matches_tag(value, shape, tag)]
            if not chosen:
                actual = repr(value[tag]) if tag in value else "absent"
                return [f"{_join(path, tag)}: {actual}, expected one of {', '.join(map(repr, tags))}"]
            shapes = chosen
        return self._check_best_shape(value, shapes, path)

    def _get_tag_values(self, shape: Shape, tag: str) -> tuple[object, ...]:
        if (shape, tag) not in self.tags:
            declared = self._get_fields(shape.annotation).get(tag) if shape.is_typed else None
            literal = [item for item in declared.shapes if item.origin is Literal] if declared else []
            self.tags[shape, tag] = tuple(value for item in literal for value in item.arguments)
        return self.tags[shape, tag]

    def _matches_tag(self, value: dict[str, object], shape: Shape, tag: str) -> bool:
        if not shape.is_typed:
            return True
        declared = self._get_fields(shape.annotation).get(tag)
        if declared is None:
            return tag not in value
        if tag not in value:
            return not declared.required
        tags = self._get_tag_values(shape, tag)
        return (
            not tags
            or value[tag] in tags
            or (value[tag] is None and any(item.annotation is type(None) for item in declared.shapes))
        )

    def _check_shape(self, value: object, shape: Shape, path: str) -> list[str]:
        if not shape.fits(value):
            return [f"{path}: {_describe_value(value)}, expected {shape.describe()}"]
        if shape.literals is not None:
            return _check_literal(value, shape.literals, path)
        if shape.annotation is bytes:
            return _check_base64(cast("str", value), path)
        if shape.is_typed:
            return self._check_keys(cast("dict[str, object]", value), shape, path)
        if shape.origin in _LISTS and shape.arguments:
            shapes = self._get_item_shapes(shape, 0)
            items = enumerate(cast("list[object]", value))
            return [text for index, item in items for text in self._check_shapes(item, shapes, f"{path}[{index}]")]
        if shape.origin in _MAPPINGS and shape.arguments:
            shapes = self._get_item_shapes(shape, 1)
            entries = cast("dict[str, object]", value).items()
            return [text for key, item in entries for text in self._check_shapes(item, shapes, _join(path, key))]
        return []

    def _get_item_shapes(self, shape: Shape, argument: int) -> tuple[Shape, ...]:
        if shape not in self.items:
            self.items[shape] = self._create_shapes(shape.arguments[argument])
        return self.items[shape]

    def _check_keys(self, value: dict[str, object], shape: Shape, path: str) -> list[str]:
        """Returns the problems of a mapping with declared keys."""
        fields = self._get_fields(shape.annotation)
        here = path or "request"
        problems = [
            f"{here}: missing key {key!r}" for key, field in fields.items() if field.required and key not in value
        ]
        for key, item in value.items():
            declared = fields.get(key)
            if declared is None:
                problems.append(f"{here}: unknown key {key!r}")
            elif item is None and shape.is_model:
                problems.append(f"{_join(path, key)}: null, which the SDK drops. Omit the key.")
            elif not (item is None and self.accepts_null and not declared.required):
                problems += self._check_shapes(item, declared.shapes, _join(path, key))
        return problems

    def _get_fields(self, owner: Any) -> dict[str, CheckedField]:
        """Returns the declared keys of `owner` and the extensions of the provider, from a cache."""
        if owner not in self.fields:
            self.fields[owner] = self._create_fields(owner)
        return self.fields[owner]

    def _create_fields(self, owner: Any) -> dict[str, CheckedField]:
        fields = dict(_get_declared_fields(owner))
        for entry in self.entries:
            if isinstance(entry, Extension) and entry.owner is owner:
                fields[entry.key] = Field(entry.annotation, required=False)
            elif isinstance(entry, Optionality) and entry.owner is owner:
                fields |= {key: Field(fields[key].annotation, required=False) for key in entry.keys}
        return {
            key: CheckedField(self._create_shapes(field.annotation), field.required)
            for key, field in fields.items()
        }


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _check_literal(value: object, literals: tuple[object, ...], path: str) -> list[str]:
    if any(type(value) is type(literal) and value == literal for literal in literals):
        return []
    return [f"{path}: {value!r}, expected one of {', '.join(map(repr, literals))}"]


def _check_base64(value: str, path: str) -> list[str]:
    """Bytes in a request are padded base64 in the standard alphabet (google-genai decodes both alphabets)."""
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return [f"{path}: not padded base64 of the standard alphabet"]
    return []


# --- JSON values ------------------------------------------------------------------------------------


def _find_non_json(value: object, path: str) -> Iterator[str]:
    """Yields values that `json.dumps` refuses or changes: bytes, tuples, NaN, and keys that are not text."""
    match value:
        case None | bool() | str() | int():
            pass
        case float():
            if not math.isfinite(value):
                yield f"{path}: {value} is not a JSON number"
        case list():
            for index, item in enumerate(cast("list[object]", value)):
                yield from _find_non_json(item, f"{path}[{index}]")
        case dict():
            for key, item in cast("dict[object, object]", value).items():
                if isinstance(key, str):
                    yield from _find_non_json(item, _join(path, key))
                else:
                    yield f"{path}: the key {key!r} is not text"
        case _:
            yield f"{path}: type {type(value).__name__} is not a JSON value"


# --- validation by SDKs ----------------------------------------------------------------------------


def _validate(model: type[pydantic.BaseModel], value: object, path: str) -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # google-genai warns before it raises an error
            model.model_validate(value)
    except pydantic.ValidationError as error:
        return [f"{_join(path, '.'.join(map(str, fault['loc'])))}: {fault['msg']}" for fault in error.errors()]
    return []


def _validate_gemini(request: Mapping[str, Any]) -> list[str]:
    contents = enumerate(request["contents"])
    problems = [problem for i, item in contents for problem in _validate(gemini.Content, item, f"contents[{i}]")]
    return problems + _validate(gemini.GenerateContentConfig, request.get("config", {}), "config")


def _validate_ollama(request: Mapping[str, Any]) -> list[str]:
    """Returns the problems that the SDK finds in a copy without falsy values.

    The copy has no images, because the SDK treats their values as file names and opens the files.
    """
    copies = [{key: v for key, v in message.items() if v and key != "images"} for message in request["messages"]]
    problems = [p for i, message in enumerate(copies) for p in _validate(OllamaMessage, message, f"messages[{i}]")]
    tools = enumerate(request.get("tools", []))
    return problems + [p for i, tool in tools for p in _validate(OllamaTool, tool, f"tools[{i}]")]


# --- entry point ------------------------------------------------------------------------------------

_SCHEMAS: Final[dict[str, Any]] = {
    "openai": _CHAT,
    "openai-responses": _RESPONSES,
    "anthropic": _MESSAGES,
    "gemini": GeminiRequest,
    "ollama": OllamaRequest,
    "dashscope-compatible": _CHAT,
    "deepseek": _CHAT,
    "vllm": _CHAT,
}
_SDK_CHECKS: Final = {"gemini": _validate_gemini, "ollama": _validate_ollama}
_ACCEPT_NULL: Final = frozenset({"openai-responses"})
"""In recorded traffic, the Responses API accepts null for optional keys of items."""


@functools.cache
def _get_checker(provider: str) -> ShapeChecker:
    """Returns the checker of a provider. It reports the keys of `CALLER_KEYS` as unknown."""
    checker = ShapeChecker(EXTENSIONS[provider], accepts_null=provider in _ACCEPT_NULL)
    schemas = list(SCHEMAS.values()) if provider == "dashscope" else [_SCHEMAS[provider]]
    for schema in schemas:
        declared = checker._create_fields(schema)  # pyright: ignore[reportPrivateUsage]
        checker.fields[schema] = {key: field for key, field in declared.items() if key not in CALLER_KEYS}
    return checker


def check_request(
    provider: str, request: Mapping[str, object], *, path: Literal["text", "multimodal"] | None = None
) -> list[str]:
    """Returns the differences between a request and the types of the SDK, with their places.

    `path` is the endpoint of DashScope. None chooses the endpoint by the contents of the request.

    >>> check_request("openai", {"messages": [{"role": "user", "content": "hi", "foo": 1}]})
    ["messages[0]: unknown key 'foo'"]
    """
    body = dict(request)
    problems = list(_find_non_json(body, ""))
    if problems:
        return problems
    schema = SCHEMAS[path or get_path(body)] if provider == "dashscope" else _SCHEMAS[provider]
    problems = _get_checker(provider).check(body, schema, "")
    if not problems and provider in _SDK_CHECKS:
        problems = _SDK_CHECKS[provider](body)
    return problems
