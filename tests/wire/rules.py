"""Rules of each API that types cannot express: order, pairing, ids, names, blank text, media.

The only sources are the documents and error texts of the providers, so that the rules can test agentkit. A rule
is a function from a request to problems. `RULES` lists the rules of each provider with their sources. Rules
assume the correct shape: call `shapes.check_request` first.
"""

import base64
import binascii
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from tests.wire.schema_rules import find_object_problems, find_strict_problems

__all__ = ["RULES", "Rule", "check_order"]

JSON: TypeAlias = Mapping[str, Any]
Problems: TypeAlias = Iterator[str]
Placed: TypeAlias = tuple[str, dict[str, Any]]
"""A JSON object with its path."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of an API: the function that checks it (its docstring states the rule) and the source."""

    check: Callable[[JSON], Problems]
    source: str


# --- access -----------------------------------------------------------------------------------------


def _get_objects(value: object, path: str) -> list[Placed]:
    """Returns the objects of a list with their paths. Empty if the value is not a list."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    placed = [(f"{path}[{index}]", cast("dict[str, Any]", item)) for index, item in enumerate(items)]
    return [pair for pair in placed if isinstance(cast("object", pair[1]), dict)]


def _get_path(value: object, *keys: str) -> Any:
    """Returns the value at a path of `keys`, or None if a key is missing."""
    for key in keys:
        value = cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
    return value


def _get_messages(request: JSON) -> list[Placed]:
    return _get_objects(request.get("messages"), "messages")


def _get_parts(placed: Placed) -> list[Placed]:
    path, message = placed
    return _get_objects(message.get("content"), f"{path}.content")


def _get_all_parts(request: JSON) -> Iterator[tuple[dict[str, Any], Placed]]:
    """Yields every content part of `messages` with its message."""
    for placed in _get_messages(request):
        for part in _get_parts(placed):
            yield placed[1], part


def _get_chat_calls(placed: Placed) -> list[Placed]:
    return _get_objects(placed[1].get("tool_calls"), f"{placed[0]}.tool_calls")


def _get_function(call: JSON) -> dict[str, Any]:
    """Returns the value of `function` or `custom` in a Chat Completions call or tool."""
    return call.get("function") or call.get("custom") or {}


def _get_objects_inside(value: object, path: str) -> Iterator[Placed]:
    """Yields every object inside a value with its path. Outer objects come first."""
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        yield path, mapping
        for key, item in mapping.items():
            yield from _get_objects_inside(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _get_objects_inside(item, f"{path}[{index}]")


def _is_base64(text: object) -> bool:
    try:
        base64.b64decode(cast("str", text), validate=True)
    except (binascii.Error, ValueError, TypeError):
        return False
    return bool(text)


def _parse_data_url(url: str) -> tuple[str, bool] | None:
    """Returns the media type of a data URL and True if its base64 is complete. None for any other URL."""
    match = re.fullmatch(r"data:([^;,]*)(?:;[^;,]+)*;base64,(.*)", url, re.DOTALL)
    return (match[1], _is_base64(match[2])) if match else None


def _find_url_problem(
    url: object, media_types: Iterable[str], schemes: tuple[str, ...] = ("http://", "https://")
) -> str:
    """Returns the problem of a media URL, or an empty text."""
    text = url if isinstance(url, str) else ""
    if text.startswith(schemes):
        return ""
    data = _parse_data_url(text)
    if data is None:
        return f"{text[:40]!r} is neither a data URL nor one of {', '.join(schemes)}"
    if not data[1]:
        return "the data URL has invalid base64"
    return "" if data[0] in media_types else f"media type {data[0]!r} is not accepted"


# --- lists, names and ids ---------------------------------------------------------------------------

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SPEAKER: Final = re.compile(r"[^\s<|\\/>]{1,64}")
_GEMINI_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,62}")
_CALL_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_LISTS: Final = (
    "messages",
    "contents",
    "input",
    "tools",
    "tool_calls",
    "content",
    "parts",
    "function_declarations",
)


def at_least_one_message(request: JSON) -> Problems:
    """A request has at least one message."""
    if not any(request.get(key) for key in ("messages", "contents", "input")):
        yield "request: no message"


def no_empty_list(request: JSON) -> Problems:
    """No list is empty. Schemas and arguments are user data and not checked."""
    for path, node in _get_conversation_objects(request):
        for key in _LISTS if node.get("type") != "reasoning" else ():
            if node.get(key) == []:
                yield f"{path or 'request'}: {key!r} is an empty list"


_USER_DATA_KEYS: Final = (
    "parameters",
    "input_schema",
    "parameters_json_schema",
    "args",
    "response",
    "arguments",
    "schema",
)
"""Keys of user data: JSON that agentkit sends unchanged."""


def _get_conversation_objects(value: object, path: str = "") -> Iterator[Placed]:
    """Yields every object of a request, except user data."""
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        yield path, mapping
        for key, item in mapping.items():
            if key not in _USER_DATA_KEYS and not (key == "input" and "name" in mapping):
                yield from _get_conversation_objects(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _get_conversation_objects(item, f"{path}[{index}]")


def _get_declared_tools(request: JSON) -> list[tuple[str, str]]:
    """Returns the path and the name of every function that a request of any API declares."""
    config = cast("JSON", request.get("config") or {})
    declared = [
        function
        for path, tool in _get_objects(config.get("tools"), "config.tools")
        for function in _get_objects(tool.get("function_declarations"), f"{path}.function_declarations")
    ]
    declared += [(path, _get_function(tool) or tool) for path, tool in _get_objects(request.get("tools"), "tools")]
    return [(path, str(tool["name"])) for path, tool in declared if "name" in tool]


def tool_names(request: JSON) -> Problems:
    """A tool's name matches `[a-zA-Z0-9_-]{1,64}`."""
    for path, name in _get_declared_tools(request):
        if not _NAME.fullmatch(name):
            yield f"{path}: tool name {name!r}"


def unique_tools(request: JSON) -> Problems:
    """Each tool name occurs once."""
    names: set[str] = set()
    for path, name in _get_declared_tools(request):
        if name in names:
            yield f"{path}: tool {name!r} is declared twice"
        names.add(name)


def at_most_128_tools(request: JSON) -> Problems:
    """A request declares at most 128 tools."""
    if len(_get_declared_tools(request)) > 128:
        yield "tools: more than 128"


def search_is_reserved(request: JSON) -> Problems:
    """No tool is called `search`: 'Tool names are not allowed to be [search]'."""
    for path, name in _get_declared_tools(request):
        if name == "search":
            yield f"{path}: the tool name 'search' is reserved"


def tool_choice_has_tools(request: JSON) -> Problems:
    """`tool_choice` and `parallel_tool_calls` come with `tools`, and a chosen tool is a declared one."""
    for key in ("tool_choice", "parallel_tool_calls"):
        if request.get(key) is not None and not request.get("tools"):
            yield f"{key}: no tools in the request"
    choice = request.get("tool_choice")
    allowed = _get_path(choice, "allowed_tools", "tools") or _get_path(choice, "tools")
    for item in [choice, *(cast("list[object]", allowed) if isinstance(allowed, list) else [])]:
        chosen = (
            _get_path(item, "function", "name") or _get_path(item, "custom", "name") or _get_path(item, "name")
        )
        if chosen and chosen not in {name for _, name in _get_declared_tools(request)}:
            yield f"tool_choice: {chosen!r} is not among the tools"
    if _get_path(choice, "type") == "allowed_tools" and not allowed:
        yield "tool_choice: allowed_tools without tools"


