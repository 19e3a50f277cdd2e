"""`split_rewritten`: one sample for each prompt that was really served."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import MessageError, Msg, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from agentkit.chat_templates import ChatTemplate
from agentkit.training import Sample, split_rewritten, tokenize
from tests.profiles import examples
from tests.training.templates import MARKED, THINKING, UNMARKED, decode, encode, list_trained

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


def test_no_sample_ends_with_an_earlier_reply_that_is_not_trained() -> None:
    msgs = [USER, reply("a"), USER, reply("b"), USER, reply("c")]
    (only,) = split_rewritten(Sample(msgs, weights=[None, 0, None, 0, None, 1]), THINKING)
    assert list_trained(tokenize(only, THINKING, encode)) == ["<think>\nc\n</think>\n\nThere.<|im_end|>"]
    first, last = split_rewritten(Sample(msgs, weights=[None, 1, None, 0, None, 0]), THINKING)
    assert (len(first.msgs), last.weights) == (2, (None, 0, None, 0, None, 0))


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


_PROMPT: Final = "<|im_start|>assistant\n"
_MARKED_THINKING: Final = replace(
    THINKING,
    jinja=(THINKING.jinja or "")
    .replace(
        "{%- if message.role == 'assistant' %}{%-", "{%- if message.role == 'assistant' %}{%- generation %}{%-"
    )
    .replace("<|im_end|>{%- else %}", "<|im_end|>{%- endgeneration %}{%- else %}"),
)
"""The template THINKING with marked replies."""


def test_all_texts_are_trained_but_the_replies_that_other_samples_train() -> None:
    msgs = [Msg("system", "Be brief.", "system"), USER, reply("a"), Msg("Bob", "And now?", "user"), reply("b")]
    for template in (THINKING, _MARKED_THINKING):
        parts = split_rewritten(Sample(msgs), template)
        texts = [list_trained(tokenize(part, template, encode, train_on="all")) for part in parts]
        first, second = "<|im_start|>user\nWhere?<|im_end|>\n", "\n<|im_start|>user\nAnd now?<|im_end|>\n"
        assert texts == [
            [first, "<think>\na\n</think>\n\nThere.<|im_end|>\n"],
            [first, second, "<think>\nb\n</think>\n\nThere.<|im_end|>\n"],
        ]


@given(st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=5), st.sampled_from([None, "Be brief."]))
@examples(60)
def test_marked_and_unmarked_replies_train_the_same_texts(thoughts: list[str], system: str | None) -> None:
    msgs = [] if system is None else [Msg("system", system, "system")]
    for thought in thoughts:
        msgs += [USER, reply(thought) if thought else Msg("Friday", "There.", "assistant")]
    for train_on in ("all", "assistant", "last"):
        texts = [
            [list_trained(tokenize(part, template, encode, train_on=train_on)) for part in parts]
            for template in (THINKING, _MARKED_THINKING)
            if (parts := split_rewritten(Sample(msgs), template))
        ]
        assert texts[0] == texts[1]


def test_a_rewritten_reply_that_cannot_be_found_is_an_error() -> None:
    macro = "{% macro write() %}" + (THINKING.jinja or "") + "{% endmacro %}{{ write() }}"
    template = replace(THINKING, jinja=macro)
    parts = split_rewritten(Sample([USER, reply("a"), USER, reply("b")]), template)
    with pytest.raises(
        MessageError, match=r"msgs\[1\]: the chat template 'thinking' changes the text of earlier messages"
    ):
        tokenize(parts[1], template, encode, train_on="all")


_FORGETFUL: Final = replace(
    THINKING,
    jinja=(THINKING.jinja or "")
    .replace(
        "{%- if message.role == 'user' %}", "{%- if message.role == 'assistant' and not message.tool_calls %}"
    )
    .replace("loop.index0 > last.index", "loop.index0 >= last.index"),
)
"""ChatML that omits thinking before tool calls after the final reply is known, as the template of gpt-oss does."""


def test_the_text_of_a_sample_is_the_prompt_that_was_served_and_the_reply() -> None:
    """The template never writes the prompt of the second reply together with this reply."""
    msgs = [USER, reply("a", is_call=True), RESULT, reply("b"), USER, reply("c")]
    parts = split_rewritten(Sample(msgs), _FORGETFUL)
    assert [len(part.msgs) for part in parts] == [4, 6]
    for part, indexes in zip(parts, ([1, 3], [5]), strict=True):
        for train_on in ("assistant", "all", "last"):
            tokenized = tokenize(part, _FORGETFUL, encode, train_on=train_on)
            text = decode(tokenized.ids)
            for index in indexes[-1:] if train_on == "last" else indexes:
                prompt = _FORGETFUL.render(msgs[:index], add_generation_prompt=True).text
                thinking = msgs[index].blocks[0].thinking  # type: ignore[union-attr]
                written = f"<think>\n{thinking}\n</think>\n\nThere."
                assert text.startswith(prompt + written)
                assert any(start <= len(prompt) < end for start, end in tokenized.spans)


_OPENING: Final = replace(
    UNMARKED,
    jinja=(UNMARKED.jinja or "")
    .replace("<|im_start|>assistant\n{% endif %}", "<|im_start|>assistant\n<think>\n{% endif %}")
    .replace("{%- if message.reasoning_content %}", "{%- if false %}"),
)
"""ChatML that opens thinking in its generation prompt, but writes no thinking, as DeepSeek's template does."""


