"""Tests of the texts that a request gets in place of options that the API has no field for."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit import Msg, Synthesis, Tool
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
