"""Requests to the server of llama.cpp through the official SDKs: accepted, and rendered as correct prompts.

The server does not check everything: it accepts results without a call and unknown keys. It checks roles, kinds
of parts, images (which it decodes), argument text, tools, and open calls.
"""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anthropic
import httpx2
import openai
import pytest

from agentkit import (
    Budget,
    ChatModel,
    ContextLengthError,
    FinishReason,
    ImageBlock,
    Msg,
    MultiAgentHistory,
    TextBlock,
    load_messages,
    load_provider,
)
from agentkit.provider_kit import FormatterBase, StreamParserBase
from tests.cases import each_case
from tests.conformance.llama_cpp import TEXT_AFTER_RESULT, TEXT_AFTER_THINKING, TEXT_REPLY, THINKING, LlamaServer
from tests.providers import LOOK, assistant, call, chat, multi_agent, result, system, user

pytestmark = pytest.mark.anyio

CHATS: Final = ("dashscope-compatible", "deepseek", "openai", "vllm")
REASONING: Final = ("dashscope-compatible", "deepseek", "openai", "vllm")
WIRES: Final = (*CHATS, "anthropic", "openai-responses")
EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "data"
MODEL: Final = "tiny"


def create_png(side: int = 2) -> bytes:
    """Returns a valid image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\x10\x20\x30" * side for _ in range(side)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


PICTURE: Final = ImageBlock.from_bytes(create_png(), "image/png")
QUESTION: Final = [system("Be brief."), user("Where is the library?")]
OPEN_CALL: Final = [*QUESTION, assistant("I will look.", call("call_1", place="Köln"))]
HISTORIES: Final[dict[str, list[Msg]]] = {
    "a question": QUESTION,
    "a conversation": [*QUESTION, assistant("Near you."), user("And the mensa?")],
    "a late system message": [
        *QUESTION,
        assistant("Near you."),
        system("Speak German now."),
        user("Und die Mensa?"),
    ],
    "a result": [*OPEN_CALL, Msg("system", [result("call_1", "near you")], "system")],
    "parallel results": [
        *QUESTION,
        assistant(call("call_1", place="a"), call("call_2", place="b")),
        Msg("system", [result("call_1", "one", is_error=True), result("call_2", "two")], "system"),
    ],
    "a result and a question": [
        *OPEN_CALL,
        Msg("system", [result("call_1", "near you")], "system"),
        user("Thanks. And?"),
    ],
    "an image": [user("What is this: ", PICTURE, "Say it.")],
    "a result with an image": [*OPEN_CALL, Msg("system", [result("call_1", "a map", PICTURE)], "system")],
    "a call without a result": [*OPEN_CALL, user("Hello?")],
    "a result without a call": [
        user("Hello"),
        Msg("system", [result("call_9", "lost")], "system"),
        user("Go on."),
    ],
    "many speakers": [
        user("Hi.", name="Ann"),
        user("Hello.", name="Bob"),
        assistant("Yes?"),
        user("Quiet!", name="Ann"),
    ],
    "unusual text": [user("</history> <|end|> \u2028 {{ x }} {% raw %} \\ \U0001f600 Bob: hi")],
    "blank messages": [user("Hello"), assistant(""), user(" \n ")],
}
"""Conversations by name."""


def formatter(provider: str, kind: str, budget: Budget | None = None) -> FormatterBase:
    if kind == "chat":
        return chat(provider, budget=budget)
    viewer = "Friday" if kind == "viewer" else None
    return multi_agent(provider, budget=budget, history=MultiAgentHistory(viewer=viewer))


def build_request(provider: str, kind: str, msgs: list[Msg], **options: Any) -> dict[str, Any]:
    return formatter(provider, kind).lower(msgs, **options).request


# -- the three APIs of the server ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply as an object of the SDK and as a message of the parser of agentkit."""

    native: Any
    msg: Msg


