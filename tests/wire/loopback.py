"""A loopback server that records the requests of the real SDKs, and the changes that each SDK makes to a request.

`send` passes a request to the async client of the SDK; `get_expected_body` returns the body that must arrive.
All calls stay on 127.0.0.1: the server answers "ok" to every call.
"""

import copy
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from agentkit.testing import LoopbackServer

__all__ = ["SDK_CHANGES", "Captured", "Path", "Rewrite", "get_expected_body", "send"]

Path: TypeAlias = Literal["text", "multimodal"]
"""Native endpoint of DashScope. Senders of other providers ignore it."""

MODEL: Final = "loopback-model"
KEY: Final = "sk-loopback"
MAX_TOKENS: Final = 16
CALLER_KEYS: Final = frozenset({"model", "max_tokens", "stream"})
"""Keys of a body that are not part of the request."""


@dataclass(slots=True)
class Captured:
    """Recorded requests of a server: path and body of a single call, and the paths of all other requests."""

    path: str = ""
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    other_paths: list[str] = field(default_factory=list[str])

    @property
    def body(self) -> dict[str, Any]:
        """Recorded body without `model`, `max_tokens` and `stream`."""
        return {key: value for key, value in self.raw.items() if key not in CALLER_KEYS}


# --- the server ------------------------------------------------------------------------------------


def _get_captured(server: LoopbackServer) -> Captured:
    """Returns the recorded request of a call."""
    paths = [request.path for request in server.requests]
    if not paths:
        return Captured(other_paths=server.strays)
    return Captured(paths[0], server.requests[0].body, [*paths[1:], *server.strays])


# --- the clients -----------------------------------------------------------------------------------


async def _send_chat_completions(url: str, request: dict[str, Any], path: Path) -> None:
    import openai

    async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0) as client:
        await client.chat.completions.create(model=MODEL, **request)


async def _send_responses(url: str, request: dict[str, Any], path: Path) -> None:
    import openai

    async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0) as client:
        await client.responses.create(model=MODEL, **request)


async def _send_anthropic(url: str, request: dict[str, Any], path: Path) -> None:
    import anthropic

    async with anthropic.AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0) as client:
        await client.messages.create(model=MODEL, max_tokens=MAX_TOKENS, **request)


async def _send_gemini(url: str, request: dict[str, Any], path: Path) -> None:
    import httpx2
    from google import genai
    from google.genai import types

    # With an explicit transport the SDK does not use aiohttp, whose session subclass raises a DeprecationWarning.
    transport = httpx2.AsyncHTTPTransport()
    options = types.HttpOptions(base_url=url, api_version="v1beta", async_client_args={"transport": transport})
    client = genai.Client(api_key=KEY, http_options=options)
    try:
        # The types of the method refer to optional packages (PIL) that are not installed.
        call = cast("Callable[..., Awaitable[object]]", client.aio.models.generate_content)  # pyright: ignore[reportUnknownMemberType]
        await call(model=MODEL, **request)
    finally:
        await client.aio.aclose()
        client.close()


async def _send_ollama(url: str, request: dict[str, Any], path: Path) -> None:
    import ollama

    client = ollama.AsyncClient(host=url)
    chat = cast("Callable[..., Awaitable[object]]", client.chat)  # pyright: ignore[reportUnknownMemberType]
    async with client:
        await chat(model=MODEL, **request)


@contextmanager
def _upload_endpoint(url: str) -> Generator[None, None, None]:
    """Makes the SDK of DashScope request upload certificates from `url`.

    The SDK reads the URL of uploads from a global constant, not from `base_address`.
    """
    import dashscope

    before = dashscope.base_http_api_url
    dashscope.base_http_api_url = url
    try:
        yield
    finally:
        dashscope.base_http_api_url = before


async def _send_dashscope(url: str, request: dict[str, Any], path: Path) -> None:
    import aiohttp
    import dashscope

    module = cast("Any", dashscope)  # its classes have incomplete types
    endpoint = module.AioGeneration if path == "text" else module.AioMultiModalConversation
    # A separate session: the shared session of the SDK is never closed while its event loop runs.
    async with aiohttp.ClientSession() as session:
        with _upload_endpoint(f"{url}/api/v1"):
            await endpoint.call(model=MODEL, api_key=KEY, base_address=f"{url}/api/v1", session=session, **request)


_SENDERS: Final[dict[str, Callable[[str, dict[str, Any], Path], Awaitable[None]]]] = {
    "openai": _send_chat_completions,
    "openai-responses": _send_responses,
    "anthropic": _send_anthropic,
    "gemini": _send_gemini,
    "ollama": _send_ollama,
    "dashscope": _send_dashscope,
    "dashscope-compatible": _send_chat_completions,
    "deepseek": _send_chat_completions,
    "vllm": _send_chat_completions,
}


