"""A loopback server that records the requests of the real SDKs, and the changes that each SDK makes to a request.

`send` passes a request to the async client of the SDK; `expected_body` returns the body that must arrive.
All calls stay on 127.0.0.1: the server answers "ok" to every call.
"""

import copy
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from agentkit.testing import LoopbackServer

__all__ = ["WIRE_TABLE", "Captured", "Path", "Rewrite", "expected_body", "send"]

Path: TypeAlias = Literal["text", "multimodal"]
"""Which of DashScope's two native endpoints is called; the others ignore it."""

MODEL: Final = "loopback-model"
KEY: Final = "sk-loopback"
MAX_TOKENS: Final = 16
CALLER_KEYS: Final = frozenset({"model", "max_tokens", "stream"})
"""Keys that the caller or the SDK supplies beside the request."""


@dataclass(slots=True)
class Captured:
    """Recorded requests of a server: path and body of a single call, and the paths of all other requests."""

    path: str = ""
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    other_paths: list[str] = field(default_factory=list[str])

    @property
    def body(self) -> dict[str, Any]:
        """The recorded body without `model`, `max_tokens` and `stream`."""
        return {key: value for key, value in self.raw.items() if key not in CALLER_KEYS}


# --- the server ------------------------------------------------------------------------------------


def _captured(server: LoopbackServer) -> Captured:
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
        # The signature's unions name optional packages (PIL) that type checkers cannot see.
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
    """Upload certificates asked of our server: the SDK ignores `base_address` there and reads this global."""
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

    module = cast("Any", dashscope)  # its classes are typed in part only
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
            if not server.strays:  # otherwise the refusal of the server caused the error
                raise
    return _captured(server)


# --- changes of the SDKs to a request --------------------------------------------------------------

Rewrite: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""One thing an SDK does to a body; its docstring says what."""


def _merge_extra_body(body: dict[str, Any]) -> dict[str, Any]:
    """The keys of `extra_body` are merged at the top level (openai `_base_client`)."""
    fields = {key: value for key, value in body.items() if key != "extra_body"}
    return fields | cast("dict[str, Any]", body.get("extra_body", {}))


def _without(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def _object(value: object) -> dict[str, Any]:
    """A JSON object, empty for null."""
    return cast("dict[str, Any]", value or {})


def _objects(value: object) -> list[dict[str, Any]]:
    """A list of JSON objects, empty for null."""
    return cast("list[dict[str, Any]]", value or [])


def _camel(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _camel_keys(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {_camel(key): value for key, value in mapping.items()}


def _url_safe(text: str) -> str:
    padded = text.replace("+", "-").replace("/", "_").rstrip("=")
    return padded + "=" * (-len(padded) % 4)


def _gemini_bytes(value: Any) -> Any:
    """Bytes fields inside a part are sent in the URL-safe alphabet (`_common.encode_unserializable_types`)."""
    if isinstance(value, list):
        return [_gemini_bytes(item) for item in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    blob = cast("dict[str, Any]", value)
    if "mime_type" in blob and "data" in blob:
        return blob | {"data": _url_safe(blob["data"])}
    return {key: _gemini_bytes(item) for key, item in blob.items()}


def _gemini_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a part become camelCase, the keys inside them stay snake_case (`models._Part_to_mldev`)."""
    sent: dict[str, Any] = {}
    for key, value in part.items():
        if key == "thought_signature":
            sent[_camel(key)] = _url_safe(value)
        elif key == "function_response":
            parts = {"parts": _gemini_bytes(value["parts"])} if "parts" in value else {}
            sent[_camel(key)] = value | parts
        elif value is not None:
            sent[_camel(key)] = _gemini_bytes(value) if key == "inline_data" else value
    return sent


def _gemini_content(content: Mapping[str, Any]) -> dict[str, Any]:
    return _without(content, "parts") | {"parts": [_gemini_part(part) for part in _objects(content.get("parts"))]}


def _gemini_contents(body: dict[str, Any]) -> dict[str, Any]:
    """Parts are renamed and their bytes re-encoded; everything else in `contents` stays."""
    return body | {"contents": [_gemini_content(content) for content in body["contents"]]}


def _gemini_system(body: dict[str, Any]) -> dict[str, Any]:
    """`system_instruction` becomes a Content, with role user if it was text or parts (`t_content`)."""
    system = _object(body.get("config")).get("system_instruction")
    if system is None:
        return body
    if isinstance(system, dict):
        return body | {"systemInstruction": _gemini_content(_object(cast("object", system)))}
    parts = [{"text": system}] if isinstance(system, str) else system
    return body | {"systemInstruction": _gemini_content({"role": "user", "parts": parts})}