def speaker_names(request: JSON) -> Problems:
    r"""A message's `name` matches `^[^\s<|\\/>]+$` and has at most 64 characters."""
    for path, message in _get_messages(request):
        name = message.get("name")
        if name is not None and not _SPEAKER.fullmatch(name):
            yield f"{path}.name: {name!r}"


# --- Chat Completions and its family ----------------------------------------------------------------


def _roles(*allowed: str) -> Callable[[JSON], Problems]:
    def roles(request: JSON) -> Problems:
        """Messages have only roles of the API."""
        for path, message in _get_messages(request):
            if message.get("role") not in allowed:
                yield f"{path}.role: {message.get('role')!r}, expected one of {', '.join(allowed)}"

    return roles


def chat_pairing(request: JSON) -> Problems:
    """The tool messages directly after a message with calls answer each call once, in any order."""
    open_ids: list[str] = []
    caller = ""
    for placed in [*_get_messages(request), ("end", {"role": "end"})]:
        path, message = placed
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if call_id in open_ids:
                open_ids.remove(call_id)
            else:
                yield f"{path}: answers no open call {call_id!r}"
            continue
        if open_ids:
            yield f"{caller}: calls without a result right after: {', '.join(open_ids)}"
        caller, open_ids = path, [str(call.get("id")) for _, call in _get_chat_calls(placed)]
        if len(set(open_ids)) < len(open_ids):
            yield f"{path}: a call id occurs twice"


def chat_calls_only_by_assistant(request: JSON) -> Problems:
    """Only assistant messages have calls."""
    for placed in _get_messages(request):
        if placed[1].get("role") != "assistant" and _get_chat_calls(placed):
            yield f"{placed[0]}: tool_calls of role {placed[1].get('role')!r}"


def _call_ids(limit: int) -> Callable[[JSON], Problems]:
    def call_ids(request: JSON) -> Problems:
        """A call id is neither empty nor too long: 'Expected a string with maximum length 40'."""
        for path, call in (call for placed in _get_messages(request) for call in _get_chat_calls(placed)):
            if not 1 <= len(str(call.get("id", ""))) <= limit:
                yield f"{path}.id: {len(str(call.get('id', '')))} characters, expected 1 to {limit}"

    return call_ids


def chat_call_names(request: JSON) -> Problems:
    """A call in the history has a valid function name. One invalid name breaks every later request."""
    for path, call in (call for placed in _get_messages(request) for call in _get_chat_calls(placed)):
        if not _NAME.fullmatch(str(_get_function(call).get("name", ""))):
            yield f"{path}.function.name: {_get_function(call).get('name')!r}"


def chat_arguments(request: JSON) -> Problems:
    """A call without arguments has `{}`, not the empty text."""
    for path, call in (call for placed in _get_messages(request) for call in _get_chat_calls(placed)):
        if call.get("function", {}).get("arguments") == "":
            yield f"{path}.function.arguments: empty text, expected '{{}}'"


def chat_media_only_in_user(request: JSON) -> Problems:
    """Media are only in user messages: 'Image URLs are only allowed for messages with role 'user''."""
    for message, (path, part) in _get_all_parts(request):
        if message.get("role") != "user" and part.get("type") not in ("text", "refusal"):
            yield f"{path}: {part.get('type')} in a message of role {message.get('role')!r}"


def no_empty_text_part(request: JSON) -> Problems:
    """A text part is not empty."""
    for _, (path, part) in _get_all_parts(request):
        if part.get("text") == "":
            yield f"{path}: empty text"


def assistant_has_content(request: JSON) -> Problems:
    """An assistant message has content or calls."""
    for path, message in _get_messages(request):
        is_filled = any(
            message.get(key) for key in ("content", "tool_calls", "refusal", "audio", "thinking", "prefix")
        )
        if message.get("role") == "assistant" and not is_filled:
            yield f"{path}: neither content nor calls"


def content_length(request: JSON) -> Problems:
    """Each content text has at most 1,048,576 characters (`string_above_max_length`)."""
    for path, message in _get_messages(request):
        content = message.get("content")
        if isinstance(content, str) and len(content) > 1_048_576:
            yield f"{path}.content: more than 1,048,576 characters"


def json_object_mentions_json(request: JSON) -> Problems:
    """With `json_object` the messages contain the word json."""
    if "json_object" not in (
        _get_path(request, "response_format", "type"),
        _get_path(request, "text", "format", "type"),
    ):
        return
    text = json.dumps(request.get("messages") or request.get("input"), ensure_ascii=False)
    if "json" not in text.lower():
        yield "response_format: json_object without the word json in the messages"


_STRICT: Final = "a strict schema closes every object (additionalProperties false)"


def _get_strict_schemas(request: JSON) -> Iterator[Placed]:
    """Yields every schema of a request with strict mode."""
    for path, node in _get_objects_inside(
        {key: request[key] for key in ("tools", "response_format", "text") if key in request}, ""
    ):
        schema = node.get("parameters") or node.get("schema") or node.get("input_schema")
        if node.get("strict") is True and isinstance(schema, dict):
            yield path, cast("dict[str, Any]", schema)


def strict_schemas(request: JSON) -> Problems:
    """A strict schema closes every object and requires every property."""
    for path, schema in _get_strict_schemas(request):
        for place, node in _get_objects_inside(schema, f"{path}.schema"):
            properties = node.get("properties")
            if node.get("type") != "object" or not isinstance(properties, dict):
                continue
            if node.get("additionalProperties") is not False:
                yield f"{place}: {_STRICT}"
            listed = node.get("required")
            required = cast("list[object]", listed) if isinstance(listed, list) else []
            if any(name not in required for name in cast("dict[str, object]", properties)):
                yield f"{place}: a strict schema requires every property"


def strict_keywords(request: JSON) -> Problems:
    """A strict schema contains only keywords of strict mode."""
    for path, schema in _get_strict_schemas(request):
        yield from (f"{path}: {problem}" for problem in find_strict_problems(schema))


def _get_tool_schemas(request: JSON) -> Iterator[Placed]:
    """Returns the schema of every declared function of any API, if it has a schema."""
    for holder in ("tools", "config"):
        for path, node in _get_objects_inside({holder: request.get(holder)}, ""):
            if "name" in node:
                for key in ("parameters", "input_schema", "parameters_json_schema"):
                    if isinstance(node.get(key), dict):
                        yield f"{path}.{key}", node[key]


def tool_schemas_are_objects(request: JSON) -> Problems:
    """A tool's schema is an object with properties, and no combination of schemas."""
    for path, schema in _get_tool_schemas(request):
        yield from (f"{path}: {problem}" for problem in find_object_problems(schema))


_OPENAI_IMAGES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")


def _image_urls(
    media_types: tuple[str, ...], schemes: tuple[str, ...] = ("http://", "https://")
) -> Callable[[JSON], Problems]:
    def image_urls(request: JSON) -> Problems:
        """An image is an http(s) URL or a data URL of a media type that the API accepts."""
        for _, (path, part) in _get_all_parts(request):
            if part.get("type") == "image_url":
                problem = _find_url_problem(part["image_url"].get("url"), media_types, schemes)
                if problem:
                    yield f"{path}.image_url.url: {problem}"

    return image_urls


def openai_audio(request: JSON) -> Problems:
    """`input_audio.data` is raw base64 without a `data:` prefix."""
    for _, (path, part) in _get_all_parts(request):
        if part.get("type") == "input_audio" and not _is_base64(part["input_audio"].get("data")):
            yield f"{path}.input_audio.data: not raw base64"