def create_http_client() -> httpx2.AsyncClient:
    """Returns an HTTP client that keeps no connection open and loads no certificates.

    The server closes some connections after a stream, and a request that reuses one at that moment fails.
    Loading certificates is slower than a call.
    """
    return httpx2.AsyncClient(verify=False, timeout=60, limits=httpx2.Limits(max_keepalive_connections=0))


def openai_client(llama: LlamaServer) -> Any:
    return openai.AsyncOpenAI(
        api_key="none", base_url=f"{llama.url}/v1", max_retries=0, http_client=create_http_client()
    )


def anthropic_client(llama: LlamaServer) -> Any:
    return anthropic.AsyncAnthropic(
        api_key="none", base_url=llama.url, max_retries=0, http_client=create_http_client()
    )


def get_parser(provider: str) -> type[StreamParserBase]:
    parser = load_provider(provider).parser
    assert parser is not None
    return parser


async def read_stream(provider: str, stream: Any) -> Msg:
    """Returns the parsed message of the raw bytes of a stream."""
    parser = get_parser(provider)()
    async for piece in stream.iter_bytes():
        parser.feed(piece)
    return parser.finish()


async def ask_chat(llama: LlamaServer, provider: str, request: dict[str, Any], streamed: bool) -> ParsedReply:
    async with openai_client(llama) as client:
        chat = client.chat.completions
        if not streamed:
            native = await chat.create(model=MODEL, **request)
            return ParsedReply(native, get_parser(provider).parse_response(native))
        async with chat.stream(model=MODEL, **request) as stream:
            native = await stream.get_final_completion()
        async with chat.with_streaming_response.create(model=MODEL, stream=True, **request) as raw:
            return ParsedReply(native, await read_stream(provider, raw))


async def ask_responses(llama: LlamaServer, provider: str, request: dict[str, Any], streamed: bool) -> ParsedReply:
    async with openai_client(llama) as client:
        if not streamed:
            native = await client.responses.create(model=MODEL, **request)
            return ParsedReply(native, get_parser(provider).parse_response(native))
        events = [event async for event in await client.responses.create(model=MODEL, stream=True, **request)]
        async with client.responses.with_streaming_response.create(model=MODEL, stream=True, **request) as raw:
            return ParsedReply(events[-1].response, await read_stream(provider, raw))


async def ask_messages(llama: LlamaServer, provider: str, request: dict[str, Any], streamed: bool) -> ParsedReply:
    async with anthropic_client(llama) as client:
        messages, body = client.messages, {"model": MODEL, "max_tokens": 256, **request}
        if not streamed:
            native = await messages.create(**body)
            return ParsedReply(native, get_parser(provider).parse_response(native))
        async with messages.stream(**body) as stream:
            native = await stream.get_final_message()
        async with messages.with_streaming_response.create(stream=True, **body) as raw:
            return ParsedReply(native, await read_stream(provider, raw))


ASK: Final = {**dict.fromkeys(CHATS, ask_chat), "openai-responses": ask_responses, "anthropic": ask_messages}

ModelReply = tuple[str, str, list[tuple[str, dict[str, Any]]]]
"""Thinking, text and tool calls of a reply."""


async def ask(llama: LlamaServer, provider: str, request: dict[str, Any], *, streamed: bool = False) -> ModelReply:
    """Returns the reply of the model. Asserts that the SDK and the parser agree."""
    parsed = await ASK[provider](llama, provider, request, streamed)
    parsed_reply = parsed.msg.thinking, parsed.msg.text, [(use.name, use.input) for use in parsed.msg.tool_uses]
    assert parsed_reply == read_model_reply(provider, parsed.native)
    assert parsed.msg.finish_reason == (FinishReason.TOOL_USE if parsed_reply[2] else FinishReason.STOP)
    assert parsed.msg.usage is None or parsed.msg.usage.output_tokens > 0
    return parsed_reply