async def send(provider: str, request: Mapping[str, object], *, path: Path = "multimodal") -> Captured:
    """Sends `request` through the real async client of the provider to a loopback server. Returns the request.

    Runs on asyncio (the only event loop that DashScope's SDK supports). `path` selects DashScope's endpoint.
    """
    with LoopbackServer("ok", validate=False) as server:
        try:
            await _SENDERS[provider](server.url(), dict(request), path)
        except Exception:
            if not server.strays:  # otherwise a refused request caused the error
                raise
    return _get_captured(server)


# --- changes of the SDKs to a request --------------------------------------------------------------

Rewrite: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Change that an SDK makes to a body. The docstring of the function describes it."""


def _merge_extra_body(body: dict[str, Any]) -> dict[str, Any]:
    """The SDK merges the keys of `extra_body` into the body (openai `_base_client`)."""
    fields = {key: value for key, value in body.items() if key != "extra_body"}
    return fields | cast("dict[str, Any]", body.get("extra_body", {}))


def _remove_keys(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def _as_object(value: object) -> dict[str, Any]:
    """Returns a JSON object, empty for null."""
    return cast("dict[str, Any]", value or {})


def _as_objects(value: object) -> list[dict[str, Any]]:
    """Returns a list of JSON objects, empty for null."""
    return cast("list[dict[str, Any]]", value or [])


def _as_camel_case(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _rename_keys(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {_as_camel_case(key): value for key, value in mapping.items()}


def _as_url_safe(text: str) -> str:
    padded = text.replace("+", "-").replace("/", "_").rstrip("=")
    return padded + "=" * (-len(padded) % 4)


def _encode_gemini_bytes(value: Any) -> Any:
    """The SDK sends bytes inside a part in the URL-safe alphabet (`_common.encode_unserializable_types`)."""
    if isinstance(value, list):
        return [_encode_gemini_bytes(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    blob = cast("dict[str, Any]", value)
    if "mime_type" in blob and "data" in blob:
        return blob | {"data": _as_url_safe(blob["data"])}
    return {key: _encode_gemini_bytes(item) for key, item in blob.items()}


def _rename_gemini_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a part become camelCase. Keys inside their values stay snake_case (`models._Part_to_mldev`)."""
    sent: dict[str, Any] = {}
    for key, value in part.items():
        if key == "thought_signature":
            sent[_as_camel_case(key)] = _as_url_safe(value)
        elif key == "function_response":
            parts = {"parts": _encode_gemini_bytes(value["parts"])} if "parts" in value else {}
            sent[_as_camel_case(key)] = value | parts
        elif value is not None:
            sent[_as_camel_case(key)] = _encode_gemini_bytes(value) if key == "inline_data" else value
    return sent


def _rename_gemini_content(content: Mapping[str, Any]) -> dict[str, Any]:
    return _remove_keys(content, "parts") | {
        "parts": [_rename_gemini_part(part) for part in _as_objects(content.get("parts"))]
    }


def _rename_gemini_contents(body: dict[str, Any]) -> dict[str, Any]:
    """The SDK renames the keys of parts and encodes their bytes again. All else in `contents` stays unchanged."""
    return body | {"contents": [_rename_gemini_content(content) for content in body["contents"]]}


def _move_gemini_system(body: dict[str, Any]) -> dict[str, Any]:
    """`system_instruction` becomes a Content, with role user if it was text or parts (`t_content`)."""
    system = _as_object(body.get("config")).get("system_instruction")
    if system is None:
        return body
    if isinstance(system, dict):
        return body | {"systemInstruction": _rename_gemini_content(_as_object(cast("object", system)))}
    parts = [{"text": system}] if isinstance(system, str) else system
    return body | {"systemInstruction": _rename_gemini_content({"role": "user", "parts": parts})}


def _merge_gemini_tools(body: dict[str, Any]) -> dict[str, Any]:
    """The SDK moves all declarations to one tool at the end (`t_tools`). Their keys stay snake_case."""
    tools = _as_objects(_as_object(body.get("config")).get("tools"))
    declared = [declaration for tool in tools for declaration in _as_objects(tool.get("function_declarations"))]
    others = [_rename_keys(tool) for tool in tools if "function_declarations" not in tool]
    sent = others + ([{"functionDeclarations": declared}] if declared else [])
    return body | ({"tools": sent} if sent else {})