def openai_files(request: JSON) -> Problems:
    """A file is a PDF: a data URL with a filename, or an uploaded file's id."""
    for _, (path, part) in _get_all_parts(request):
        file = part.get("file", {})
        if part.get("type") != "file" or "file_id" in file:
            continue
        problem = _find_url_problem(file.get("file_data"), ("application/pdf",), ("data:application/pdf;base64,",))
        if problem or not file.get("filename"):
            yield f"{path}.file: {problem or 'no filename'}"


def _only_part_types(*allowed: str) -> Callable[[JSON], Problems]:
    def part_types(request: JSON) -> Problems:
        """Only part types that the server supports: "Unsupported chat content part type: 'file'"."""
        for _, (path, part) in _get_all_parts(request):
            if part.get("type") not in allowed:
                yield f"{path}: part type {part.get('type')!r}"

    return part_types


def only_function_tools(request: JSON) -> Problems:
    """Tools and calls are functions: "unknown variant 'custom', expected 'function'"."""
    calls = [call for placed in _get_messages(request) for call in _get_chat_calls(placed)]
    for path, node in [*_get_objects(request.get("tools"), "tools"), *calls]:
        if node.get("type", "function") != "function":
            yield f"{path}: type {node.get('type')!r}"


# --- DeepSeek ---------------------------------------------------------------------------------------


def _is_thinking_enabled(request: JSON) -> bool:
    return bool(_get_path(request, "extra_body", "thinking", "type") != "disabled")


def _has_tools(request: JSON) -> bool:
    return bool(request.get("tools")) or any(_get_chat_calls(placed) for placed in _get_messages(request))


def deepseek_reasoning(request: JSON) -> Problems:
    """In a request with tools, every assistant message has `reasoning_content`, which may be ""."""
    if not (_is_thinking_enabled(request) and _has_tools(request)):
        return
    for path, message in _get_messages(request):
        if message.get("role") == "assistant" and not isinstance(message.get("reasoning_content"), str):
            yield f"{path}: no reasoning_content in a request with tools"


def deepseek_strings(request: JSON) -> Problems:
    """Content is text. Only the content of a user message with media is a list."""
    for placed in _get_messages(request):
        types = {part.get("type") for _, part in _get_parts(placed)}
        if isinstance(placed[1].get("content"), list) and types <= {"text", "refusal"}:
            yield f"{placed[0]}.content: a list without media, expected text"


def deepseek_tool_choice(request: JSON) -> Problems:
    """Thinking mode accepts only `none` and `auto`."""
    if _is_thinking_enabled(request) and request.get("tool_choice") not in (None, "none", "auto"):
        yield f"tool_choice: {request['tool_choice']!r} in thinking mode"


def deepseek_format(request: JSON) -> Problems:
    """The response format is not `json_schema`."""
    if _get_path(request, "response_format", "type") == "json_schema":
        yield "response_format: json_schema is not accepted"


def deepseek_prefix(request: JSON) -> Problems:
    """Only the last message has `prefix`."""
    for path, message in _get_messages(request)[:-1]:
        if message.get("prefix"):
            yield f"{path}: prefix before the last message"


# --- vLLM -------------------------------------------------------------------------------------------


def one_leading_system(request: JSON) -> Problems:
    """Only the first message is a system message. Chat templates refuse any other system message."""
    for path, message in _get_messages(request)[1:]:
        if message.get("role") in ("system", "developer"):
            yield f"{path}: a system message after the first message"


def vllm_media_urls(request: JSON) -> Problems:
    """Audio and video are http(s), file or data URLs."""
    for _, (path, part) in _get_all_parts(request):
        kind = str(part.get("type"))
        if kind in ("audio_url", "video_url"):
            url = str(part[kind].get("url"))
            if not url.startswith(("http://", "https://", "file://", f"data:{kind[:5]}/")):
                yield f"{path}.{kind}.url: {url[:40]!r}"


# --- DashScope, both modes --------------------------------------------------------------------------

_DASHSCOPE_IMAGES: Final = (
    *("image/bmp", "image/icns", "image/x-icon", "image/vnd.microsoft.icon", "image/jpeg", "image/jp2"),
    *("image/png", "image/sgi", "image/tiff", "image/webp", "image/heic"),
)
_DASHSCOPE_SCHEMES: Final = ("http://", "https://", "oss://")


def at_least_one_user_message(request: JSON) -> Problems:
    """A request has a user message: 'The input messages do not contain elements with the role of user'."""
    if not any(message.get("role") == "user" for _, message in _get_messages(request)):
        yield "messages: no message of role user"


def at_most_4_cache_markers(request: JSON) -> Problems:
    """A request has at most four `cache_control` markers, including those of tools and system prompt."""
    marked = [path for path, node in _get_conversation_objects(request) if node.get("cache_control")]
    if len(marked) > 4:
        yield f"{marked[4]}: cache_control number 5 of {len(marked)}, expected at most 4"


def dashscope_compatible_audio(request: JSON) -> Problems:
    """`input_audio.data` is a URL or `data:;base64,…`, and not raw base64 as for OpenAI."""
    for _, (path, part) in _get_all_parts(request):
        if part.get("type") == "input_audio":
            data = str(part["input_audio"].get("data"))
            is_complete = _parse_data_url(data)
            if not data.startswith(("http://", "https://")) and not (is_complete and is_complete[1]):
                yield f"{path}.input_audio.data: neither a URL nor a data URL"


def dashscope_frames(request: JSON) -> Problems:
    """A video of frames has 4 to 512 frames."""
    for _, (path, part) in _get_all_parts(request):
        frames = part.get("video")
        if isinstance(frames, list) and not 4 <= len(cast("list[object]", frames)) <= 512:
            yield f"{path}.video: {len(cast('list[object]', frames))} frames, expected 4 to 512"


def dashscope_video_urls(request: JSON) -> Problems:
    """A video is an http(s) or oss URL, or a data URL."""
    for _, (path, part) in _get_all_parts(request):
        url = part.get("video_url", {}).get("url") if part.get("type") == "video_url" else None
        if url is not None and not url.startswith((*_DASHSCOPE_SCHEMES, "data:video/")):
            yield f"{path}.video_url.url: {url[:40]!r}"


def _get_media_urls(part: JSON) -> Iterator[tuple[str, str]]:
    for kind in ("image", "audio", "video"):
        value = part.get(kind)
        for url in cast("list[object]", value) if isinstance(value, list) else [value]:
            if isinstance(url, str):
                yield kind, url


def dashscope_media(request: JSON) -> Problems:
    """Media are URLs or data URLs. The SDK would upload the file of a path."""
    for _, (path, part) in _get_all_parts(request):
        for kind, url in _get_media_urls(part):
            data = _parse_data_url(url)
            accepted = _DASHSCOPE_IMAGES if kind == "image" else (data[0],) if data else ()
            problem = _find_url_problem(url, accepted, _DASHSCOPE_SCHEMES)
            if problem:
                yield f"{path}.{kind}: {problem}"


def dashscope_no_local_file_in_text(request: JSON) -> Problems:
    """No user text is the path of a local file, because the SDK would upload the file or raise an error."""
    for message, (path, part) in _get_all_parts(request):
        text = part.get("text") if message.get("role") == "user" else None
        if isinstance(text, str) and (text.startswith("file://") or os.path.isfile(os.path.expanduser(text))):
            yield f"{path}.text: {text[:40]!r} names a local file"


def dashscope_one_path(request: JSON) -> Problems:
    """Either all contents are text, or all contents of users and system messages are lists of parts."""
    contents = [m.get("content") for _, m in _get_messages(request) if m.get("role") in ("user", "system")]
    kinds = {isinstance(content, str) for content in contents}
    if len(kinds) > 1:
        yield "messages: content is text in one message and a list in another"