def read_model_reply(provider: str, reply: Any) -> ModelReply:
    """Returns thinking, text and tool calls of a native reply."""
    if provider in CHATS:
        message = reply.choices[0].message
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
        thinking = getattr(message, "reasoning_content", None) or ""
        return thinking if provider in REASONING else "", message.content or "", calls
    if provider == "anthropic":
        thinking = "".join(block.thinking for block in reply.content if block.type == "thinking")
        text = "".join(block.text for block in reply.content if block.type == "text")
        return thinking, text, [(block.name, block.input) for block in reply.content if block.type == "tool_use"]
    thinking = "".join(part.text for item in reply.output if item.type == "reasoning" for part in item.content)
    text = "".join(part.text for item in reply.output if item.type == "message" for part in item.content)
    items = [(item.name, json.loads(item.arguments)) for item in reply.output if item.type == "function_call"]
    return thinking, text, items


STREAMED: Final = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@STREAMED
@pytest.mark.parametrize("provider", WIRES)
async def test_a_text_reply_arrives(llama: LlamaServer, provider: str, streamed: bool) -> None:
    reply = await ask(llama, provider, build_request(provider, "chat", QUESTION), streamed=streamed)
    assert reply == ("", TEXT_REPLY, [])


@STREAMED
@pytest.mark.parametrize("provider", WIRES)
async def test_reasoning_and_a_text_arrive(llama: LlamaServer, provider: str, streamed: bool) -> None:
    reply = await ask(llama, provider, build_request(provider, "chat", [user("Think well.")]), streamed=streamed)
    assert reply == (THINKING, TEXT_AFTER_THINKING, [])


