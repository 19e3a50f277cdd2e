"""Declared rules of chat templates: the requests and the ledger under each rule."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agentkit import (
    BEGIN_TURN,
    Base64Source,
    ChatModel,
    Disposition,
    ImageBlock,
    LossError,
    ModelRules,
    Msg,
    MultiAgentHistory,
    OpaqueBlock,
    OptionError,
    Plan,
    ToolResultBlock,
    load_provider,
)
from agentkit.provider_kit import CALL_TEXT, ERROR_TEXT, RESULT_TEXT, RESULT_TURN, NameRule
from agentkit_openai import CHAT
from agentkit_vllm import VLLMChatFormatter
from tests.cases import each_case
from tests.conversations import DATA
from tests.providers import LOOK, assistant, call, result, system, user

PICTURE: Final = ImageBlock(Base64Source("image/png", DATA["image/png"]))
TEXT_ONLY: Final = ModelRules(system_role=False, tool_role=False, images=False, alternating_turns=True)
ONE_CALL: Final = ModelRules(parallel_tool_calls=False)
PAIR: Final = [
    user("Look."),
    assistant("I look.", call("c1", place="a"), "And there.", call("c2", place="b"), "Done."),
    Msg("tool", [result("c2", "B."), result("c1", "A.", is_error=True)], "user"),
]


def _plan(msgs: list[Msg], provider: str = "vllm", rules: ModelRules | None = None, **options: Any) -> Plan:
    asked = {name: options.pop(name) for name in ("tools", "response_format") if name in options}
    return load_provider(provider).chat_formatter(model_rules=rules, **options).lower(msgs, **asked)


def _messages(msgs: list[Msg], provider: str = "vllm", rules: ModelRules | None = None, **options: Any) -> Any:
    return _plan(msgs, provider, rules, **options).request["messages"]


def _list_contents(messages: Any) -> list[tuple[str, Any]]:
    return [(message["role"], message["content"]) for message in messages]


def test_without_a_system_role_the_system_prompt_starts_the_first_user_turn() -> None:
    plan = _plan([system("Be brief."), system("Be kind."), user("Hi.")], rules=TEXT_ONLY)
    assert _list_contents(plan.request["messages"]) == [("user", "Be brief.\nBe kind.\nHi.")]
    assert [entry.disposition for entry in plan.ledger.entries[:2]] == [Disposition.MOVED] * 2
    assert plan.ledger.entries[0].reason == "moved into the first user turn, because the API has no system role"
    assert not plan.ledger.losses


@each_case("provider", ["openai", "anthropic", "ollama", "gemini", "dashscope", "openai-responses"])
def test_the_system_prompt_is_in_the_user_turn_for_every_provider(provider: str) -> None:
    request = _plan([system("PROMPT"), user("HELLO")], provider, ModelRules(system_role=False)).request
    turns = str(request.get("messages") or request.get("contents") or request.get("input"))
    assert "system" not in str(request)
    assert turns.index("PROMPT") < turns.index("HELLO")


def test_the_system_prompt_is_a_user_turn_before_a_first_assistant_turn() -> None:
    assert _list_contents(_messages([system("Be brief."), assistant("Hi."), user("Ho.")], rules=TEXT_ONLY)) == [
        ("user", "Be brief."),
        ("assistant", "Hi."),
        ("user", "Ho."),
    ]
    assert _list_contents(_messages([system("Be brief.")], rules=TEXT_ONLY)) == [("user", "Be brief.")]


def test_an_output_instruction_follows_the_system_prompt() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    msgs = [system("Be brief."), user("Hi.")]
    messages = _messages(msgs, "deepseek", ModelRules(system_role=False), response_format=schema)
    text = str(messages[0]["content"])
    assert [message["role"] for message in messages] == ["user"]
    assert text.index("Be brief.") < text.index("Answer in json") < text.index("Hi.")


def test_without_a_tool_role_calls_and_results_are_texts() -> None:
    plan = _plan(PAIR, rules=TEXT_ONLY)
    a, b = (CALL_TEXT.format(name="look", arguments=f'{{"place":"{place}"}}') for place in "ab")
    told = RESULT_TEXT.format(name="look", text="B.") + "\n" + ERROR_TEXT.format(name="look", text="A.")
    assert _list_contents(plan.request["messages"]) == [
        ("user", "Look."),
        ("assistant", f"I look.\n{a}\nAnd there.\n{b}\nDone."),
        ("user", told),
    ]
    reasons = {entry.kind: entry.reason for entry in plan.ledger.entries if entry.kind.startswith("tool_")}
    assert set(reasons.values()) == {"written as text, because the API has no roles for tool calls and results"}
    assert not plan.ledger.losses


def test_texts_of_calls_are_separate_lines_in_separate_parts() -> None:
    messages = _messages(PAIR, "openai", ModelRules(tool_role=False))
    assert [part["text"][:1] for part in messages[1]["content"]] == ["I", "\n", "A", "\n", "D"]


def test_media_of_a_result_follow_its_text() -> None:
    msgs = [user("Look."), assistant(call("c1")), system(result("c1", "A map.", PICTURE))]
    parts = _messages(msgs, rules=ModelRules(tool_role=False))[2]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    described = _messages(msgs, rules=TEXT_ONLY)[2]["content"]
    assert "[image left out because" in described
    with pytest.raises(LossError):
        _plan(msgs, rules=TEXT_ONLY, on_loss="raise")


@pytest.mark.parametrize("on_loss", ["describe", "drop"])
def test_an_opaque_block_of_a_result_is_a_loss(on_loss: Any) -> None:
    part = OpaqueBlock("anthropic", {"type": "tool_reference", "tool_name": "x"})
    msgs = [user("Look."), assistant(call("c1")), system(ToolResultBlock("c1", "look", [part]))]
    plan = _plan(msgs, "anthropic", ModelRules(tool_role=False), on_loss=on_loss)
    assert "tool_reference" not in str(plan.request)
    assert ("[part left out" in str(plan.request)) == (on_loss == "describe")
    assert [place for place, _ in plan.ledger.losses] == ["msgs[2].content[0].output[0]"]


def test_without_parallel_calls_each_call_is_followed_by_its_result() -> None:
    plan = _plan(PAIR, "openai", ONE_CALL)
    messages = plan.request["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert [message["tool_calls"][0]["id"] for message in messages[1::2]] == ["c1", "c2"]
    assert [(message["tool_call_id"], message["content"]) for message in messages[2::2]] == [
        ("c1", "[error] A."),
        ("c2", "B."),
    ]
    assert messages[1]["content"] == "I look."
    assert [part["text"] for part in messages[3]["content"]] == ["And there.", "Done."]
    moved = [entry.place for entry in plan.ledger.entries if entry.disposition is Disposition.MOVED]
    assert moved == [f"msgs[1].content[{at}]" for at in (2, 3, 4)] + [f"msgs[2].content[{at}]" for at in (0, 1)]


def test_a_single_call_is_not_changed() -> None:
    msgs = [user("Look."), assistant(call("c1")), system(result("c1", "A."))]
    assert _plan(msgs, "openai", ONE_CALL).request == _plan(msgs, "openai").request


def test_calls_with_equal_ids_have_their_own_results() -> None:
    calls = assistant(call("c", place="a"), call("c", place="b"))
    msgs = [user("Look."), calls, system(result("c", "A"), result("c", "B"))]
    messages = _messages(msgs, "openai", ONE_CALL)
    assert [message["content"] for message in messages if message["role"] == "tool"] == ["A", "B"]


def test_an_assistant_turn_is_added_between_a_result_and_a_user_turn() -> None:
    msgs = [user("Look."), assistant(call("c1")), system(result("c1", "A.")), user("And?")]
    plan = _plan(msgs)
    assert _list_contents(plan.request["messages"])[2:] == [
        ("tool", "A."),
        ("assistant", RESULT_TURN),
        ("user", "And?"),
    ]
    assert [(made.name, made.reason) for made in plan.ledger.syntheses] == [
        ("filler turn", "the API requires an assistant turn between a tool result and a user turn")
    ]
    relaxed = _messages(msgs, rules=ModelRules(alternating_turns=False))
    assert [message["role"] for message in relaxed] == ["user", "assistant", "tool", "user"]


def test_alternating_turns_implies_the_other_rules_of_such_templates() -> None:
    msgs = [assistant("Hi."), system("Now brief."), user("Ho."), system("Later."), user("So?")]
    rules = ModelRules(alternating_turns=True)
    assert _list_contents(_messages([system("A."), system("B."), *msgs], "openai", rules))[0] == (
        "system",
        [{"type": "text", "text": "A."}, {"type": "text", "text": "B."}],
    )
    messages = _messages(msgs, "openai", rules)
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[0]["content"] == BEGIN_TURN


def test_rules_apply_to_capabilities_of_third_parties() -> None:
    class Strict(VLLMChatFormatter):
        base = CHAT.override(
            {"name": "Strict", "turns.system_role": False, "turns.alternate": True, "tools.parallel_calls": False}
        )

    messages = Strict().lower([system("A."), *PAIR, user("So?")]).request["messages"]
    assert [message["role"] for message in messages] == [
        "user", "assistant", "tool", "assistant", "tool", "assistant", "user"
    ]  # fmt: skip


def test_rules_are_an_option_of_chat_models() -> None:
    model = ChatModel("vllm:mine", model_rules=TEXT_ONLY)
    assert model.formatter.capabilities().turns.system_role is False
    assert model.formatter.capabilities() is ChatModel("vllm:mine", model_rules=TEXT_ONLY).formatter.capabilities()


def test_rules_apply_to_tool_calls_of_other_agents() -> None:
    history = MultiAgentHistory(viewer="Friday", other_agents_tools="native")
    messages = _messages([system("A."), *PAIR, user("So?")], rules=TEXT_ONLY, history=history)
    assert {message["role"] for message in messages} == {"user", "assistant"}


def test_rules_do_not_change_the_declared_tools() -> None:
    assert _plan(PAIR, rules=TEXT_ONLY, tools=[LOOK]).request["tools"]


@each_case(
    ("rules", "place"),
    [
        ({"images": None}, "model_rules.images"),
        ({"system_role": "no"}, "model_rules.system_role"),
        ({"alternating_turns": 1}, "model_rules.alternating_turns"),
        ({"call_ids": "mistrall"}, "model_rules.call_ids"),
        ({"call_ids": 9}, "model_rules.call_ids"),
    ],
)
def test_the_error_for_an_invalid_rule_names_the_rule(rules: Any, place: str) -> None:
    with pytest.raises(OptionError) as error:
        ModelRules(**rules)
    assert error.value.place == place


def test_call_ids_can_have_a_custom_rule() -> None:
    rules = ModelRules(call_ids=NameRule(pattern="[0-9]+", limit=5))
    assert rules.apply(CHAT).tools.call_ids == NameRule(pattern="[0-9]+", limit=5)
    with pytest.raises(OptionError, match="model_rules"):
        VLLMChatFormatter(model_rules={"images": False})  # type: ignore[arg-type]