def dashscope_result_format(request: JSON) -> Problems:
    """In a request with tools, `result_format` is `message`."""
    if request.get("tools") and request.get("result_format", "message") != "message":
        yield "result_format: expected 'message' with tools"


def dashscope_repeated_tools(request: JSON) -> Problems:
    """A request with calls in the history has tools."""
    if any(_get_chat_calls(placed) for placed in _get_messages(request)) and not request.get("tools"):
        yield "tools: missing, though the messages hold calls"


# --- OpenAI Responses -------------------------------------------------------------------------------

_CALLS: Final = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
_ITEM_IDS: Final = {"function_call": "fc", "reasoning": "rs", "message": "msg", "custom_tool_call": "ctc"}


def _get_items(request: JSON) -> list[Placed]:
    return _get_objects(request.get("input"), "input")


def _get_item_type(item: JSON) -> str:
    return str(item.get("type") or "message")


def responses_pairing(request: JSON) -> Problems:
    """Each call has one output after it, and no message between them.

    Errors: 'No tool output found for function call', 'No tool call found for function call output'.
    """
    open_calls: dict[str, str] = {}
    for path, item in _get_items(request):
        kind, call_id = _get_item_type(item), str(item.get("call_id"))
        if kind in _CALLS:
            if call_id in open_calls:
                yield f"{path}: call_id {call_id!r} is open already"
            open_calls[call_id] = _CALLS[kind]
        elif kind in _CALLS.values():
            if open_calls.pop(call_id, None) != kind:
                yield f"{path}: answers no open call {call_id!r}"
        elif kind == "message" and open_calls:
            yield f"{path}: a message while calls are open: {', '.join(open_calls)}"
    if open_calls:
        yield f"input: calls without an output: {', '.join(open_calls)}"


def responses_call_ids(request: JSON) -> Problems:
    """A `call_id` has 1 to 64 characters; an item's `id` begins with its kind's prefix."""
    for path, item in _get_items(request):
        if "call_id" in item and not 1 <= len(str(item["call_id"])) <= 64:
            yield f"{path}.call_id: {len(str(item['call_id']))} characters, expected 1 to 64"
        prefix, item_id = _ITEM_IDS.get(_get_item_type(item), ""), item.get("id")
        if item_id is not None and not (str(item_id).startswith(prefix) and len(str(item_id)) <= 64):
            yield f"{path}.id: {item_id!r}, expected an id that begins with {prefix!r}"


def responses_call_names(request: JSON) -> Problems:
    """A call in the history has a valid name, and arguments that are not empty text."""
    for path, item in _get_items(request):
        if _get_item_type(item) in _CALLS and not _NAME.fullmatch(str(item.get("name", ""))):
            yield f"{path}.name: {item.get('name')!r}"
        if item.get("type") == "function_call" and item.get("arguments") == "":
            yield f"{path}.arguments: empty text, expected '{{}}'"


def _belongs_to_reasoning(item: JSON) -> bool:
    kind = _get_item_type(item)
    if kind == "message":
        return item.get("role") == "assistant"
    return kind == "reasoning" or kind.endswith("_call")


def responses_reasoning(request: JSON) -> Problems:
    """An item follows reasoning: 'Item of type 'reasoning' was provided without its required following item.'"""
    items = _get_items(request)
    for (path, item), (_, following) in zip(items, [*items[1:], ("", {"role": "end"})], strict=False):
        if item.get("type") == "reasoning" and not _belongs_to_reasoning(following):
            yield f"{path}: reasoning without its following item"


def responses_paired_ids(request: JSON) -> Problems:
    """Reasoning with an id comes directly before an item with an id, other items have ids only after reasoning,
    and no id comes twice ("Duplicate item found with id").
    """
    items, is_paired, ids = _get_items(request), False, set[object]()
    for (path, item), (_, following) in zip(items, [*items[1:], ("", {})], strict=False):
        kind, item_id = _get_item_type(item), item.get("id")
        if kind == "reasoning":
            is_paired = item_id is not None
            if is_paired and following.get("id") is None:
                yield f"{path}: reasoning with an id before an item without"
        elif kind in ("message", *_CALLS) and item_id is not None and not is_paired:
            yield f"{path}: an id without the reasoning before it"
        if item.get("role") not in (None, "assistant") or kind in _CALLS.values():
            is_paired = False
        if item_id is not None and kind in ("reasoning", "message", *_CALLS):
            if item_id in ids:
                yield f"{path}: the id {item_id!r} comes twice"
            ids.add(item_id)


def responses_stateless_reasoning(request: JSON) -> Problems:
    """With `store` false, reasoning is sent with its `encrypted_content`, because no id is stored."""
    if request.get("store") is not False:
        return
    for path, item in _get_items(request):
        if item.get("type") == "reasoning" and not item.get("encrypted_content"):
            yield f"{path}: reasoning without encrypted_content"


def responses_part_roles(request: JSON) -> Problems:
    """Assistant messages have `output_text` and `refusal`, others `input_*`; system messages have only text."""
    for path, item in _get_items(request):
        for place, part in (
            _get_objects(item.get("content"), f"{path}.content") if _get_item_type(item) == "message" else []
        ):
            kind, role = str(part.get("type")), item.get("role")
            outward = kind in ("output_text", "refusal")
            if outward != (role == "assistant") or (role == "system" and kind != "input_text"):
                yield f"{place}: {kind} in a message of role {role!r}"


def _get_responses_parts(request: JSON) -> Iterator[Placed]:
    for path, item in _get_items(request):
        for key in ("content", "output"):
            yield from _get_objects(item.get(key), f"{path}.{key}")


def responses_no_empty_part(request: JSON) -> Problems:
    """No text part, message content or list of outputs is empty."""
    for path, part in _get_responses_parts(request):
        if part.get("text") == "":
            yield f"{path}: empty text"
    for path, item in _get_items(request):
        if item.get("output") == [] or (_get_item_type(item) == "message" and item.get("content") == ""):
            yield f"{path}: nothing in it"


def responses_media(request: JSON) -> Problems:
    """`image_url` is a URL or a data URL. A file has either an id, a URL, or a data URL with a name."""
    for path, part in _get_responses_parts(request):
        if part.get("type") == "input_image" and not part.get("file_id"):
            problem = _find_url_problem(part.get("image_url"), _OPENAI_IMAGES)
            if problem:
                yield f"{path}.image_url: {problem}"
        if part.get("type") == "input_file":
            yield from _responses_file(path, part)


def _responses_file(path: str, part: JSON) -> Problems:
    ways = [key for key in ("file_data", "file_id", "file_url") if part.get(key)]
    if len(ways) != 1:
        yield f"{path}: expected one of file_data, file_id and file_url, got {ways}"
    elif ways == ["file_data"]:
        complete = _parse_data_url(str(part["file_data"]))
        if not (complete and complete[1] and part.get("filename")):
            yield f"{path}.file_data: expected a data URL and a filename"


# --- Anthropic --------------------------------------------------------------------------------------

_ANTHROPIC_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_ASSISTANT_ONLY: Final = ("thinking", "redacted_thinking", "tool_use", "server_tool_use")
_USER_ONLY: Final = ("tool_result", "image", "document", "search_result", "container_upload")


def anthropic_first_user(request: JSON) -> Problems:
    """The first message has the role user: 'messages: first message must use the "user" role'."""
    for path, message in _get_messages(request)[:1]:
        if message.get("role") != "user":
            yield f"{path}: the first message has role {message.get('role')!r}"


