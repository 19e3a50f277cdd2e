"""Tests of the properties of conversations in normal form."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit import Msg
from agentkit.ledger.provenance import NormalForm, TracedConversation, starts_with
from agentkit.messages.features import Feature
from tests.cases import each_case
from tests.conftest import call, result, text_msg

BOB, FRIDAY = text_msg("Bob", "Hi."), text_msg("Friday", "Hi.", "assistant")


@each_case(
    ("msgs", "alternating"),
    [
        ([], True),
        ([BOB], True),
        ([FRIDAY], True),
        ([BOB, FRIDAY, BOB], True),
        ([FRIDAY, BOB, FRIDAY], True),
        ([call("c"), result("c"), FRIDAY], True),
        ([BOB, BOB], False),
        ([BOB, FRIDAY, FRIDAY], False),
        ([call("c"), result("c"), BOB, FRIDAY], False),
    ],
)
def test_the_properties_of_other_messages_are_their_features_and_their_alternation(
    msgs: Sequence[Msg], *, alternating: bool
) -> None:
    features = 0
    for msg in msgs:
        features |= msg.features
    for ordered in (True, False):
        form = NormalForm(Feature.MEDIA, ordered, alternating=not alternating)
        assert form.for_messages(msgs) == NormalForm(features, ordered, alternating)


def test_a_conversation_starts_with_the_same_first_and_last_messages_and_equal_ones_between() -> None:
    a, b, c, d = (text_msg("Bob", text) for text in "abcd")
    copies = [text_msg("Bob", text) for text in "abcd"]
    msgs = [a, b, c, d]
    for prefix in ([], [a], [a, b], [a, b, c], msgs, [*msgs], [a, copies[1], c]):
        assert starts_with(msgs, prefix)
    for other in ([a, b, c, d, a], [copies[0], b, c], [a, b, copies[2]], [a, c, c], [b], [a, c], copies):
        assert not starts_with(msgs, other)


def test_a_feature_of_the_system_prompt_is_a_feature_of_the_conversation() -> None:
    msgs = [text_msg("system", "Be brief.", "system"), BOB]
    form = NormalForm(BOB.features, ordered=True, alternating=True)
    for normal_form in (None, form):
        conversation = TracedConversation(msgs, [0, 1], normal_form)
        assert conversation.has_feature(Feature.SYSTEM) is True
        assert conversation.has_feature(Feature.TEXT) is True
        assert conversation.has_feature(Feature.MEDIA) is False