def _gemini_tools(body: dict[str, Any]) -> dict[str, Any]:
    """All declarations are gathered in one last tool (`t_tools`); their keys stay snake_case."""
    tools = _objects(_object(body.get("config")).get("tools"))
    declared = [declaration for tool in tools for declaration in _objects(tool.get("function_declarations"))]
    others = [_camel_keys(tool) for tool in tools if "function_declarations" not in tool]
    sent = others + ([{"functionDeclarations": declared}] if declared else [])
    return body | ({"tools": sent} if sent else {})


def _gemini_tool_config(body: dict[str, Any]) -> dict[str, Any]:
    """`tool_config` moves out of `config`, camelCase throughout (`models._ToolConfig_to_mldev`)."""
    tool_config = _object(body.get("config")).get("tool_config")
    if tool_config is None:
        return body
    inner = {key: _camel_keys(_object(value)) for key, value in _object(tool_config).items()}
    return body | {"toolConfig": _camel_keys(inner)}


_GEMINI_BESIDE: Final = ("safety_settings", "labels", "cached_content", "service_tier", "store")
_GEMINI_CLIENT_ONLY: Final = ("automatic_function_calling", "automatic_continuation", "http_options")


def _gemini_config(body: dict[str, Any]) -> dict[str, Any]:
    """The remaining `config` becomes `generationConfig`, even if empty; client options are not sent."""
    config = _object(body.get("config"))
    beside = {_camel(key): config[key] for key in _GEMINI_BESIDE if key in config}
    own = _without(config, "system_instruction", "tools", "tool_config", *_GEMINI_BESIDE, *_GEMINI_CLIENT_ONLY)
    sent = {"generationConfig": _camel_keys(own)} if config else {}
    return _without(body, "config") | beside | sent


_OLLAMA_MESSAGE: Final = ("role", "content", "thinking", "images", "tool_name", "tool_calls")
_OLLAMA_PARAMETERS: Final = ("type", "$defs", "items", "required", "properties")
_OLLAMA_PROPERTY: Final = ("type", "items", "description", "enum")


def _only(mapping: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: mapping[key] for key in keys if mapping.get(key) is not None}


def _ollama_messages(body: dict[str, Any]) -> dict[str, Any]:
    """A message's falsy values and unknown keys vanish, `tool_call_id` too (`_client._copy_messages`)."""
    sent = [
        {key: value for key, value in _only(message, _OLLAMA_MESSAGE).items() if value}
        for message in body["messages"]
    ]
    return body | {"messages": sent}


def _ollama_calls(body: dict[str, Any]) -> dict[str, Any]:
    """Of a tool call only name and arguments stay: `id`, `type` and `index` vanish (`Message.ToolCall`)."""
    sent: list[dict[str, Any]] = []
    for message in body["messages"]:
        calls = [
            {"function": _only(call["function"], ("name", "arguments"))}
            for call in _objects(message.get("tool_calls"))
        ]
        sent.append(message | ({"tool_calls": calls} if calls else {}))
    return body | {"messages": sent}


def _ollama_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = _only(_object(tool.get("function")), ("name", "description", "parameters"))
    if "parameters" in function:
        parameters = {"type": "object"} | _only(function["parameters"], _OLLAMA_PARAMETERS)
        if "properties" in parameters:
            properties = _object(parameters["properties"]).items()
            parameters["properties"] = {
                name: _only(_object(value), _OLLAMA_PROPERTY) for name, value in properties
            }
        function["parameters"] = parameters
    return {"type": tool.get("type", "function"), "function": function}


def _ollama_tools(body: dict[str, Any]) -> dict[str, Any]:
    """`tools` is always sent; most of a nested schema is lost (`Tool.Function.Parameters`)."""
    return body | {"tools": [_ollama_tool(tool) for tool in _objects(body.get("tools"))]}


def _dashscope_split(body: dict[str, Any]) -> dict[str, Any]:
    """Messages are sent in `input`, all other arguments in `parameters` (`api_request_data`)."""
    return {"input": {"messages": body["messages"]}, "parameters": _without(body, "messages")}


WIRE_TABLE: Final[dict[str, tuple[Rewrite, ...]]] = {
    "openai": (_merge_extra_body,),
    "openai-responses": (_merge_extra_body,),
    "anthropic": (_merge_extra_body,),
    "gemini": (_gemini_contents, _gemini_system, _gemini_tools, _gemini_tool_config, _gemini_config),
    "ollama": (_ollama_messages, _ollama_calls, _ollama_tools),
    "dashscope": (_dashscope_split,),
    "dashscope-compatible": (_merge_extra_body,),
    "deepseek": (_merge_extra_body,),
    "vllm": (_merge_extra_body,),
}
"""What each SDK rewrites or loses between the call and the wire, in the order it is applied here."""


def expected_body(provider: str, request: Mapping[str, object]) -> dict[str, Any]:
    """Returns the body that must be sent for `request`, without `model`, `max_tokens` and `stream`."""
    body = copy.deepcopy(dict(request))
    for rewrite in WIRE_TABLE[provider]:
        body = rewrite(body)
    return body