def anthropic_ends_with_user(request: JSON) -> Problems:
    """The last message is a user message, a system message, or an assistant message with an open server tool."""
    for path, message in _get_messages(request)[-1:]:
        parts = [part for _, part in _get_parts((path, message))]
        if message.get("role") == "assistant" and (not parts or parts[-1].get("type") != "server_tool_use"):
            yield f"{path}: the last message has role 'assistant'"


def anthropic_alternation(request: JSON) -> Problems:
    """User and assistant messages alternate. A system message follows a user message and never precedes one."""
    allowed = {"user": {"assistant", "system"}, "assistant": {"user"}, "system": {"assistant", "system"}}
    messages = _get_messages(request)
    for (_, before), (path, message) in itertools.pairwise(messages):
        if message.get("role") not in allowed.get(str(before.get("role")), set()):
            yield f"{path}: role {message.get('role')!r} after {before.get('role')!r}"


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def anthropic_blank_text(request: JSON) -> Problems:
    """No text is blank, also in `system` and results: 'text content blocks must contain non-whitespace text'."""
    if _is_blank(request.get("system")) or request.get("system") == []:
        yield "system: blank"
    for path, node in _get_conversation_objects(request):
        if node.get("type") == "text" and _is_blank(node.get("text")):
            yield f"{path}: blank text"
        if _is_blank(node.get("content")):
            yield f"{path}.content: blank"


def _get_blocks(placed: Placed, *types: str) -> list[Placed]:
    return [(path, part) for path, part in _get_parts(placed) if part.get("type") in types]


def anthropic_pairing(request: JSON) -> Problems:
    """The next user message has one result for every `tool_use`, and no other results."""
    waiting: list[str] = []
    caller = ""
    for placed in [*_get_messages(request), ("end", {"role": "end"})]:
        for path, block in _get_blocks(placed, "tool_result"):
            if block.get("tool_use_id") in waiting:
                waiting.remove(block["tool_use_id"])
            else:
                yield f"{path}: unexpected tool_use_id {block.get('tool_use_id')!r}"
        if waiting:
            yield f"{caller}: tool_use without tool_result immediately after: {', '.join(waiting)}"
        caller, waiting = placed[0], [str(block.get("id")) for _, block in _get_blocks(placed, "tool_use")]
        if len(set(waiting)) < len(waiting):
            yield f"{caller}: `tool_use` ids must be unique"


def anthropic_server_pairs(request: JSON) -> Problems:
    """The result of a server tool follows its call. Only the last assistant message may have a call without a
    result, and only tool results may follow this message (handle-tool-calls).
    """
    waiting: dict[str, str] = {}
    for placed in _get_messages(request):
        parts = _get_parts(placed)
        has_text = isinstance(placed[1].get("content"), str) or any(
            p.get("type") != "tool_result" for _, p in parts
        )
        if placed[1].get("role") == "user" and has_text:
            for name, path in waiting.items():
                yield f"{path}: server_tool_use {name!r} without its result"
            waiting = {}
        for path, block in parts:
            if block.get("type") == "server_tool_use":
                waiting[str(block.get("id"))] = path
            elif "tool_use_id" in block and block.get("type") != "tool_result":
                if block["tool_use_id"] not in waiting:
                    yield f"{path}: no server_tool_use {block['tool_use_id']!r} before it"
                waiting.pop(block["tool_use_id"], None)


def anthropic_results_first(request: JSON) -> Problems:
    """In a user message all `tool_result` blocks come first."""
    for placed in _get_messages(request):
        others = False
        for path, block in _get_parts(placed):
            if block.get("type") == "tool_result" and others:
                yield f"{path}: a tool_result after another block"
            others = others or block.get("type") != "tool_result"


def anthropic_ids(request: JSON) -> Problems:
    """A call id matches `^[a-zA-Z0-9_-]+$` ('tool_use.id: String should match pattern')."""
    for placed in _get_messages(request):
        for path, block in _get_blocks(placed, "tool_use", "tool_result"):
            key = "id" if block["type"] == "tool_use" else "tool_use_id"
            if not _CALL_ID.fullmatch(str(block.get(key, ""))):
                yield f"{path}.{key}: {block.get(key)!r}"


def anthropic_call_names(request: JSON) -> Problems:
    """A call in the history has a valid tool name."""
    for placed in _get_messages(request):
        for path, block in _get_blocks(placed, "tool_use"):
            if not _NAME.fullmatch(str(block.get("name", ""))):
                yield f"{path}.name: {block.get('name')!r}"


def anthropic_error_is_text(request: JSON) -> Problems:
    """A failed result is text: 'all content must be type `text` if `is_error` is true'."""
    for placed in _get_messages(request):
        for path, block in _get_blocks(placed, "tool_result"):
            inner = _get_objects(block.get("content"), f"{path}.content")
            if block.get("is_error") and any(item.get("type") != "text" for _, item in inner):
                yield f"{path}: is_error with content that is not text"


def anthropic_tools_defined(request: JSON) -> Problems:
    """Calls need tools: 'Requests which include `tool_use` or `tool_result` blocks must define tools.'"""
    if not request.get("tools") and any(
        _get_blocks(placed, "tool_use", "tool_result") for placed in _get_messages(request)
    ):
        yield "tools: missing, though the messages hold tool blocks"


def anthropic_block_roles(request: JSON) -> Problems:
    """Only assistant messages have thinking and calls. Only user messages have results, images and documents."""
    for message, (path, block) in _get_all_parts(request):
        foreign = _ASSISTANT_ONLY if message.get("role") != "assistant" else _USER_ONLY
        if block.get("type") in foreign:
            yield f"{path}: {block.get('type')} in a message of role {message.get('role')!r}"


def anthropic_signatures(request: JSON) -> Problems:
    """Thinking has a signature: 'Invalid `signature` in `thinking` block'."""
    for _, (path, block) in _get_all_parts(request):
        if block.get("type") == "thinking" and not block.get("signature"):
            yield f"{path}: thinking without a signature"


def anthropic_uncached_blocks(request: JSON) -> Problems:
    """Thinking blocks have no `cache_control`."""
    for _, (path, block) in _get_all_parts(request):
        if block.get("cache_control") and block.get("type") in ("thinking", "redacted_thinking"):
            yield f"{path}: cache_control on {block['type']}"


def anthropic_media(request: JSON) -> Problems:
    """Sources are plain base64 of a known type, or http(s) URLs."""
    for path, node in _get_conversation_objects(request.get("messages"), "messages"):
        source = node.get("source")
        if node.get("type") in ("image", "document") and isinstance(source, dict):
            yield from _anthropic_source(f"{path}.source", str(node["type"]), cast("dict[str, Any]", source))


def _anthropic_source(path: str, kind: str, source: JSON) -> Problems:
    accepted = _ANTHROPIC_IMAGES if kind == "image" else ("application/pdf",)
    if source.get("type") == "base64":
        if source.get("media_type") not in accepted:
            yield f"{path}.media_type: {source.get('media_type')!r}"
        if not _is_base64(source.get("data")):
            yield f"{path}.data: not plain base64"
    if source.get("type") == "url" and not str(source.get("url")).startswith(("http://", "https://")):
        yield f"{path}.url: {str(source.get('url'))[:40]!r}"


def anthropic_at_most_100_images(request: JSON) -> Problems:
    """A request has at most 100 images, the lowest limit of all models."""
    images = [
        path
        for path, node in _get_conversation_objects(request.get("messages"), "messages")
        if node.get("type") == "image"
    ]
    if len(images) > 100:
        yield f"{images[100]}: image number 101 of {len(images)}"


def anthropic_user_citations(request: JSON) -> Problems:
    """A user's text has no citations (version 2026-10-21)."""
    for message, (path, block) in _get_all_parts(request):
        if message.get("role") == "user" and block.get("type") == "text" and block.get("citations"):
            yield f"{path}: citations on a user's text"


