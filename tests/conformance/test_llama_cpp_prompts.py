"""The provider `openai-completions` and the server of llama.cpp: equal prompts, and equal replies of both APIs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from agentkit import ChatModel, FinishReason, ModelError, Msg, Tool
from agentkit.chat_templates import ChatTemplate
from agentkit.chat_templates.template_messages import convert_messages, convert_tools
from agentkit_openai import OpenAIChatStreamParser
from tests.cases import each_case
from tests.conformance.llama_cpp import TEXT_AFTER_RESULT, TEXT_AFTER_THINKING, TEXT_REPLY, LlamaServer, run_server
from tests.conformance.test_llama_cpp import HISTORIES, OPEN_CALL, QUESTION
from tests.providers import LOOK, assistant, result, user

pytestmark = pytest.mark.anyio

TEMPLATES: Final = Path(__file__).with_name("templates")
TEXTS: Final = {name: msgs for name, msgs in HISTORIES.items() if "image" not in name}
AFTER_RESULT: Final = [*OPEN_CALL, Msg("system", [result("call_1", "near you")], "system")]


FORM: Final[dict[str, Any]] = {
    "start_anchor_pattern": r"\[assistant\]\n(?:<\|\w+\|>)?",
    "fields": {
        "reasoning_content": {"open": "<think>", "close": "</think>"},
        "tool_calls": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": "<|end|>"},
    },
}
"""Form of the replies of the model in `tiny_model`."""
GRAMMAR: Final = r'''root ::= "<tool_call>{\"name\": \"look\", \"arguments\": {\"place\": \"hi\"}}</tool_call>"'''
"""Grammar that the model needs for a tool call. The chat endpoint creates a similar grammar from the tools."""


def create_model(
    server: LlamaServer,
    template: ChatTemplate | str,
    response_template: dict[str, Any] | None = None,
    path: str = "/v1",
) -> ChatModel:
    return ChatModel(
        "openai-completions:tiny",
        template=template,
        formatter_options={"response_template": response_template},
        client_options={
            "base_url": f"{server.url}{path}",
            "http_client": httpx2.AsyncClient(verify=False, timeout=60),
        },
    )


def write_body(msgs: list[Msg], tools: list[Tool]) -> dict[str, Any]:
    """Returns a Chat Completions request with the messages that the template gets."""
    messages = convert_messages(msgs).messages
    for message in messages:
        for tool_call in message.get("tool_calls", ()):
            tool_call["function"]["arguments"] = json.dumps(tool_call["function"]["arguments"])
    return {"messages": messages, **({"tools": convert_tools(tools)} if tools else {})}


@each_case("tools", [[], [LOOK]])
@each_case("msgs", TEXTS)
def test_the_server_writes_the_same_prompt(msgs: list[Msg], tools: list[Tool], llama: LlamaServer) -> None:
    template = ChatTemplate.from_gguf(llama.model)
    prompt = llama.render_prompt(write_body(msgs, tools))
    assert template.render(msgs, tools=tools, add_generation_prompt=True).text == prompt


@pytest.fixture(scope="module", params=sorted(path.stem for path in TEMPLATES.glob("*.jinja")))
def server_with_template(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LlamaServer, ChatTemplate]]:
    """Server with a template of a model maker, and the template."""
    source = (TEMPLATES / f"{request.param}.jinja").read_text("utf-8")
    for server in run_server(tmp_path_factory.mktemp("llama"), source):
        file = ChatTemplate.from_gguf(server.model)
        yield server, ChatTemplate(source, special_tokens=file.special_tokens, name=request.param)


async def test_templates_of_model_makers_write_the_same_prompt(
    server_with_template: tuple[LlamaServer, ChatTemplate],
) -> None:
    server, template = server_with_template
    for msgs in ([user("Where?")], [user("Where?"), assistant("Near you."), user("And?")], [*QUESTION]):
        if msgs[0].role == "system" and not template.check().system:
            continue
        prompt = server.render_prompt(write_body(msgs, []))
        assert template.render(msgs, add_generation_prompt=True).text == prompt
    async with create_model(server, template) as model:
        reply = await model.generate([user("Where?")])
    assert reply.usage


@pytest.mark.parametrize("adds_bos", [False, True])
async def test_the_prompt_has_as_many_tokens_as_that_of_the_chat_endpoint(adds_bos: bool, tmp_path: Path) -> None:
    source = "{{ bos_token }}" + (TEMPLATES / "mistral_v03.jinja").read_text("utf-8")
    for server in run_server(tmp_path, source, adds_bos=adds_bos):
        file = ChatTemplate.from_gguf(server.model)
        assert file.adds_bos is adds_bos
        template = ChatTemplate(source, special_tokens=file.special_tokens, adds_bos=file.adds_bos)
        assert template.render([user("Where?")]).text.startswith("<|begin|>")
        body = {"model": "tiny", "max_tokens": 1, **write_body([user("Where?")], [])}
        status, chat = server.post("/v1/chat/completions", body)
        assert status == 200
        async with create_model(server, template) as model:
            reply = await model.generate([user("Where?")], max_tokens=1)
        assert reply.usage is not None
        assert reply.usage.input_tokens == chat["usage"]["prompt_tokens"]


@each_case(("msgs", "text"), [(QUESTION, TEXT_REPLY), (AFTER_RESULT, TEXT_AFTER_RESULT)])
async def test_a_completion_equals_the_reply_of_the_chat_endpoint(
    msgs: list[Msg], text: str, llama: LlamaServer
) -> None:
    status, chat = llama.post("/v1/chat/completions", {"model": "tiny", **write_body(msgs, [])})
    assert status == 200
    async with create_model(llama, ChatTemplate.from_gguf(llama.model)) as model:
        reply = await model.generate(msgs)
        async with model.stream(msgs) as stream:
            streamed = await stream.finish()
        limited = await model.generate(msgs, max_tokens=2)
    assert reply.text == streamed.text == chat["choices"][0]["message"]["content"] == text
    assert reply.finish_reason is streamed.finish_reason is FinishReason.STOP
    assert limited.finish_reason is FinishReason.LENGTH
    usage = chat["usage"]
    assert reply.usage is not None
    assert streamed.usage is not None
    # The cache of the server depends on earlier requests.
    for counts in (reply.usage, streamed.usage):
        assert (counts.input_tokens, counts.output_tokens) == (usage["prompt_tokens"], usage["completion_tokens"])


async def test_an_address_without_v1_is_an_error(llama: LlamaServer) -> None:
    async with create_model(llama, ChatTemplate.from_gguf(llama.model), path="") as model:
        with pytest.raises(ModelError, match="must end with /v1"):
            await model.generate(QUESTION, max_tokens=1)
        with pytest.raises(ModelError, match="must end with /v1"):
            async with model.stream(QUESTION, parameters={"n_predict": 1}) as stream:
                await stream.finish()


async def test_thinking_and_calls_equal_those_of_the_chat_endpoint(llama: LlamaServer) -> None:
    thinks, looks = [user("Think. Where is the library?")], [user("Where is the library?")]
    template = ChatTemplate.from_gguf(llama.model)
    status, chat = llama.post("/v1/chat/completions", {"model": "tiny", **write_body(thinks, [])})
    assert status == 200
    status, call = llama.post("/v1/chat/completions", {"model": "tiny", **write_body(looks, [LOOK])})
    assert status == 200
    async with create_model(llama, template, FORM) as model:
        thought = await model.generate(thinks)
        async with model.stream(thinks) as stream:
            streamed = await stream.finish()
        called = await model.generate(looks, tools=[LOOK], parameters={"grammar": GRAMMAR})
    expected = OpenAIChatStreamParser.parse_response(chat)
    assert (describe(thought), thought.text) == (describe(expected), TEXT_AFTER_THINKING)
    assert describe(streamed) == describe(expected)
    assert describe(called) == describe(OpenAIChatStreamParser.parse_response(call))
    assert called.finish_reason is FinishReason.TOOL_USE


def describe(msg: Msg) -> list[tuple[str, Any]]:
    """Returns the content of a message without ids and metadata."""
    return [
        (block.type, (block.name, block.input) if block.type == "tool_use" else getattr(block, block.type))
        for block in msg.blocks
    ]
