"""Tests of the texts that a request gets in place of options that the API has no field for."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import Msg, Synthesis, Tool
from tests.cases import each_case
from tests.conftest import target, text_msg, turn_lines

BOB = text_msg("Bob", "hi")
SYSTEM = text_msg("system", "Be brief.", "system")
LATE = text_msg("clock", "It is noon.", "system")
ANSWER: dict[str, Any] = {"type": "object", "properties": {"verdict": {"type": "string"}}}
INSTRUCTION = (
    "Answer in json, with one object that matches this JSON schema:\n"
    '{"type":"object","properties":{"verdict":{"type":"string"}}}'
)


# -- tool choices -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "mode", "text"),
    [
        ("required", "required", "(Answer by calling a tool.)"),
        ("look", "tool", "(Answer by calling the tool look.)"),
        (["look", "count"], "required", "(Answer by calling one of the tools look, count.)"),
    ],
)
def test_a_user_turn_after_all_others_asks_for_a_tool_call(choice: Any, mode: str, text: str) -> None:
    formatter = target(tools__choices=frozenset({"auto"}))()
    plan = formatter.lower([BOB], tools=[Tool("look"), Tool("count"), Tool("walk")], tool_choice=choice)
    assert turn_lines(plan) == ["user Bob: hi", f"user user: {text}"]
    reason = f"Echo does not accept tool_choice '{mode}', so an instruction in the prompt asks for a tool call"
    assert Synthesis("tool choice", reason) in plan.ledger.syntheses
    assert "tool_choice" not in plan.request


def test_a_tool_choice_that_the_target_accepts_needs_no_text() -> None:
    plan = target()().lower([BOB], tools=[Tool("look")], tool_choice="required")
    assert turn_lines(plan) == ["user Bob: hi"]
    assert (plan.request["tool_choice"], plan.ledger.syntheses) == ("required", [])


# -- any JSON object ----------------------------------------------------------------------------------------------

OBJECT = "Answer in json, with one object."
JSON_PROMPT = text_msg("system", "Reply with JSON.", "system")
JSON_TEXT = text_msg("Bob", "What is json?")


@each_case(
    ("mode", "msgs", "system_texts"),
    [
        ("native", [BOB], []),
        ("native", [SYSTEM, BOB], ["Be brief."]),
        ("stated", [BOB], [OBJECT]),
        ("stated", [SYSTEM, BOB], ["Be brief.", OBJECT]),
        ("stated", [JSON_PROMPT, BOB], ["Reply with JSON."]),
        ("stated", [SYSTEM, JSON_PROMPT, BOB], ["Be brief.", "Reply with JSON."]),
        ("stated", [JSON_TEXT], [OBJECT]),  # a budget may drop the user's message
        ("prompt", [BOB], [OBJECT]),
        ("prompt", [JSON_PROMPT, BOB], ["Reply with JSON."]),
    ],
)
def test_an_instruction_asks_for_any_object_only_where_it_is_needed(
    mode: str, msgs: list[Msg], system_texts: list[str]
) -> None:
    plan = target(json_object=mode)().lower(msgs, response_format="json_object")
    lines = [line for line in turn_lines(plan) if line.startswith("system")]
    assert lines == [f"system system: {text}" for text in system_texts]
    reason = "the API returns a JSON object only if the prompt asks for JSON, so an instruction was added"
    expected = [Synthesis("output instruction", reason)] * (OBJECT in system_texts)
    assert (plan.ledger.syntheses, plan.request.get("schema")) == (expected, None)


@pytest.mark.parametrize(("prompt", "texts"), [([], [OBJECT, "hi"]), ([JSON_PROMPT], ["Reply with JSON.", "hi"])])
def test_without_a_system_role_the_instruction_for_an_object_is_in_the_first_user_turn(
    prompt: list[Msg], texts: list[str]
) -> None:
    plan = target(turns__system_role=False)().lower([*prompt, BOB], response_format="json_object")
    assert turn_lines(plan) == [f"user user: {' | '.join(texts)}"]


@pytest.mark.parametrize("mode", ["native", "stated", "prompt"])
def test_an_api_that_refuses_tools_and_a_format_gets_the_instruction_for_an_object(mode: str) -> None:
    formatter = target(json_object=mode, can_combine_output=False)()
    plan = formatter.lower([BOB], tools=[Tool("look")], response_format="json_object")
    assert turn_lines(plan) == [f"system system: {OBJECT}", "user Bob: hi"]


def test_a_target_with_one_system_message_gets_the_instruction_in_this_message() -> None:
    plan = target(json_object="stated", turns__one_system=True)().lower(
        [SYSTEM, BOB], response_format="json_object"
    )
    assert turn_lines(plan) == [f"system system: Be brief. | {OBJECT}", "user Bob: hi"]


# -- output schemas -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [[], [SYSTEM]])
def test_the_output_schema_is_the_last_message_of_the_system_prompt(prompt: list[Msg]) -> None:
    plan = target(output="prompt")().lower([*prompt, BOB, LATE], response_format=ANSWER)
    assert turn_lines(plan) == [
        *["system system: Be brief."] * len(prompt),
        f"system system: {INSTRUCTION}",
        "user Bob: hi",
        "system clock: It is noon.",
    ]
    reason = "the API cannot enforce a JSON schema, so a text asks the model to follow the schema"
    assert plan.ledger.syntheses[-1] == Synthesis("output instruction", reason)


@pytest.mark.parametrize("prompt", [[], [SYSTEM, SYSTEM]])
def test_without_a_system_role_the_output_schema_is_between_the_system_prompt_and_the_first_text(
    prompt: list[Msg],
) -> None:
    formatter = target(output="prompt", turns__system_role=False)()
    plan = formatter.lower([*prompt, BOB], response_format=ANSWER)
    texts = [*["Be brief."] * len(prompt), INSTRUCTION, "hi"]
    assert turn_lines(plan) == [f"user user: {' | '.join(texts)}"]
