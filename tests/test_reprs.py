"""Representations: short for values of any size, with the most important fields. A ledger prints a table."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
from collections.abc import Callable
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentkit
import agentkit.testing
from agentkit import (
    AgentkitError,
    Base64Source,
    BudgetError,
    ChatModel,
    Disposition,
    ImageBlock,
    LedgerEntry,
    LossError,
    ModelError,
    Msg,
    MultiAgentHistory,
    OptionError,
    Plan,
    ProviderError,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    ToolUseDelta,
    Usage,
    load_provider,
)
from agentkit.provider_kit import FormatterBase, MediaPart
from agentkit.replies.arguments import ArgumentBuffer
from agentkit.reprs import as_one_line, bounded_repr, describe_value, shorten, shorten_repr
from agentkit.testing import ScriptedModel
from tests.cases import each_case
from tests.conftest import call, lower, result, text_msg
from tests.profiles import examples
from tests.providers import MESSAGE_PROVIDERS

LARGE: Final = "x" * 1_000_000
LIMIT: Final = 2_000
IMAGE: Final = ImageBlock(Base64Source("image/png", "iVBORw0K" * 125_000))

CONTENTS: Final[dict[str, Any]] = {
    "text": LARGE,
    "escapes": "\n\x00'\"" * 250_000,
    "bytes": LARGE.encode(),
    "list": [LARGE] * 10,
    "flat list": [1] * 100_000,
    "tuple": (IMAGE,) * 10,
    "dict": {f"{number}{LARGE}": LARGE for number in range(3)},
    "wide dict": {str(number): {"a": [LARGE[:100]]} for number in range(10_000)},
    "messages": [Msg("Bob", [IMAGE, TextBlock(LARGE)], "user")] * 10,
    "number": 10**10_000,
}


def _public_dataclasses() -> list[type[Any]]:
    names = [getattr(agentkit, name) for name in vars(agentkit)["__all__"]]
    names += [getattr(agentkit.testing, name) for name in agentkit.testing.__all__]
    return [value for value in names if inspect.isclass(value) and dataclasses.is_dataclass(value)]


def _fill_fields(kind: type[Any], content: object) -> Any:
    """Returns an instance with the content in every field."""
    instance: Any = object.__new__(kind)
    for field in dataclasses.fields(kind):
        object.__setattr__(instance, field.name, content)
    return instance


def test_the_public_dataclasses_are_checked() -> None:
    names = {kind.__name__ for kind in _public_dataclasses()}
    assert {
        "Msg",
        "ImageBlock",
        "Base64Source",
        "Tool",
        "Plan",
        "ComparisonResult",
        "Usage",
        "TextEnd",
        "RecordedRequest",
    } <= names


@pytest.mark.parametrize("content", CONTENTS)
def test_a_representation_is_short_for_any_fields(content: str) -> None:
    # A formatter creates a Ledger; other tests below check its representation.
    for kind in [kind for kind in _public_dataclasses() if kind is not agentkit.Ledger]:
        text = repr(_fill_fields(kind, CONTENTS[content]))
        assert len(text) < LIMIT, kind
        assert text.startswith(f"{kind.__name__}(")


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(), inner, max_size=30),
    max_leaves=100,
)


@examples(50)
@given(json, st.integers(0, 1_000))
def test_any_value_is_represented_within_about_its_limit(value: object, limit: int) -> None:
    text = shorten_repr(value, limit)
    assert len(text) <= 2 * limit + 60
    assert len(repr(value)) > 30 or shorten_repr(value) == repr(value)


def test_a_value_that_contains_itself_has_a_representation() -> None:
    value: list[Any] = []
    value.append(value)
    assert len(shorten_repr(value)) < 100
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    assert len(shorten_repr(deep)) < 100


def test_a_value_without_a_repr_is_named() -> None:
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError

    assert shorten_repr([Mute()]) == "[<Mute: RuntimeError>]"


def test_short_values_are_represented_completely_without_defaults() -> None:
    assert repr(Msg("Bob", "hi", "user")) == "Msg(name='Bob', content='hi', role='user')"
    assert repr(Msg("Bob", [TextBlock("hi")], "user", pinned=True)) == (
        "Msg(name='Bob', content=(TextBlock(text='hi'),), role='user', pinned=True)"
    )
    assert repr(ToolUseBlock("1", "look", {"at": [1, None]})) == (
        "ToolUseBlock(id='1', name='look', input={'at': [1, None]})"
    )
    assert repr(ToolResultBlock("1")) == "ToolResultBlock(id='1')"
    assert repr(Usage(7, 2)) == "Usage(input_tokens=7, output_tokens=2)"
    assert repr(MultiAgentHistory()) == "MultiAgentHistory()"
    assert eval(repr(Msg("Bob", [TextBlock("hi")], "user"))) == Msg("Bob", [TextBlock("hi")], "user")


def test_a_shortened_value_states_its_length() -> None:
    text = repr(Msg("Bob", [IMAGE, TextBlock(LARGE)], "user"))
    assert "media_type='image/png'" in text
    assert "(1,000,000 characters)" in text
    assert repr(Msg("Bob", LARGE, "user")).endswith("xxx… (1,000,000 characters), role='user')")
    assert re.search(r"… 99\d more\]$", shorten_repr([LARGE] * 1_000))


def test_private_fields_are_not_represented() -> None:
    assert "secret" not in repr(TextBlock("hi", metadata={"secret": 1}))
    delta = ToolUseDelta(0, "{", ArgumentBuffer(), 1)
    assert repr(delta) == "ToolUseDelta(index=0, text='{', length=1)"


def test_a_tool_shows_its_name_and_its_parameters() -> None:
    tool = Tool.from_dict({"name": "look", "description": LARGE, "parameters": {"properties": {"at": {}}}})
    text = repr(tool)
    assert len(text) < LIMIT
    assert text.startswith("Tool(name='look', description='xxx")
    assert "'properties': {'at': {}}" in text


@each_case("name", MESSAGE_PROVIDERS)
def test_a_plan_of_a_large_conversation_is_short(name: str) -> None:
    provider = load_provider(name)
    msgs = [text_msg("Bob", LARGE), Msg("Bob", [IMAGE], "user"), call("c"), result("c", output=LARGE)]
    for formatter in (provider.chat_formatter(), provider.multi_agent_formatter()):
        plan = formatter.lower(msgs)
        text = repr(plan)
        assert len(text) < LIMIT
        assert text.startswith("Plan(request={")
        assert "ledger=<Ledger of 4 messages: " in text
        assert "history=(Msg(name='Bob'" in text
        assert len(repr(plan.ledger)) < LIMIT
        assert all(len(repr(entry)) < LIMIT for entry in plan.ledger.entries)


ERRORS: Final[dict[str, Callable[[], AgentkitError]]] = {
    "OptionError": lambda: OptionError(LARGE, LARGE, LARGE),
    "LossError": lambda: LossError(LARGE, [(LARGE, LARGE)] * 1_000),
    "BudgetError": lambda: BudgetError(3, 9, [LARGE] * 1_000),
    "ProviderError": lambda: ProviderError(LARGE, LARGE, [LARGE] * 3),
    "ModelError": lambda: ModelError("openai", LARGE, code=LARGE),
}


@each_case("name", [*ERRORS])
def test_the_text_of_an_error_is_short_and_ends_with_the_advice(name: str) -> None:
    error = ERRORS[name]()
    assert len(str(error)) < LIMIT
    assert len(repr(error)) < LIMIT
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_the_attributes_of_an_error_are_complete() -> None:
    error = ModelError("openai", LARGE)
    assert error.provider_message == LARGE
    assert str(error).endswith(error.advice)
    assert str(ModelError("openai", "No.")) == "openai: No. Check the error text of the provider."


def test_the_representation_of_a_model_has_no_key() -> None:
    model = ChatModel(
        "anthropic:claude-opus-5",
        history=MultiAgentHistory(viewer="Friday"),
        client_options={"api_key": "sk-secret"},
        parameters={"extra_headers": {"authorization": "sk-secret"}},
    )
    assert repr(model) == "ChatModel('anthropic:claude-opus-5', viewer='Friday')"
    assert repr(ChatModel("openai:gpt-6")) == "ChatModel('openai:gpt-6')"
    assert repr(ScriptedModel([])) == "ScriptedModel('openai:scripted')"
    assert len(repr(ChatModel("openai", LARGE, history=MultiAgentHistory(viewer=LARGE)))) < LIMIT


def test_the_representation_of_a_media_part_is_short() -> None:
    assert len(repr(MediaPart("image", LARGE, LARGE))) < LIMIT


# -- dispositions and the ledger --------------------------------------------------------------------------------


def test_a_disposition_prints_its_name() -> None:
    assert str(Disposition.DROPPED) == "dropped"
    assert f"{Disposition.MERGED}, {Disposition.MOVED:>7}" == "merged,   moved"
    assert repr(Disposition.CARRIED) == "Disposition.CARRIED"
    entry = LedgerEntry("msgs[0]", "text", Disposition.CARRIED, "sent unchanged")
    assert repr(entry).startswith("LedgerEntry(place='msgs[0]', kind='text', disposition=Disposition.CARRIED")
    assert Disposition.DROPPED < Disposition.CARRIED


def test_a_ledger_prints_a_row_a_block_and_a_row_for_each_text_that_was_added() -> None:
    plan: Plan = lower([text_msg("Bob", "hi"), call("c")], MultiAgentHistory(), turns__first_user=True)
    lines = str(plan.ledger).splitlines()
    assert lines[0].split() == ["place", "block", "disposition", "reason"]
    assert len(lines) == 1 + len(plan.ledger.entries) + len({*plan.ledger.syntheses})
    reason = "written as a line `NAME: TEXT` in the user turn that contains the history"
    assert lines[1].split(maxsplit=3) == ["msgs[0].content[0]", "text", "merged", reason]
    assert all(line[lines[0].index("reason") - 1] == " " for line in lines)
    assert [line for line in lines if "synthesis" in line]


def test_a_ledger_marks_lost_content() -> None:
    plan = lower([Msg("Bob", [IMAGE], "user")], media__image=None)
    assert "described, content lost" in str(plan.ledger)
    assert repr(plan.ledger) == "<Ledger of 1 messages: 1 described, 1 lost>"


def test_repeated_syntheses_are_one_row() -> None:
    ledger = agentkit.Ledger([])
    ledger.add_synthesis("filler turn", "the API wants turns to alternate")
    ledger.add_synthesis("filler turn", "the API wants turns to alternate")
    assert str(ledger).splitlines()[1].endswith("the API wants turns to alternate (×2)")


def test_a_row_of_a_ledger_is_one_line_without_control_characters() -> None:
    ledger = agentkit.Ledger([])
    ledger.add_synthesis("frame", "named \x1b[31mEve\nand \u202e" + LARGE)
    (_, row) = str(ledger).splitlines()
    assert "\x1b" not in row
    assert "\u202e" not in row
    assert len(row) < LIMIT
    assert as_one_line(" a\n\tb\x07 ") == "a b\N{REPLACEMENT CHARACTER}"


def test_a_text_is_shortened_in_its_middle() -> None:
    assert shorten("short", 5) == "short"
    assert shorten("a" * 50 + "z" * 50, 40).startswith("a" * 30 + " … (100 characters) … " + "z" * 10)


def test_every_formatter_is_represented_without_its_messages() -> None:
    for name in MESSAGE_PROVIDERS:
        formatter: FormatterBase = load_provider(name).multi_agent_formatter(
            history=MultiAgentHistory(viewer=LARGE)
        )
        assert len(repr(formatter)) < LIMIT


def test_dataclasses_share_one_representation() -> None:
    own = [kind for kind in _public_dataclasses() if cast("Any", kind).__repr__ is not bounded_repr]
    assert own == [agentkit.Ledger]


@each_case(
    ("value", "text"),
    [
        (3, "int 3"),
        (None, "None"),
        ("a", "str 'a'"),
        (TextBlock("a"), "TextBlock(text='a')"),
        ("x" * 1_000, f"str '{'x' * 29}… (1,000 characters)"),
    ],
)
def test_an_error_shows_the_type_of_a_value_once(value: object, text: str) -> None:
    assert describe_value(value) == text