def anthropic_closed_schemas(request: JSON) -> Problems:
    """In `output_config.format` and strict tools every object has `additionalProperties: false`."""
    asked = _get_path(request, "output_config", "format", "schema")
    schemas: list[tuple[str, Any]] = [("output_config.format.schema", asked), *_get_strict_schemas(request)]
    for path, schema in schemas:
        for place, node in _get_objects_inside(schema, path):
            if node.get("type") == "object" and node.get("additionalProperties") is not False:
                yield f"{place}: {_STRICT}"


# --- Gemini -----------------------------------------------------------------------------------------

_DATA_FIELDS: Final = (
    *("text", "inline_data", "file_data", "function_call", "function_response"),
    *("executable_code", "code_execution_result", "tool_call", "tool_response"),
)
_GEMINI_MEDIA: Final = re.compile(
    r"image/(png|jpeg|webp|heic|heif)|audio/(wav|x-wav|mp3|mpeg|aiff|aac|ogg|flac)|application/pdf|text/.+"
    r"|video/(mp4|mpeg|mov|quicktime|avi|x-msvideo|x-flv|mpg|webm|wmv|x-ms-wmv|3gpp)"
)
_GEMINI_RESULT_MEDIA: Final = ("image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain")


_GEMINI_FORBIDDEN_PARTS: Final = {
    "user": ("function_call", "thought", "thought_signature"),
    "model": ("function_response", "file_data"),
}
"""Part fields that a content of each role must not have."""


def _get_contents(request: JSON) -> list[Placed]:
    return _get_objects(request.get("contents"), "contents")


def _get_gemini_parts(placed: Placed, *fields: str) -> list[Placed]:
    """Returns the parts of a content, or only the parts with any of `fields`."""
    parts = _get_objects(placed[1].get("parts"), f"{placed[0]}.parts")
    return [pair for pair in parts if not fields or any(pair[1].get(key) is not None for key in fields)]


def gemini_roles(request: JSON) -> Problems:
    """Each content has a valid role: 'Please use a valid role: user, model.'"""
    for path, content in _get_contents(request):
        if content.get("role") not in ("user", "model"):
            yield f"{path}.role: {content.get('role')!r}"


def gemini_has_parts(request: JSON) -> Problems:
    """Each content has parts: 'contents.parts must not be empty'."""
    for placed in _get_contents(request):
        if not _get_gemini_parts(placed):
            yield f"{placed[0]}: no parts"


def gemini_one_data_field(request: JSON) -> Problems:
    """A part has one data field ('required oneof field 'data''). Empty text needs a signature."""
    for placed in _get_contents(request):
        for path, part in _get_gemini_parts(placed):
            keys = [key for key in _DATA_FIELDS if part.get(key) is not None]
            if len(keys) != 1:
                yield f"{path}: expected one kind of data, got {keys}"
            elif part.get("text") == "" and not part.get("thought_signature"):
                yield f"{path}: empty text"


def gemini_part_roles(request: JSON) -> Problems:
    """Only model contents have calls, thoughts and signatures. Only user contents have responses and files."""
    for placed in _get_contents(request):
        for path, part in _get_gemini_parts(placed):
            for key in _GEMINI_FORBIDDEN_PARTS.get(str(placed[1].get("role")), ()):
                if part.get(key):
                    yield f"{path}: {key} in a content of role {placed[1].get('role')!r}"


def gemini_first_content(request: JSON) -> Problems:
    """The first content has no call: 'function call turn comes immediately after a user turn'."""
    for placed in _get_contents(request)[:1]:
        if _get_gemini_parts(placed, "function_call"):
            yield f"{placed[0]}: a function_call in the first content"


def gemini_last_content(request: JSON) -> Problems:
    """The last content has the role user."""
    for path, content in _get_contents(request)[-1:]:
        if content.get("role") != "user":
            yield f"{path}: the last content has role {content.get('role')!r}"


def gemini_pairing(request: JSON) -> Problems:
    """The next user content answers every call of the model, in order, by id and name.

    Consecutive model contents are one turn (recorded traffic).
    """
    calls: list[Placed] = []
    for placed in [*_get_contents(request), ("end", {"role": "end"})]:
        if placed[1].get("role") == "model":
            calls += _get_gemini_parts(placed, "function_call")
            continue
        answers = _get_gemini_parts(placed, "function_response")
        if len(calls) != len(answers):
            place = placed[0] if placed[0] != "end" else calls[0][0]
            yield f"{place}: {len(answers)} function responses for {len(calls)} function calls"
        for (_, call), (path, answer) in zip(calls, answers, strict=False):
            asked, response = call["function_call"], answer["function_response"]
            if (asked.get("id"), asked.get("name")) != (response.get("id"), response.get("name")):
                yield f"{path}: answers {response.get('name')!r}, expected {asked.get('name')!r}"
        calls = []


def gemini_unmixed_responses(request: JSON) -> Problems:
    """A content with function responses has no other parts."""
    for placed in _get_contents(request):
        answers = _get_gemini_parts(placed, "function_response")
        if answers and len(answers) != len(_get_gemini_parts(placed)):
            yield f"{placed[0]}: function responses beside other parts"


def _get_current_turn(request: JSON) -> list[Placed]:
    """Returns the contents after the newest user content with ordinary parts."""
    turn: list[Placed] = []
    for placed in reversed(_get_contents(request)):
        if placed[1].get("role") == "user" and not _get_gemini_parts(placed, "function_response"):
            break
        turn.insert(0, placed)
    return turn


def gemini_signatures(request: JSON) -> Problems:
    """In the current turn the first call of each step is signed: 'missing a `thought_signature`'."""
    first = True
    for placed in _get_current_turn(request):
        if placed[1].get("role") == "user":
            first = True
        for path, part in _get_gemini_parts(placed, "function_call"):
            if first and not part.get("thought_signature"):
                yield f"{path}: the first function_call of its step has no thought_signature"
            first = False


def gemini_names(request: JSON) -> Problems:
    """A function's name begins with a letter or underscore and has at most 63 of `[a-zA-Z0-9_-]`."""
    named = [
        (f"{path}.{key}", str(part[key].get("name")))
        for placed in _get_contents(request)
        for key in ("function_call", "function_response")
        for path, part in _get_gemini_parts(placed, key)
    ]
    for path, name in [*named, *_get_declared_tools(request)]:
        if not _GEMINI_NAME.fullmatch(name):
            yield f"{path}: function name {name!r}"


def gemini_media(request: JSON) -> Problems:
    """Inline data has a media type that the service accepts. Function responses accept fewer types."""
    for placed in _get_contents(request):
        for path, part in _get_gemini_parts(placed, "inline_data"):
            if not _GEMINI_MEDIA.fullmatch(str(part["inline_data"].get("mime_type"))):
                yield f"{path}.inline_data.mime_type: {part['inline_data'].get('mime_type')!r}"
        for path, part in _get_gemini_parts(placed, "function_response"):
            for place, node in _get_objects(
                part["function_response"].get("parts"), f"{path}.function_response.parts"
            ):
                if (
                    "inline_data" in node
                    and _get_path(node, "inline_data", "mime_type") not in _GEMINI_RESULT_MEDIA
                ):
                    yield f"{place}.inline_data.mime_type: {_get_path(node, 'inline_data', 'mime_type')!r}"


