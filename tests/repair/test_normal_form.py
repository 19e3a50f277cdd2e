"""Normal form: which conversations need no repair, and which properties they have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import HistoryPolicy, Msg
from agentkit.ledger.provenance import NormalForm, TracedConversation
from agentkit.messages.features import Feature
from agentkit.messages.system_prompt import prompt_length
from agentkit.provider_kit import LegalConversation, Request, RequestSpec
from agentkit.repair.normal_form import find_normal_form
from tests.cases import each_case
from tests.conftest import EchoFormatter, call, result, target, text_msg
from tests.conversations import POLICIES
from tests.profiles import examples

SYSTEM = text_msg("system", "Be brief.", "system")
USER = text_msg("Bob", "Hi")
ASSISTANT = text_msg("Friday", "Hello", "assistant")


MIXED = Msg("Friday", [*call("a").blocks, *result("b").blocks], "assistant")
"""Turn with a call and the result of another call."""


def find(*msgs: Msg) -> NormalForm | None:
    return find_normal_form(TracedConversation.of([*msgs]))


@pytest.mark.parametrize("prompt", [[], [SYSTEM], [SYSTEM, SYSTEM]])
def test_the_system_prompt_does_not_count_for_the_alternation_of_roles(prompt: list[Msg]) -> None:
    for msgs, alternates in (([USER, ASSISTANT, USER], True), ([USER, USER, ASSISTANT], False)):
        form = find(*prompt, *msgs)
        assert form is not None
        assert form.alternating == alternates


@each_case(
    "msgs",
    [
        [call("a"), USER],
        [call("a"), call("b")],
        [call("a"), call("b"), result("b")],
        [call("a", "b"), result("a"), result("a", "b")],
        [call("a"), result("b")],
        [call("a", "b"), result("a"), result("a")],
        [result("a")],
        [USER, call("a")],
        [USER, MIXED, result("a", "b")],
        [USER, MIXED, result("a"), result("b")],
    ],
)
def test_calls_without_exactly_one_result_have_no_normal_form(msgs: list[Msg]) -> None:
    assert find(*msgs) is None


def test_results_in_one_message_in_the_order_of_the_calls_are_ordered() -> None:
    ordered = [USER, call("a", "b"), result("a", "b")]
    features = USER.features | ordered[1].features | ordered[2].features
    assert find(*ordered) == NormalForm(features, ordered=True, alternating=True)
    for results in ([result("b", "a")], [result("a"), result("b")]):
        form = find(*ordered, call("a", "b"), *results)
        assert form is not None
        assert not form.ordered


@pytest.mark.parametrize(
    "msgs", [[USER, ASSISTANT, USER], [USER, ASSISTANT, USER, USER], [ASSISTANT, USER, USER, ASSISTANT, USER]]
)
def test_a_check_of_the_new_messages_knows_the_role_of_the_message_before_them(msgs: list[Msg]) -> None:
    for start in range(1, len(msgs)):
        assert find_normal_form(TracedConversation.of(msgs), start, find(*msgs[:start])) == find(*msgs)


TURNS = st.sampled_from(
    [
        [SYSTEM],
        [USER],
        [ASSISTANT],
        [call("a"), result("a")],
        [call("a", "b"), result("a", "b")],
        [call("a", "b"), result("b"), result("a")],
        [call("a")],
        [result("a")],
    ]
)


@given(st.lists(TURNS, max_size=8), st.integers(1, 16))
@examples(400)
def test_a_check_of_only_the_new_messages_finds_the_same_as_a_check_of_all(
    turns: list[list[Msg]], start: int
) -> None:
    msgs = [msg for turn in turns for msg in turn]
    prefix = find(*msgs[:start])
    if prefix is None or start >= len(msgs) or prompt_length(msgs) >= start:
        return
    assert not msgs[start - 1].features & Feature.CALL
    assert find_normal_form(TracedConversation.of(msgs), start, prefix) == find(*msgs)


RULES: tuple[dict[str, Any], ...] = (
    {},
    {"tools__role": False},
    {"tools__parallel_calls": False, "media__image": None},
    {"turns__system_role": False, "media__result_kinds": frozenset[str]()},
)


@given(
    st.lists(TURNS | st.just([USER, text_msg("Alice", "Ja")]), max_size=8),
    st.sampled_from(POLICIES),
    st.sampled_from(RULES),
)
@examples(400)
def test_the_stages_keep_the_properties_of_a_conversation_up_to_date(
    turns: list[list[Msg]], policy: HistoryPolicy, rules: dict[str, Any]
) -> None:
    seen: list[TracedConversation] = []

    class Recording(EchoFormatter):
        base = target(**rules).base

        def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
            seen.append(legal.turns)
            return super().convert(legal, task)

    Recording(history=policy).lower([*(msg for turn in turns for msg in turn), USER])
    (conversation,) = seen
    if conversation.normal_form is not None:
        found = find_normal_form(conversation, 0)
        assert found is not None
        assert conversation.normal_form.features == found.features
        assert conversation.normal_form.alternating == found.alternating
        assert found.ordered or not conversation.normal_form.ordered
