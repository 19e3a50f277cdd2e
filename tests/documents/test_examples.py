"""Every example runs, and every conversation of the examples formats for every provider."""

import json
import runpy
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from agentkit import (
    ChatModel,
    FinishReason,
    Msg,
    OpaqueState,
    ThinkingBlock,
    ToolUseBlock,
    load_messages,
    load_native,
    load_provider,
)
from agentkit.testing import LoopbackServer, Reply
from tests.cases import each_case
from tests.providers import MESSAGE_PROVIDERS

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
CONVERSATIONS = sorted((EXAMPLES / "data").glob("*.json"))
LOGS = sorted((EXAMPLES / "data" / "logs").glob("*.json"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_runs(script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize("name", MESSAGE_PROVIDERS)
@each_case("file", CONVERSATIONS)
def test_a_conversation_formats(file: Path, name: str) -> None:
    msgs = load_messages(file.read_bytes())
    for formatter in (load_provider(name).chat_formatter(), load_provider(name).multi_agent_formatter()):
        assert json.dumps(formatter.lower(msgs).request, allow_nan=False)


@each_case("file", LOGS)
@each_case("name", MESSAGE_PROVIDERS)
def test_a_log_is_formatted_for_every_api(file: Path, name: str) -> None:
    plan = load_provider(name).chat_formatter().lower(load_native(file.stem, json.loads(file.read_bytes())))
    assert "12 degrees" in json.dumps(plan.request, allow_nan=False)


def load_example(name: str) -> Any:
    """Returns an example as a module."""
    spec = spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def create_model(server: LoopbackServer, provider: str, **options: Any) -> ChatModel:
    return ChatModel(f"{provider}:any", client_options=server.client_options(provider), max_tokens=99, **options)


@pytest.mark.anyio
@pytest.mark.parametrize("provider", MESSAGE_PROVIDERS)
async def test_the_react_agent_solves_its_task_with_every_api(provider: str) -> None:
    react = load_example("react_agent")
    with LoopbackServer(agent=True) as server:
        async with create_model(server, provider) as model:
            msgs: list[Msg] = await react.solve(model, "library")
    assert [msg.name for msg in msgs] == ["system", "user", "assistant", "tools", "assistant"]
    assert msgs[2].finish_reason is FinishReason.TOOL_USE
    assert msgs[3].tool_results[0].text == react.PLACES["library"]
    assert react.PLACES["library"] in msgs[4].text


PARALLEL: Final = {
    "tool_uses": [
        {"recipient_name": "functions.look_up", "parameters": {"place": "library"}},
        {"recipient_name": "functions.calculate", "parameters": {"expression": "2 * 3"}},
    ]
}
"""Call of an undeclared tool, which some OpenAI models send instead of two calls."""


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("provider", "name"),
    [("openai", "parallel"), *((provider, "multi_tool_use.parallel") for provider in MESSAGE_PROVIDERS)],
)
async def test_the_react_agent_continues_when_a_model_wraps_its_calls(provider: str, name: str) -> None:
    react = load_example("react_agent")
    wrapped = Msg("m", [ToolUseBlock("c1", name, PARALLEL)], "assistant")
    both = [
        ToolUseBlock("c2", "look_up", {"place": "library"}),
        ToolUseBlock("c3", "calculate", {"expression": "2 * 3"}),
    ]
    with LoopbackServer([wrapped, Msg("m", both, "assistant"), "Done."]) as server:
        async with create_model(server, provider) as model:
            msgs: list[Msg] = await react.solve(model, "library")
    refused, results = msgs[3].tool_results[0], msgs[5].tool_results
    assert refused.is_error
    assert all(word in refused.text for word in (repr(name), "'look_up'", "'calculate'"))
    assert [result.text for result in results] == [react.PLACES["library"], "6"]
    assert msgs[-1].text == "Done."
    assert refused.text in json.dumps(server.requests[1].body, ensure_ascii=False)


@pytest.mark.anyio
async def test_the_tools_of_the_react_agent_fail_without_harm() -> None:
    react = load_example("react_agent")
    calculate = react.TOOLS[1]
    block = next(
        iter(Msg("a", [{"type": "tool_use", "id": "1", "name": "calculate", "input": {}}], "assistant").tool_uses)
    )
    assert (await calculate.run(block)).is_error
    for text, expected in (("2 * (3 + 4)", "14"), ("1 / 0", "division by zero"), ("open('x')", "not arithmetic")):
        content = [{"type": "tool_use", "id": "1", "name": "calculate", "input": {"expression": text}}]
        result = await calculate.run(Msg("a", content, "assistant").tool_uses[0])
        assert expected in result.text
        assert result.is_error == (text != "2 * (3 + 4)")


@pytest.mark.anyio
async def test_each_debater_has_only_its_assistant_turns_and_its_notes() -> None:
    debate = load_example("debate")
    with LoopbackServer([f"argument {number}" for number in range(7)]) as server:
        people = [*debate.SPEAKERS, debate.MODERATOR]
        models = {
            name: create_model(server, "openai", history=debate.create_history_policy(name)) for name in people
        }
        history: list[Msg] = await debate.debate(models)
        for model in models.values():
            await model.aclose()
    assert [msg.name for msg in history] == [
        "Moira",
        "Ada",
        "Ben",
        "Cleo",
        "Moira",
        "Ada",
        "Ben",
        "Cleo",
        "Moira",
        "Moira",
    ]
    second = server.requests[4].body["messages"]  # Ben's second turn
    own = [turn["content"] for turn in second if turn["role"] == "assistant"]
    texts = json.dumps([turn["content"] for turn in second if turn["role"] == "user"])
    assert own == ["argument 1"]
    assert "Ada: argument 0" in texts
    assert "You are Ben." in texts
    assert "all three have spoken" not in texts
    verdict = json.dumps(server.requests[6].body["messages"])
    assert "all three have spoken" in verdict


@pytest.mark.anyio
async def test_thinking_is_sent_only_to_its_issuer_after_a_swap() -> None:
    swap = load_example("swap_mid_conversation")
    proven = ThinkingBlock("I need the weather.", OpaqueState("anthropic", signature="c2lnbmVk"))
    replies = swap.create_replies()
    with LoopbackServer(replies) as server:
        await swap.main([create_model(server, name) for name in ("anthropic", "gemini", "openai-responses")])
    bodies = [json.dumps(request.body) for request in server.requests]
    assert replies[0].blocks[0] == proven
    assert ["c2lnbmVk" in body for body in bodies] == [False, True, False, False]
    assert not any("I need the weather." in body for body in bodies[2:])
    assert all("12 degrees" in body for body in bodies[1:])


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_conversation_continues_after_its_user_has_disconnected(anyio_backend: str) -> None:
    """Through a real server and connection: the user interrupts the first reply, and the second is complete."""
    backend = load_example("sse_backend")
    slow = Reply(Msg("x", "word " * 200, "assistant"), piece_size=5, delay=0.02)
    with LoopbackServer([slow, "Whole."]) as server:
        async with (
            create_model(server, "openai") as model,
            backend.run_server(model) as url,
            httpx2.AsyncClient(base_url=url, timeout=30) as client,
        ):
            async with client.stream("POST", "/conversations/1", json={"text": "Hello."}) as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("data: "):
                        break
            response = await client.post("/conversations/1", json={"text": "Are you there?"})
            assert "Whole." in response.text
            assert (await client.post("/conversations/1", json={"word": 3})).status_code == 400
        server.requests[0].wait()
    assert server.requests[0].disconnected
    turns = [(turn["role"], turn["content"]) for turn in server.requests[1].body["messages"]]
    assert [role for role, _ in turns] == ["system", "user", "assistant", "user"]
    assert 0 < len(turns[2][1]) < 900