def gemini_config(request: JSON) -> Problems:
    """Schemas need JSON output, allowed names need ANY or VALIDATED, and a cache excludes system and tools."""
    config: dict[str, Any] = request.get("config") or {}
    if "response_json_schema" in config and config.get("response_mime_type") != "application/json":
        yield "config: response_json_schema without response_mime_type 'application/json'"
    if "cached_content" in config and any(key in config for key in ("system_instruction", "tools", "tool_config")):
        yield "config: cached_content beside system_instruction, tools or tool_config"
    calling = _get_path(config, "tool_config", "function_calling_config")
    allowed: list[str] = _get_path(calling, "allowed_function_names") or []
    if allowed and _get_path(calling, "mode") not in ("ANY", "VALIDATED"):
        yield "config.tool_config: allowed_function_names without mode ANY or VALIDATED"
    for name in sorted(set(allowed) - {name for _, name in _get_declared_tools(request)}):
        yield f"config.tool_config: {name!r} is not among the tools"


def gemini_system(request: JSON) -> Problems:
    """The system instruction is text and not empty."""
    system = _get_path(request, "config", "system_instruction")
    if system is None:
        return
    parts: object = [{"text": system}] if isinstance(system, str) else system
    if isinstance(system, dict):
        parts = _get_path(cast("object", system), "parts")
    placed = _get_objects(parts, "config.system_instruction")
    for path, part in placed:
        if list(part) != ["text"] or not part["text"]:
            yield f"{path}: expected text"
    if not placed:
        yield "config.system_instruction: no parts"


def gemini_one_schema(request: JSON) -> Problems:
    """`parameters` and `parameters_json_schema` exclude each other."""
    for path, node in _get_objects_inside(_get_path(request, "config", "tools"), "config.tools"):
        if "parameters" in node and "parameters_json_schema" in node:
            yield f"{path}: parameters beside parameters_json_schema"


# --- Ollama -----------------------------------------------------------------------------------------


def ollama_images(request: JSON) -> Problems:
    """Images are plain base64 ('illegal base64 data at input byte N') in user messages."""
    for path, message in _get_messages(request):
        for index, image in enumerate(cast("list[object]", message.get("images") or [])):
            if not _is_base64(image):
                yield f"{path}.images[{index}]: not plain base64"
            if message.get("role") != "user":
                yield f"{path}.images[{index}]: an image in a message of role {message.get('role')!r}"


def ollama_pairing(request: JSON) -> Problems:
    """The tool messages directly after a message with calls answer the calls in order, by `tool_name`."""
    names: list[str] = []
    caller = ""
    for placed in [*_get_messages(request), ("end", {"role": "end"})]:
        path, message = placed
        if message.get("role") == "tool":
            expected = names.pop(0) if names else None
            if expected is None or message.get("tool_name") != expected:
                yield f"{path}: answers {message.get('tool_name')!r}, expected {expected!r}"
            continue
        if names:
            yield f"{caller}: calls without a result right after: {', '.join(names)}"
        caller, names = path, [str(_get_function(call).get("name")) for _, call in _get_chat_calls(placed)]


def ollama_ids(request: JSON) -> Problems:
    """If ids are sent, a result has the id of its call (newer renderers match by id)."""
    ids = {call.get("id") for placed in _get_messages(request) for _, call in _get_chat_calls(placed)}
    for path, message in _get_messages(request):
        if message.get("tool_call_id") is not None and message["tool_call_id"] not in ids:
            yield f"{path}.tool_call_id: {message['tool_call_id']!r} is not the id of a call"


def ollama_tools_are_functions(request: JSON) -> Problems:
    """A tool is a function with a name, although both are optional in the type of the SDK."""
    for path, tool in _get_objects(request.get("tools"), "tools"):
        if not _get_path(tool, "function", "name"):
            yield f"{path}: no function name"


def user_has_content(request: JSON) -> Problems:
    """A user or system message has content, because the SDK removes empty content from messages."""
    for path, message in _get_messages(request):
        if message.get("role") in ("user", "system") and not (message.get("content") or message.get("images")):
            yield f"{path}: neither content nor images"


# --- the rules of each API --------------------------------------------------------------------------

_OPENAI: Final = "openai/openai-openapi, and error texts of the service"
_IMAGES: Final = "https://developers.openai.com/api/docs/guides/images-vision"
_STRUCTURED: Final = "https://developers.openai.com/api/docs/guides/structured-outputs"
_FILES: Final = "https://developers.openai.com/api/docs/guides/file-inputs"
_REASONING: Final = "https://developers.openai.com/api/docs/guides/reasoning"
_DEEPSEEK: Final = "https://api-docs.deepseek.com/api/create-chat-completion"
_DEEPSEEK_THINKING: Final = "https://api-docs.deepseek.com/guides/thinking_mode"
_VLLM: Final = "vllm-project/vllm: vllm/entrypoints/chat_utils.py"
_DASHSCOPE: Final = "https://help.aliyun.com/zh/model-studio/error-code"
_DASHSCOPE_SDK: Final = "dashscope 2.0.2: dashscope/utils/oss_utils.py"
_ANTHROPIC_TOOLS: Final = "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls"
_ANTHROPIC: Final = "https://platform.claude.com/docs/en/api/errors"
_ANTHROPIC_CACHE: Final = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching"
_GEMINI: Final = "https://ai.google.dev/gemini-api/docs/function-calling, and error texts of the service"
_SIGNATURES: Final = "https://ai.google.dev/gemini-api/docs/thought-signatures"
_GEMINI_FILES: Final = "https://ai.google.dev/gemini-api/docs/file-input-methods"
_OLLAMA: Final = "ollama/ollama: api/types.go, server/routes.go"

_CHAT: Final = (
    Rule(at_least_one_message, _OPENAI),
    Rule(no_empty_list, _OPENAI),
    Rule(chat_pairing, _OPENAI),
    Rule(chat_calls_only_by_assistant, _OPENAI),
    Rule(chat_call_names, _OPENAI),
    Rule(chat_arguments, _OPENAI),
    Rule(tool_names, _OPENAI),
    Rule(unique_tools, _OPENAI),
    Rule(at_most_128_tools, _OPENAI),
    Rule(tool_choice_has_tools, _OPENAI),
    Rule(no_empty_text_part, _OPENAI),
    Rule(assistant_has_content, _OPENAI),
    Rule(json_object_mentions_json, _OPENAI),
    Rule(tool_schemas_are_objects, _OPENAI),
    Rule(strict_schemas, _OPENAI),
    Rule(strict_keywords, _STRUCTURED),
)
"""Rules of all APIs with Chat Completions requests."""

