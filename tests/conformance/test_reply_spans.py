"""Texts of replies in the templates of trl: one rendering gives those of all shorter conversations."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings

from agentkit import Msg
from agentkit.chat_templates import ChatTemplate
from tests.conformance.test_training import find_trl_templates
from tests.profiles import examples
from tests.training.span_cases import CONVERSATIONS, compare_methods

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TRACED = (
    "cohere cohere2 gemma gemma3 gemma4_v2 idefics3 lfm2 lfm2_v2 llama3 llama3_1 llama3_2 phi3 phi3_5 qwen2_5"
    " qwen2_5_vl qwen3_instruct_2507 qwen3_vl smolvlm"
)
"""Templates for which one rendering proves where replies are. The others read all messages at their start."""


@pytest.mark.parametrize("part", range(4))
def test_one_rendering_gives_the_spans_of_all_shorter_conversations(part: int) -> None:
    sources = [*find_trl_templates().items()][part::4]
    assert len(sources) >= 18
    for name, source in sources:
        template = ChatTemplate(source, name=name, special_tokens=TOKENS)
        assert any(_compare_all(template)) == (name in TRACED.split()), name


def _compare_all(template: ChatTemplate) -> list[bool]:
    """Compares the methods for many conversations. Returns the results of `compare_methods`."""
    proven: list[bool] = []

    @given(CONVERSATIONS)
    @settings(examples(100), phases=[Phase.generate])
    def compare(msgs: list[Msg]) -> None:
        proven.append(compare_methods(msgs, template))

    compare()
    return proven
