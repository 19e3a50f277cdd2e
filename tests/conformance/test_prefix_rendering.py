"""Texts of prefixes with the templates of trl: recorded loops give the texts of a rendering of each prefix."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from agentkit import Msg
from agentkit.chat_templates import ChatTemplate
from tests.conformance.test_training import find_trl_templates
from tests.profiles import examples
from tests.training.span_cases import CONVERSATIONS, check_prefixes

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.parametrize("part", range(4))
def test_the_text_of_each_prefix_is_that_of_render(part: int) -> None:
    sources = [*find_trl_templates().items()][part::4]
    assert len(sources) >= 18
    for name, source in sources:
        assert _compare(ChatTemplate(source, name=name, special_tokens=TOKENS)) > 50


def _compare(template: ChatTemplate) -> int:
    """Compares the texts for many conversations. Returns the number of texts."""
    compared: list[int] = []

    @given(CONVERSATIONS, st.randoms(use_true_random=False))
    @settings(examples(100), phases=[Phase.generate])
    def compare(msgs: list[Msg], random: Random) -> None:
        compared.append(check_prefixes(msgs, template, random))

    compare()
    return sum(compared)
