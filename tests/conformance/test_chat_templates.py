"""Chat templates of local models on the server of llama.cpp: with `ModelRules`, each accepts every conversation.

The files in `templates/` have the rules and the errors of published chat templates. The first line of each file
names the published template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from agentkit import (
    BadRequestError,
    ChatHistory,
    ChatModel,
    HistoryPolicy,
    ModelRules,
    Msg,
    MultiAgentHistory,
    load_provider,
)
from tests.conformance.llama_cpp import LlamaServer, run_server
from tests.conformance.test_llama_cpp import HISTORIES, MODEL, OPEN_CALL, PICTURE, QUESTION, openai_client
from tests.providers import LOOK, assistant, call, result, system, user

pytestmark = pytest.mark.anyio

TEXT_ONLY: Final = ModelRules(tool_role=False, images=False, alternating_turns=True)
RULES: Final[dict[str, ModelRules]] = {
    "gemma_2": ModelRules(system_role=False, tool_role=False, images=False, alternating_turns=True),
    "gemma_3_tools": ModelRules(alternating_turns=True),
    "llama_2": ModelRules(tool_role=False, images=False, alternating_turns=True),
    "llama_3_1": ModelRules(parallel_tool_calls=False, images=False),
    "mistral_v02": ModelRules(system_role=False, tool_role=False, images=False, alternating_turns=True),
    "mistral_v03": ModelRules(images=False, alternating_turns=True, call_ids="mistral"),
}
"""Rules of each template, as an application declares them."""

TWO_RESULTS: Final = Msg(
    "system", [result("call_2", "two"), result("call_1", "one", PICTURE, is_error=True)], "system"
)
CONVERSATIONS: Final[dict[str, list[Msg]]] = {
    **HISTORIES,
    "a question after an image in a result": [
        *OPEN_CALL,
        Msg("system", [result("call_1", "a map", PICTURE)], "system"),
        user("Where am I?"),
    ],
    "consecutive exchanges": [
        *OPEN_CALL,
        Msg("system", [result("call_1", "near you")], "system"),
        assistant(call("call_2", place="b"), call("call_1", place="c")),
        TWO_RESULTS,
        assistant("Found."),
        user("Thanks."),
        user("Go on.", name="Ann"),
    ],
    "the assistant begins": [
        assistant("Hello."),
        assistant(call("call_1"), call("call_2")),
        TWO_RESULTS,
        user("Yes?"),
    ],
    "only system messages": [system("Be brief."), system("Be kind.")],
    "a system message after a result": [
        *OPEN_CALL,
        Msg("system", [result("call_1", "")], "system"),
        system("Speak German now."),
        user("Und?"),
    ],
    "calls of another agent": [
        *QUESTION,
        Msg("Alice", [call("call_1", place="a"), call("call_2", place="b")], "assistant"),
        TWO_RESULTS,
        Msg("Alice", "There.", "assistant"),
        Msg("Bob", "Where?", "user"),
    ],
}
POLICIES: Final[dict[str, Callable[[], HistoryPolicy]]] = {
    "chat": ChatHistory,
    "multi-agent": MultiAgentHistory,
    "viewer": lambda: MultiAgentHistory(viewer="Friday"),
    "native": lambda: MultiAgentHistory(viewer="Friday", other_agents_tools="native"),
}


@pytest.fixture(scope="module", params=sorted(RULES))
def server_with_template(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Any]]:
    """Name of a template, and a server that uses the template."""
    name = str(request.param)
    for server in run_server(Path(tmp_path_factory.mktemp(name)), _template(name)):
        yield name, server


def _template(name: str) -> str:
    return (Path(__file__).parent / "templates" / f"{name}.jinja").read_text("utf-8")


def _request(kind: str, msgs: list[Msg], provider: str = "vllm", **options: Any) -> dict[str, Any]:
    formatter = load_provider(provider).chat_formatter(MODEL, history=POLICIES[kind](), **options)
    return formatter.lower(msgs, tools=[LOOK]).request


@pytest.mark.parametrize(("provider", "kind"), [*(("vllm", kind) for kind in POLICIES), ("openai", "chat")])
def test_a_template_with_declared_rules_accepts_every_conversation(
    server_with_template: tuple[str, LlamaServer], kind: str, provider: str
) -> None:
    name, server = server_with_template
    errors: dict[str, Any] = {}
    for title, msgs in CONVERSATIONS.items():
        request = _request(kind, msgs, provider, model_rules=RULES[name])
        status, answer = server.post("/v1/chat/completions", {"max_tokens": 1, **request})
        if status != 200:
            errors[title] = answer, [message["role"] for message in request["messages"]]
    assert errors == {}


@pytest.mark.parametrize("kind", POLICIES)
def test_the_request_itself_obeys_the_rules(server_with_template: tuple[str, LlamaServer], kind: str) -> None:
    """The server itself compensates for some rules, for example a system role that a template refuses."""
    rules = RULES[server_with_template[0]]
    for msgs in CONVERSATIONS.values():
        messages = _request(kind, msgs, model_rules=rules)["messages"]
        roles = {message["role"] for message in messages}
        assert rules.system_role or "system" not in roles
        assert rules.tool_role or not ({"tool"} & roles or any("tool_calls" in message for message in messages))
        assert rules.parallel_tool_calls or all(len(message.get("tool_calls", "1")) == 1 for message in messages)
        assert rules.images or "image_url" not in str(messages)


def test_without_rules_a_template_refuses_some_conversations(
    server_with_template: tuple[str, LlamaServer],
) -> None:
    name, server = server_with_template
    statuses = {
        server.post("/v1/chat/completions", {"max_tokens": 1, **_request("chat", msgs, "openai")})[0]
        for msgs in CONVERSATIONS.values()
    }
    assert statuses == {200, 400}, name


async def test_the_error_of_a_refused_request_names_the_option(
    server_with_template: tuple[str, LlamaServer],
) -> None:
    name, server = server_with_template
    key = "the assistant begins"
    async with openai_client(server) as client:
        with pytest.raises(BadRequestError, match="model_rules=ModelRules") as error:
            await ChatModel("openai", MODEL, client=client).generate(CONVERSATIONS[key], tools=[LOOK])
        assert not error.value.retryable
        model = ChatModel("openai", MODEL, client=client, model_rules=RULES[name], max_tokens=1)
        await model.generate(CONVERSATIONS[key], tools=[LOOK])
