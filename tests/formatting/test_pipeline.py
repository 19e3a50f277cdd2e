"""Tests of the list of stages: each entry is one rule, and a plain message enters few files."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import agentkit
from agentkit import Msg, TextBlock, load_provider
from agentkit.formatting import pipeline
from agentkit.formatting.pipeline import Stage
from agentkit.ledger.provenance import FrameOrigins, TracedConversation
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.messages.features import Feature
from agentkit.messages.message import build_trusted
from agentkit.provider_kit import Capabilities, FormatterBase
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
