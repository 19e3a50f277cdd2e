"""Token usage and finish reasons of replies."""

from __future__ import annotations

from typing import Any

from agentkit import FinishReason, Msg, Usage
from agentkit.provider_kit import as_token_count
from tests.cases import each_case


def test_usages_add_up_and_round_trip_through_json() -> None:
    first, second = Usage(10, 5, 3, 2, 1), Usage(1, 1, 1, 1, 1)
    assert first + second == Usage(11, 6, 4, 3, 2)
    assert first.total_tokens == 15
    assert Usage.from_dict(first.to_dict()) == first


@each_case("count", [None, "3", -1, True, float("nan"), float("inf"), 10**400, [1], {}])
def test_an_invalid_token_count_is_zero(count: Any) -> None:
    assert as_token_count(count) == 0


def test_a_message_that_is_not_a_reply_has_no_usage_and_no_finish_reason() -> None:
    odd: tuple[dict[str, Any], ...] = (
        {"reply": {"usage": 3, "finish_reason": "sunk"}},
        {"reply": {"finish_reason": []}},
    )
    for metadata in (None, {}, {"reply": 3}, *odd):
        msg = Msg("Bob", "Hi", "user", metadata=metadata)
        assert msg.usage is None
        assert msg.finish_reason is None
    msg = Msg("a", "b", "assistant", metadata={"reply": {"finish_reason": "length", "usage": {"input_tokens": 2}}})
    assert (msg.finish_reason, msg.usage) == (FinishReason.LENGTH, Usage(2))