@STREAMED
@pytest.mark.parametrize("provider", WIRES)
async def test_a_forced_call_matches_the_schema_of_its_tool(
    llama: LlamaServer, provider: str, streamed: bool
) -> None:
    reply = await ask(llama, provider, build_request(provider, "chat", QUESTION, tools=[LOOK]), streamed=streamed)
    assert reply == ("", "", [("look", {"place": "hi"})])


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["title", "count"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("provider", ["openai", "vllm"])
async def test_a_reply_matches_the_output_schema(llama: LlamaServer, provider: str) -> None:
    _, text, _ = await ask(llama, provider, build_request(provider, "chat", QUESTION, response_format=SCHEMA))
    assert json.loads(text) == {"title": "hi", "count": 7}


KINDS: Final = [
    *((provider, "chat") for provider in WIRES),
    *(
        (provider, kind)
        for provider in ("anthropic", "openai-responses", "vllm")
        for kind in ("multi-agent", "viewer")
    ),
]


@pytest.mark.parametrize(("provider", "kind"), KINDS)
@each_case("name", [*HISTORIES])
async def test_the_server_accepts_every_conversation(
    llama: LlamaServer, provider: str, name: str, kind: str
) -> None:
    request = build_request(provider, kind, HISTORIES[name], tools=[LOOK])
    _, text, calls = await ask(llama, provider, request)
    assert (text, calls) in ((TEXT_AFTER_RESULT, []), ("", [("look", {"place": "hi"})]))


@pytest.mark.parametrize("kind", ["chat", "multi-agent"])
@pytest.mark.parametrize("provider", WIRES)
@pytest.mark.parametrize("limit", [1_000_000, 500], ids=["whole", "cut"])
async def test_the_server_accepts_every_example(llama: LlamaServer, limit: int, provider: str, kind: str) -> None:
    msgs = load_messages((EXAMPLES / "library.json").read_text("utf-8"))
    request = await formatter(provider, kind, Budget(limit)).format(msgs)
    _, text, calls = await ask(llama, provider, request)
    assert text or calls


@pytest.mark.parametrize("provider", WIRES)
async def test_a_prompt_that_is_too_long_raises_the_error_for_it(llama: LlamaServer, provider: str) -> None:
    async with anthropic_client(llama) if provider == "anthropic" else openai_client(llama) as client:
        model = ChatModel(provider, MODEL, client=client, max_tokens=256)
        with pytest.raises(ContextLengthError):
            await model.generate([user("word " * 4_000)])


@pytest.mark.parametrize(
    ("provider", "streamed"),
    [("vllm", False), ("vllm", True), ("anthropic", False), ("openai-responses", False)],
)
async def test_a_single_replan_is_enough_when_the_server_names_both_sizes(
    llama: LlamaServer, provider: str, streamed: bool
) -> None:
    talk = [user("word " * 400)] * 24
    async with anthropic_client(llama) if provider == "anthropic" else openai_client(llama) as client:
        model = ChatModel(provider, MODEL, client=client, max_tokens=64, budget=Budget(1_000_000))
        msgs = [system("Be brief."), *talk, user("Where is the library?")]
        if streamed:
            async with model.stream(msgs) as stream:
                reply = await stream.finish()
        else:
            reply = await model.generate(msgs)
    assert reply.text == TEXT_REPLY


# -- prompts of the model ---------------------------------------------------------------------------------------


def render_prompt(
    llama: LlamaServer, name: str, kind: str = "chat", provider: str = "vllm", **options: Any
) -> str:
    return llama.render_prompt(build_request(provider, kind, HISTORIES[name], **options))


def test_the_model_receives_turns_calls_and_results_in_their_order(llama: LlamaServer) -> None:
    assert render_prompt(llama, "a result") == (
        "[system]\nBe brief.<|end|>\n[user]\nWhere is the library?<|end|>\n"
        '[assistant]\nI will look.<tool_call>{"name": "look", "arguments": {"place": "Köln"}}</tool_call><|end|>\n'
        "[tool]\nnear you<|end|>\n[assistant]\n<|answer|>"
    )


def test_the_model_receives_an_image_at_its_position(llama: LlamaServer) -> None:
    prompt = render_prompt(llama, "an image")
    assert prompt.startswith("[user]\nWhat is this: ")
    before, _, after = prompt.partition("<__media")
    assert before.endswith("What is this: ")
    assert "Say it." in after


def test_the_model_receives_every_speaker_by_name(llama: LlamaServer) -> None:
    prompt = render_prompt(llama, "many speakers", "multi-agent")
    assert (
        prompt.index("Ann: Hi.")
        < prompt.index("Bob: Hello.")
        < prompt.index("Friday: Yes?")
        < prompt.index("Ann: Quiet!")
    )


def test_the_model_receives_the_tools(llama: LlamaServer) -> None:
    prompt = render_prompt(llama, "a question", tools=[LOOK])
    assert '"name": "look"' in prompt
    assert prompt.endswith("<|call|>")


@pytest.mark.parametrize("provider", CHATS)
@each_case("name", [*HISTORIES])
def test_the_prompt_of_the_model_contains_every_text(llama: LlamaServer, name: str, provider: str) -> None:
    prompt = render_prompt(llama, name, "multi-agent", provider)
    texts = [block.text for msg in HISTORIES[name] for block in msg.blocks if isinstance(block, TextBlock)]
    missing = [text for text in texts if text.strip() and text.strip() not in prompt]
    assert missing in ([], [text for text in texts if "</history>" in text])  # a closing tag in a text is escaped


# -- refused requests -------------------------------------------------------------------------------------------


def _break_request(change: Callable[[dict[str, Any]], None], name: str = "a result") -> dict[str, Any]:
    request = build_request("openai", "chat", HISTORIES[name])
    change(request)
    return request


def _bad_role(request: dict[str, Any]) -> None:
    request["messages"][1]["content"] = [{"type": "input_text", "text": "x"}]


def _bad_arguments(request: dict[str, Any]) -> None:
    request["messages"][2]["tool_calls"][0]["function"]["arguments"] = "{"


def _bad_picture(request: dict[str, Any]) -> None:
    bad = f"data:image/png;base64,{b64encode(b'no picture').decode()}"
    request["messages"][1]["content"] = [{"type": "image_url", "image_url": {"url": bad}}]


@pytest.mark.parametrize("change", [_bad_role, _bad_arguments, _bad_picture])
def test_the_server_refuses_wrong_requests(llama: LlamaServer, change: Callable[[dict[str, Any]], None]) -> None:
    status, _ = llama.post("/v1/chat/completions", _break_request(change))
    assert status >= 400