def _move_gemini_tool_config(body: dict[str, Any]) -> dict[str, Any]:
    """`tool_config` moves from `config` to the body, with camelCase keys (`models._ToolConfig_to_mldev`)."""
    tool_config = _as_object(body.get("config")).get("tool_config")
    if tool_config is None:
        return body
    inner = {key: _rename_keys(_as_object(value)) for key, value in _as_object(tool_config).items()}
    return body | {"toolConfig": _rename_keys(inner)}


_GEMINI_TOP_LEVEL: Final = ("safety_settings", "labels", "cached_content", "service_tier", "store")
_GEMINI_CLIENT_ONLY: Final = ("automatic_function_calling", "automatic_continuation", "http_options")


def _rename_gemini_config(body: dict[str, Any]) -> dict[str, Any]:
    """The remaining `config` becomes `generationConfig`, even if empty; client options are not sent."""
    config = _as_object(body.get("config"))
    top_level = {_as_camel_case(key): config[key] for key in _GEMINI_TOP_LEVEL if key in config}
    remaining = _remove_keys(
        config, "system_instruction", "tools", "tool_config", *_GEMINI_TOP_LEVEL, *_GEMINI_CLIENT_ONLY
    )
    sent = {"generationConfig": _rename_keys(remaining)} if config else {}
    return _remove_keys(body, "config") | top_level | sent


_OLLAMA_MESSAGE: Final = ("role", "content", "thinking", "images", "tool_name", "tool_calls")
_OLLAMA_PARAMETERS: Final = ("type", "$defs", "items", "required", "properties")
_OLLAMA_PROPERTY: Final = ("type", "items", "description", "enum")


def _select_keys(mapping: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: mapping[key] for key in keys if mapping.get(key) is not None}


def _filter_ollama_messages(body: dict[str, Any]) -> dict[str, Any]:
    """The SDK removes empty values and keys such as `tool_call_id` from messages (`_client._copy_messages`)."""
    sent = [
        {key: value for key, value in _select_keys(message, _OLLAMA_MESSAGE).items() if value}
        for message in body["messages"]
    ]
    return body | {"messages": sent}


def _filter_ollama_calls(body: dict[str, Any]) -> dict[str, Any]:
    """The SDK removes `id`, `type` and `index` of a tool call (`Message.ToolCall`)."""
    sent: list[dict[str, Any]] = []
    for message in body["messages"]:
        calls = [
            {"function": _select_keys(call["function"], ("name", "arguments"))}
            for call in _as_objects(message.get("tool_calls"))
        ]
        sent.append(message | ({"tool_calls": calls} if calls else {}))
    return body | {"messages": sent}


def _filter_ollama_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = _select_keys(_as_object(tool.get("function")), ("name", "description", "parameters"))
    if "parameters" in function:
        parameters = {"type": "object"} | _select_keys(function["parameters"], _OLLAMA_PARAMETERS)
        if "properties" in parameters:
            properties = _as_object(parameters["properties"]).items()
            parameters["properties"] = {
                name: _select_keys(_as_object(value), _OLLAMA_PROPERTY) for name, value in properties
            }
        function["parameters"] = parameters
    return {"type": tool.get("type", "function"), "function": function}


def _filter_ollama_tools(body: dict[str, Any]) -> dict[str, Any]:
    """The SDK always sends `tools`, and removes most keys of nested schemas (`Tool.Function.Parameters`)."""
    return body | {"tools": [_filter_ollama_tool(tool) for tool in _as_objects(body.get("tools"))]}


def _split_dashscope_body(body: dict[str, Any]) -> dict[str, Any]:
    """Messages are sent in `input`, all other arguments in `parameters` (`api_request_data`)."""
    return {"input": {"messages": body["messages"]}, "parameters": _remove_keys(body, "messages")}


SDK_CHANGES: Final[dict[str, tuple[Rewrite, ...]]] = {
    "openai": (_merge_extra_body,),
    "openai-responses": (_merge_extra_body,),
    "anthropic": (_merge_extra_body,),
    "gemini": (
        _rename_gemini_contents,
        _move_gemini_system,
        _merge_gemini_tools,
        _move_gemini_tool_config,
        _rename_gemini_config,
    ),
    "ollama": (_filter_ollama_messages, _filter_ollama_calls, _filter_ollama_tools),
    "dashscope": (_split_dashscope_body,),
    "dashscope-compatible": (_merge_extra_body,),
    "deepseek": (_merge_extra_body,),
    "vllm": (_merge_extra_body,),
}
"""Changes that the SDK of each provider makes to a request, in the order of their application."""


def get_expected_body(provider: str, request: Mapping[str, object]) -> dict[str, Any]:
    """Returns the body that must be sent for `request`, without `model`, `max_tokens` and `stream`."""
    body = copy.deepcopy(dict(request))
    for rewrite in SDK_CHANGES[provider]:
        body = rewrite(body)
    return body