def test_a_generation_prompt_that_opens_thinking_does_not_split_a_conversation() -> None:
    msgs = [USER, reply("a"), USER, reply("b")]
    sample = Sample(msgs)
    assert split_rewritten(sample, _OPENING) == [sample]
    assert list_trained(tokenize(sample, _OPENING, encode)) == ["There.<|im_end|>"] * 2


def test_a_reply_after_another_reply_follows_the_prompt_that_was_served() -> None:
    """The template writes one turn for several replies, as the template of Gemma 4 does."""
    source = (UNMARKED.jinja or "").replace(
        "{{- '<|im_start|>' + message.role + '\\n' }}",
        "{%- if loop.first or message.role != loop.previtem.role %}"
        "{{- '<|im_start|>' + message.role + '\\n' }}{%- endif %}",
    )
    template = replace(UNMARKED, jinja=source)
    assert source != UNMARKED.jinja
    msgs = [USER, *[Msg("Friday", text, "assistant") for text in ("One.", "Two.")]]
    sample = Sample(msgs)
    assert split_rewritten(sample, template) == [sample]
    tokenized = tokenize(sample, template, encode)
    prompt = template.render(msgs[:-1], add_generation_prompt=True).text
    assert decode(tokenized.ids) == f"{prompt}Two.<|im_end|>\n"
    assert list_trained(tokenized) == ["One.<|im_end|>", "Two.<|im_end|>"]


def test_a_reply_without_its_generation_prompt_is_an_error() -> None:
    """The second tool call has no generation prompt, as in the template of DeepSeek V3."""
    source = (_OPENING.jinja or "").replace(
        "{{- '<|im_start|>' + message.role + '\\n' }}",
        "{%- if loop.index < 4 %}{{- '<|im_start|>' + message.role + '\\n' }}{%- endif %}",
    )
    msgs = [USER, reply("a"), USER, reply("b")]
    with pytest.raises(MessageError, match=r"msgs\[3\]: .* does not write this reply after the prompt"):
        tokenize(Sample(msgs), replace(_OPENING, jinja=source), encode)


def test_messages_after_a_reply_that_they_change_are_in_no_sample() -> None:
    sample = Sample([USER, reply("a"), USER])
    parts = split_rewritten(sample, THINKING)
    assert [part.msgs for part in parts] == [sample.msgs[:2]]
    assert list_trained(tokenize(parts[0], THINKING, encode)) == ["<think>\na\n</think>\n\nThere.<|im_end|>"]


def test_recorded_tokens_follow_the_prompt_that_was_served() -> None:
    msgs = [USER, reply("a"), USER, reply("b")]
    recorded = [encode(f"{thought}\n</think>\n\nThere.<|im_end|>")[0] for thought in "ab"]
    parts = split_rewritten(Sample(msgs, tokens={1: recorded[0], 3: recorded[1]}), _OPENING)
    for part, ids in zip(parts, recorded, strict=True):
        prompt = _OPENING.render(part.msgs[:-1], add_generation_prompt=True).text
        tokenized = tokenize(part, _OPENING, encode)
        assert decode(tokenized.ids) == prompt + decode(ids) + "\n"
        assert tokenized.spans == [(len(prompt), len(prompt) + len(ids))]


def test_texts_before_the_first_message_are_never_trained() -> None:
    preamble = "<|im_start|>system\nYou are a model.{% if tools %}{{ tools | tojson }}{% endif %}<|im_end|>\n"
    for template in (THINKING, MARKED):
        source = "{%- if messages[0].role != 'system' %}" + preamble + "{% endif %}" + (template.jinja or "")
        template = replace(template, jinja=source.replace("{%- if tools %}", "{%- if false %}"))
        for tools in ([], [look]):
            sample = Sample([USER, reply("a")], tools)
            texts = list_trained(tokenize(sample, template, encode, train_on="all"))
            assert texts[0] == "<|im_start|>user\nWhere?<|im_end|>\n"


def look(q: int) -> str:
    """Looks."""
    return str(q)


def test_a_trained_reply_of_another_agent_is_in_one_sample() -> None:
    def reply(name: str, text: str) -> Msg:
        return Msg(name, [ThinkingBlock("Hm."), TextBlock(text)], "assistant")

    question = Msg("Bob", "Where?", "user")
    msgs = [question, reply("Eve", "One."), question, reply("Friday", "Two."), question, reply("Eve", "Three.")]
    for weights in ([None, 1, None, None, None, 1], [None, [None, 1], None, None, None, [0, 1]]):
        parts = split_rewritten(Sample(msgs, weights=weights, viewer="Friday"), THINKING)
        texts = ["".join(list_trained(tokenize(part, THINKING, encode))) for part in parts]
        assert [[text in item for item in texts].count(True) for text in ("One.", "Two.", "Three.")] == [1, 1, 1]
