"""Tests of the list of stages: each entry is one rule, and a plain message enters few files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import agentkit
from agentkit import HistoryPolicy, Msg, OptionError, TextBlock, Tool, load_provider
from agentkit.formatting import pipeline
from agentkit.formatting.pipeline import Stage, select_stages
from agentkit.ledger.provenance import FrameOrigins, TracedConversation
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.messages.features import Feature
from agentkit.messages.message import build_trusted
from agentkit.provider_kit import Capabilities, FormatterBase, OpaqueCapabilities, TurnCapabilities
from tests.cases import each_case
from tests.conftest import EchoFormatter

ROOT: Final = Path(agentkit.__file__).resolve().parent.parent


def _shorten_texts(conversation: LegalConversation, _: StageContext) -> LegalConversation:
    """Rule for the test: a text has at most five characters."""
    turns = conversation.turns
    msgs = [build_trusted(msg.name, msg.text[:5], msg.role) for msg in turns.msgs]
    return conversation.with_turns(TracedConversation(msgs, turns.origins))


def _with_stage(monkeypatch: pytest.MonkeyPatch, stage: Stage) -> FormatterBase:
    """Returns a formatter of a new target, for which the pipeline has one more stage."""
    monkeypatch.setattr(pipeline, "STAGES", (*pipeline.STAGES, stage))

    class Formatter(EchoFormatter):
        base = replace(EchoFormatter.base, name="short texts")

    return Formatter()


def test_a_new_rule_needs_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    formatter = _with_stage(monkeypatch, Stage(_shorten_texts, lambda _: Feature.TEXT))
    assert formatter.lower([Msg("Bob", "Hello there", "user")]).request["messages"][0]["content"] == "Hello"


def test_a_stage_is_skipped_if_the_conversation_has_none_of_its_features(monkeypatch: pytest.MonkeyPatch) -> None:
    formatter = _with_stage(monkeypatch, Stage(_shorten_texts, lambda _: Feature.CALL))
    assert "Hello there" in str(formatter.lower([Msg("Bob", "Hello there", "user")]).request)


def test_a_stage_that_the_target_does_not_need_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    def features(target: Capabilities) -> int:
        return 0 if target.name == "short texts" else Feature.TEXT

    formatter = _with_stage(monkeypatch, Stage(_shorten_texts, features))
    assert "Hello there" in str(formatter.lower([Msg("Bob", "Hello there", "user")]).request)


ALWAYS: Final = [
    "apply_history_policy",
    "repair_rendered",
    "add_tool_choice_text",
    "split_system_prompt",
    "legalize_content",
    "make_call_ids_distinct",
    "arrange_results",
    "apply_turn_rules",
]
SPLIT: Final = OpaqueCapabilities(pair_key=lambda _: None, needs_thinking=bool)


@each_case(("changes", "added"), [
        ({}, []),
        ({"turns.speaker_names": False}, ["note_omitted_names"]),
        ({"turns.speaker_refused": ""}, []),
        ({"output": "prompt"}, ["add_output_instruction"]),
        ({"output": "object"}, ["add_output_instruction"]),
        ({"turns.system_role": False}, ["begin_with_system_prompt", "write_late_system_lines"]),
        ({"turns.system_role": False, "output": "prompt"},
         ["begin_with_output_instruction", "begin_with_system_prompt", "write_late_system_lines"]),
        ({"opaque": SPLIT}, ["omit_orphaned_parts", "omit_half_pairs"]),
        ({"tools.role": False}, ["rewrite_exchanges"]),
        ({"tools.parallel_calls": False}, ["rewrite_exchanges"]),
        ({"tools.call_texts": False}, ["omit_call_texts"]),
        ({"thinking.beside_call_texts": False}, ["omit_thinking_beside_texts"]),
        ({"tools.needs_declarations": True}, ["declare_called_tools"]),
        ({"turns.late_system": "line"}, ["write_late_system_lines"]),
        ({"turns.one_system": True}, ["join_system_prompt"]),
    ])  # fmt: skip
def test_a_target_has_only_the_stages_that_it_needs(changes: dict[str, Any], added: list[str]) -> None:
    target = Capabilities(name="Test", turns=TurnCapabilities(speaker_names=True, late_system="native"))
    names = [run.__name__ for run, _ in select_stages(target.override(changes))]
    fits_names = changes.keys().isdisjoint({"turns.speaker_names", "turns.speaker_refused"})
    usual = [*ALWAYS, "fit_speaker_names"] if fits_names else ALWAYS
    assert sorted(names) == sorted([*usual, *added])


def test_a_tool_choice_adds_no_output_schema() -> None:
    class Formatter(EchoFormatter):
        base = EchoFormatter.base.override({"output": "prompt"})

    plan = Formatter().lower([Msg("Bob", "hi", "user")], tools=[Tool("look")], tool_choice="required")
    assert len(plan.request["messages"]) == 1
    assert plan.ledger.syntheses == []


def test_a_policy_that_renders_another_value_is_an_error() -> None:
    class Broken(HistoryPolicy):
        def render(self, conversation: Any, ledger: Any, capabilities: Any) -> Any:
            return []

    with pytest.raises(OptionError) as caught:
        EchoFormatter(history=Broken()).lower([Msg("Bob", "hi", "user")])
    assert caught.value.place == "history.render()"
    assert caught.value.advice == "Return a TracedConversation, or override `view` instead."


def test_a_plan_has_the_original_names_of_renamed_tools() -> None:
    class Formatter(EchoFormatter):
        base = EchoFormatter.base.override(
            {"tools.names": load_provider("openai").chat_formatter().capabilities().tools.names}
        )

    plan = Formatter().lower([Msg("Bob", "hi", "user")], tools=[Tool("a.b")])
    (tool,) = plan.request["tools"]
    assert tool["name"] != "a.b"
    assert plan.tool_names == {tool["name"]: "a.b"}


def test_a_choice_that_forbids_calls_is_omitted_without_tools() -> None:
    class Formatter(EchoFormatter):
        base = EchoFormatter.base.override({"tools.choices": frozenset({"auto"})})

    assert Formatter().lower([Msg("Bob", "hi", "user")], tool_choice="none").request.keys() == {"messages"}


def test_the_parsed_value_of_a_frame_has_its_tag() -> None:
    turns = TracedConversation([], [])
    turns.add(Msg("user", [TextBlock("<log>")], "user"), FrameOrigins(["frame"], "log"))
    turns.add(Msg("user", "Hi.", "user"), 0)
    assert [traced.frame_tag for traced in turns] == ["log", ""]
    assert [traced.block_origins for traced in turns] == [("frame",), ((0, 0),)]


def _list_files(formatter: FormatterBase, msgs: list[Msg]) -> set[str]:
    """Returns the files of agentkit and its providers in which `lower` enters a function."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and path.is_relative_to(ROOT):
            files.add(str(path.relative_to(ROOT)))

    previous = sys.getprofile()
    sys.setprofile(note)
    try:
        formatter.lower(msgs)
    finally:
        sys.setprofile(previous)
    return files


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_plain_message_enters_at_most_12_files(provider: str) -> None:
    formatter = load_provider(provider).chat_formatter("gpt-5.1" if provider == "openai" else "claude-opus-4-5")
    msgs = [Msg("Bob", "Hello there", "user")]
    assert len(_list_files(formatter, msgs)) <= 12
    assert len(_list_files(formatter, msgs)) <= 12