RULES: Final[dict[str, tuple[Rule, ...]]] = {
    "openai": (
        *_CHAT,
        Rule(_roles("developer", "system", "user", "assistant", "tool", "function"), _OPENAI),
        Rule(_call_ids(40), _OPENAI),
        Rule(speaker_names, _OPENAI),
        Rule(chat_media_only_in_user, _OPENAI),
        Rule(content_length, _OPENAI),
        Rule(_image_urls(_OPENAI_IMAGES), _IMAGES),
        Rule(openai_audio, _OPENAI),
        Rule(openai_files, _FILES),
    ),
    "openai-responses": (
        Rule(at_least_one_message, _OPENAI),
        Rule(no_empty_list, _OPENAI),
        Rule(responses_pairing, _OPENAI),
        Rule(responses_call_ids, _OPENAI),
        Rule(responses_call_names, _OPENAI),
        Rule(responses_reasoning, _REASONING),
        Rule(responses_paired_ids, _REASONING),
        Rule(responses_stateless_reasoning, _REASONING),
        Rule(responses_part_roles, _OPENAI),
        Rule(responses_no_empty_part, _OPENAI),
        Rule(responses_media, _FILES),
        Rule(tool_names, _OPENAI),
        Rule(unique_tools, _OPENAI),
        Rule(at_most_128_tools, _OPENAI),
        Rule(tool_choice_has_tools, _OPENAI),
        Rule(json_object_mentions_json, _OPENAI),
        Rule(tool_schemas_are_objects, _OPENAI),
        Rule(strict_schemas, _OPENAI),
        Rule(strict_keywords, _STRUCTURED),
    ),
    "anthropic": (
        Rule(at_least_one_message, _ANTHROPIC),
        Rule(no_empty_list, _ANTHROPIC),
        Rule(anthropic_first_user, _ANTHROPIC),
        Rule(anthropic_ends_with_user, _ANTHROPIC),
        Rule(anthropic_alternation, _ANTHROPIC),
        Rule(anthropic_blank_text, _ANTHROPIC),
        Rule(anthropic_pairing, _ANTHROPIC_TOOLS),
        Rule(anthropic_server_pairs, _ANTHROPIC_TOOLS),
        Rule(anthropic_results_first, _ANTHROPIC_TOOLS),
        Rule(anthropic_ids, _ANTHROPIC_TOOLS),
        Rule(anthropic_call_names, _ANTHROPIC_TOOLS),
        Rule(anthropic_error_is_text, _ANTHROPIC_TOOLS),
        Rule(anthropic_tools_defined, _ANTHROPIC_TOOLS),
        Rule(anthropic_block_roles, _ANTHROPIC),
        Rule(
            anthropic_signatures,
            "https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting",
        ),
        Rule(at_most_4_cache_markers, _ANTHROPIC_CACHE),
        Rule(anthropic_uncached_blocks, _ANTHROPIC_CACHE),
        Rule(anthropic_media, "https://platform.claude.com/docs/en/build-with-claude/vision"),
        Rule(anthropic_at_most_100_images, "https://platform.claude.com/docs/en/build-with-claude/vision"),
        Rule(anthropic_user_citations, "https://platform.claude.com/docs/en/api/migration-2026-10-21"),
        Rule(
            anthropic_closed_schemas,
            "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
        ),
        Rule(tool_names, _ANTHROPIC_TOOLS),
        Rule(unique_tools, _ANTHROPIC_TOOLS),
        Rule(tool_choice_has_tools, _ANTHROPIC_TOOLS),
        Rule(tool_schemas_are_objects, _ANTHROPIC_TOOLS),
    ),
    "gemini": (
        Rule(at_least_one_message, _GEMINI),
        Rule(no_empty_list, _GEMINI),
        Rule(gemini_roles, _GEMINI),
        Rule(gemini_has_parts, _GEMINI),
        Rule(gemini_one_data_field, _GEMINI),
        Rule(gemini_part_roles, _GEMINI),
        Rule(gemini_first_content, _GEMINI),
        Rule(gemini_last_content, _GEMINI),
        Rule(gemini_pairing, _GEMINI),
        Rule(gemini_unmixed_responses, "pydantic/pydantic-ai#4210"),
        Rule(gemini_signatures, _SIGNATURES),
        Rule(gemini_names, _GEMINI),
        Rule(gemini_media, _GEMINI_FILES),
        Rule(gemini_config, _GEMINI),
        Rule(gemini_system, _GEMINI),
        Rule(gemini_one_schema, _GEMINI),
        Rule(tool_schemas_are_objects, _GEMINI),
        Rule(unique_tools, _GEMINI),
    ),
    "ollama": (
        Rule(at_least_one_message, _OLLAMA),
        Rule(_roles("system", "user", "assistant", "tool"), _OLLAMA),
        Rule(ollama_images, _OLLAMA),
        Rule(ollama_pairing, "https://docs.ollama.com/capabilities/tool-calling"),
        Rule(ollama_ids, _OLLAMA),
        Rule(assistant_has_content, _OLLAMA),
        Rule(user_has_content, "ollama-python 0.6.3: `_client._copy_messages`"),
        Rule(ollama_tools_are_functions, _OLLAMA),
        Rule(tool_schemas_are_objects, _OLLAMA),
        Rule(unique_tools, _OLLAMA),
    ),
    "dashscope": (
        *_CHAT,
        Rule(_roles("system", "user", "assistant", "tool"), _DASHSCOPE),
        Rule(at_least_one_user_message, _DASHSCOPE),
        Rule(search_is_reserved, _DASHSCOPE),
        Rule(dashscope_one_path, _DASHSCOPE),
        Rule(dashscope_media, _DASHSCOPE_SDK),
        Rule(dashscope_no_local_file_in_text, _DASHSCOPE_SDK),
        Rule(dashscope_frames, _DASHSCOPE),
        Rule(dashscope_result_format, _DASHSCOPE),
        Rule(dashscope_repeated_tools, _DASHSCOPE),
        Rule(at_most_4_cache_markers, "https://www.alibabacloud.com/help/en/model-studio/context-cache"),
    ),
    "dashscope-compatible": (
        *_CHAT,
        Rule(_roles("system", "user", "assistant", "tool"), _DASHSCOPE),
        Rule(at_least_one_user_message, _DASHSCOPE),
        Rule(search_is_reserved, _DASHSCOPE),
        Rule(only_function_tools, _DASHSCOPE),
        Rule(chat_media_only_in_user, _DASHSCOPE),
        Rule(_only_part_types("text", "image_url", "video_url", "video", "input_audio"), _DASHSCOPE),
        Rule(_image_urls(_DASHSCOPE_IMAGES, _DASHSCOPE_SCHEMES), _DASHSCOPE),
        Rule(dashscope_compatible_audio, _DASHSCOPE),
        Rule(dashscope_video_urls, _DASHSCOPE),
        Rule(dashscope_frames, _DASHSCOPE),
        Rule(at_most_4_cache_markers, "https://www.alibabacloud.com/help/en/model-studio/context-cache"),
    ),
    "deepseek": (
        *_CHAT,
        Rule(_roles("system", "user", "assistant", "tool"), _DEEPSEEK),
        Rule(only_function_tools, _DEEPSEEK),
        Rule(chat_media_only_in_user, "https://api-docs.deepseek.com/guides/vision"),
        Rule(_only_part_types("text", "image_url", "file"), "https://api-docs.deepseek.com/guides/vision"),
        Rule(_image_urls(_OPENAI_IMAGES), "https://api-docs.deepseek.com/guides/vision"),
        Rule(deepseek_reasoning, _DEEPSEEK_THINKING),
        Rule(deepseek_strings, _DEEPSEEK),
        Rule(deepseek_tool_choice, _DEEPSEEK_THINKING),
        Rule(deepseek_format, _DEEPSEEK),
        Rule(deepseek_prefix, "https://api-docs.deepseek.com/guides/chat_prefix_completion"),
    ),
    "vllm": (
        *_CHAT,
        Rule(_roles("system", "user", "assistant", "tool"), _VLLM),
        Rule(only_function_tools, _VLLM),
        Rule(one_leading_system, _VLLM),
        Rule(chat_media_only_in_user, _VLLM),
        Rule(_only_part_types("text", "image_url", "audio_url", "input_audio", "video_url", "refusal"), _VLLM),
        Rule(_image_urls((*_OPENAI_IMAGES, *_DASHSCOPE_IMAGES), ("http://", "https://", "file://")), _VLLM),
        Rule(openai_audio, _VLLM),
        Rule(vllm_media_urls, _VLLM),
    ),
}
"""Rules of each API, with their sources."""


def check_order(provider: str, request: Mapping[str, object]) -> list[str]:
    """Returns the problems of a request by the rules of its API, with their places."""
    return [problem for rule in RULES[provider] for problem in rule.check(cast("JSON", request))]
