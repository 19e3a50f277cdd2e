"""Texts of prefixes with the templates of trl: recorded loops give the texts of a rendering of each prefix."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg
from agentkit.chat_templates import ChatTemplate
from tests.conformance.test_training import find_trl_templates
from tests.profiles import examples
from tests.training.span_cases import CONVERSATIONS, check_prefixes

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


@pytest.mark.parametrize("part", range(4))
def test_the_text_of_each_prefix_is_that_of_render(part: int) -> None:
    templates = [
        ChatTemplate(source, name=name, special_tokens=TOKENS)
        for name, source in [*find_trl_templates().items()][part::4]
    ]
    assert len(templates) >= 18

    compared = Counter[str]()

    @given(CONVERSATIONS, st.integers())
    @examples(100)
    def compare(msgs: list[Msg], seed: int) -> None:
        for template in templates:
            compared[template.name] += check_prefixes(msgs, template, Random(f"{seed} {template.name}"))

    compare()
    assert len(compared) == len(templates)
    assert min(compared.values()) > 50
