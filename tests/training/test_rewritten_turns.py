"""`split_rewritten`: one sample for each prompt that was really served."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from agentkit.chat_templates import ChatTemplate
from agentkit.training import Sample, split_rewritten, tokenize
from tests.profiles import examples
from tests.training.templates import MARKED, THINKING, UNMARKED, encode, list_trained

USER: Final = Msg("Bob", "Where?", "user")


def reply(thinking: str, *, is_call: bool = False) -> Msg:
    call = [ToolUseBlock("c1", "look", {})] if is_call else []
    return Msg("Friday", [ThinkingBlock(thinking), TextBlock("There."), *call], "assistant")


RESULT: Final = Msg("tool", [ToolResultBlock("c1", "look", "found")], "system")


def test_a_conversation_that_no_template_rewrites_is_one_sample() -> None:
    sample = Sample([USER, reply("a"), USER, reply("b")])
    assert split_rewritten(sample, MARKED) == [sample]
    assert split_rewritten(sample, UNMARKED) == [sample]
    only_user = Sample([USER])
    assert split_rewritten(only_user, THINKING) == [only_user]


def test_each_rewritten_reply_gets_the_prompt_that_was_served() -> None:
    msgs = [USER, reply("a", is_call=True), RESULT, reply("b"), USER, reply("c")]
    sample = Sample(msgs, tokens={1: [1], 5: [2]}, source="log")
    first, second = split_rewritten(sample, THINKING)
    assert first == Sample(msgs[:4], tokens={1: [1]}, source="log")
    assert second == Sample(msgs, weights=[None, 0, None, 0, None, None], tokens={5: [2]}, source="log")


@given(st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=5), st.sampled_from([THINKING, MARKED]))
@examples(60)
def test_each_reply_is_trained_once_as_it_was_served(thoughts: list[str], template: ChatTemplate) -> None:
    msgs: list[Msg] = []
    served: list[str] = []
    for thought in thoughts:
        msgs += [USER, reply(thought) if thought else Msg("Friday", "There.", "assistant")]
        prompt = template.render(msgs[:-1], add_generation_prompt=True).text
        served.append(template.render(msgs, add_generation_prompt=False).text.removeprefix(prompt).rstrip())
    parts = split_rewritten(Sample(msgs), template)
    trained = [text for part in parts for text in list_trained(tokenize(part, template, encode))]
    assert sorted(trained) == sorted(served)
