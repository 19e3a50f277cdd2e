"""`tokenize`: which tokens are trained, truncation, recorded token ids, and errors."""

from __future__ import annotations

import pickle
from collections import deque
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from agentkit import (
    ImageBlock,
    MessageError,
    Msg,
    OptionError,
    TemplateError,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.chat_templates import ChatTemplate
from agentkit.training import Sample, TokenizedSample, split_rewritten, tokenize
from agentkit.training.text_spans import Span, subtract_spans
from tests.cases import each_case
from tests.profiles import examples
from tests.training.templates import (
    MARKED,
    THINKING,
    UNMARKED,
    create_tokenizer,
    decode,
    encode,
    list_trained,
)

SYSTEM: Final = Msg("system", "Be brief.", "system")
CALL: Final = Msg("Friday", [TextBlock("Wait."), ToolUseBlock("c1", "look", {"q": 1})], "assistant")
MSGS: Final = [
    SYSTEM,
    Msg("Bob", "Where?", "user"),
    CALL,
    Msg("tool", [ToolResultBlock("c1", "look", "found")], "system"),
    Msg("Friday", "There.", "assistant"),
]
CALL_TEXT: Final = 'Wait.<tool_call>{"name": "look", "arguments": {"q": 1}}</tool_call><|im_end|>'
HEADER: Final = "<|im_start|>assistant\n"


def look(q: int) -> str:
    """Looks."""
    return str(q)


def train(msgs: list[Msg], template: ChatTemplate = MARKED, weights: Any = None, **options: Any) -> list[str]:
    return list_trained(tokenize(Sample(msgs, [look], weights), template, encode, **options))


# -- trained texts -----------------------------------------------------------------------------------------------


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_replies_are_trained_with_their_stop_token(template: ChatTemplate) -> None:
    assert train(MSGS, template) == [CALL_TEXT, "There.<|im_end|>"]
    assert train(MSGS, template, train_on="last") == ["There.<|im_end|>"]
    assert train(MSGS, template, train_generation_prompt=True) == [HEADER + CALL_TEXT, HEADER + "There.<|im_end|>"]
    after = "\n<|im_start|>tool\nfound<|im_end|>\n"
    assert train(MSGS, template, train_on="all") == [
        "<|im_start|>user\nWhere?<|im_end|>\n",
        CALL_TEXT + after,
        "There.<|im_end|>\n",
    ]
    whole = train(MSGS, template, train_on="all", train_generation_prompt=True)
    assert whole == [
        "<|im_start|>user\nWhere?<|im_end|>\n" + HEADER + CALL_TEXT + after + HEADER + "There.<|im_end|>\n"
    ]


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_weights_have_precedence(template: ChatTemplate) -> None:
    assert train(MSGS, template, [None, None, 0, None, None]) == ["There.<|im_end|>"]
    assert train(MSGS, template, [None, None, 1, None, None], train_on="last") == [CALL_TEXT, "There.<|im_end|>"]
    user = "<|im_start|>user\nWhere?<|im_end|>\n"
    assert train(MSGS, template, [None, 1, 0, None, 0]) == [user]
    assert train(MSGS, template, [None, 0, None, 0, None], train_on="all") == [
        CALL_TEXT + "\n",
        "There.<|im_end|>\n",
    ]
    assert train(MSGS, template, [None, None, [1, 0], None, 0]) == ["Wait."]
    assert train(MSGS, template, [None, None, [None, 0], None, 0]) == ["Wait."]
    assert train(MSGS, template, [None, None, [0, None], None, 0]) == [CALL_TEXT.removeprefix("Wait.")]


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_each_of_several_similar_blocks_has_its_weight(template: ChatTemplate) -> None:
    calls = [ToolUseBlock(f"c{number}", "look", {"q": number}) for number in (1, 2)]
    reply = Msg("Friday", [TextBlock("Wait."), TextBlock("Wait."), *calls], "assistant")
    first, second = (
        f'<tool_call>{{"name": "look", "arguments": {{"q": {number}}}}}</tool_call>' for number in (1, 2)
    )
    weights: list[tuple[list[int | None], list[str]]] = [
        ([1, 0, 1, 0], ["Wait.", first]),
        ([0, 1, 0, 1], ["Wait.", f"{second}<|im_end|>"]),
        ([None, None, None, 0], [f"Wait.\nWait.{first}"]),
    ]
    for weight, trained in weights:
        assert train([MSGS[1], reply], template, [None, weight]) == trained


@each_case("end", {"without a text": "<|end|>", "with a text": "{{ '' if m.tool_calls else 'ok' }}<|end|>"})
def test_a_block_does_not_have_the_weight_of_thinking_that_needs_the_block(end: str) -> None:
    template = ChatTemplate(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}{% if m.thinking %}<|think|>{{ m.thinking }}"
        "<|/think|>{% endif %}<|call|>{{ m.tool_calls[0].function | tojson }}<|/call|>{% endif %}{{ m.content }}"
        + end
        + "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    thinking, call = "<|think|>Hm.<|/think|>", '<|call|>{"name": "look", "arguments": {}}<|/call|>'
    reply = Msg("Friday", [ThinkingBlock("Hm."), ToolUseBlock("c1", "look", {})], "assistant")
    for weight, trained in {(1, 0): thinking, (0, 1): f"{call}<|end|>", (None, 0): thinking}.items():
        assert train([MSGS[1], reply], template, [None, [*weight]]) == [trained]
    sample = Sample([MSGS[1], reply], weights=[None, (None, 1)], viewer="Eve")
    assert list_trained(tokenize(sample, template, encode)) == [f"{call}<|end|>"]


def test_a_block_does_not_have_the_weight_of_a_text_that_the_template_moves() -> None:
    template = ChatTemplate(
        "{% for m in messages %}<|{{ m.role }}|>{% for c in m.tool_calls or [] %}<|call|>{{ c.function | tojson }}"
        "<|/call|>{% endfor %}{{ m.content }}{{ '<|wait|>' if m.tool_calls else '<|end|>' }}"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    call = '<|call|>{"name": "look", "arguments": {}}<|/call|>'
    reply = Msg("Friday", [TextBlock("Let me look."), ToolUseBlock("c1", "look", {})], "assistant")
    assert train([MSGS[1], reply], template, [None, [1, 0]]) == ["Let me look."]
    assert train([MSGS[1], reply], template, [None, [0, 1]]) == [call, "<|wait|>"]
    sample = Sample([MSGS[1], reply], weights=[None, (None, 1)], viewer="Eve")
    assert list_trained(tokenize(sample, template, encode)) == [call, "<|wait|>"]


def test_a_block_is_whole_if_the_next_block_ends_with_the_same_text() -> None:
    template = ChatTemplate(
        "{% for m in messages %}<|{{ m.role }}|>{{ '\n' + m.content if m.content else '' }}"
        "{% for c in m.tool_calls or [] %}{{ '\n<call>\n' + (c.function | tojson) + "
        "'\n</call>' }}{% endfor %}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    )
    cities = ("Paris", "Tunis")
    calls = [ToolUseBlock(f"c{city}", "look", {"q": city}) for city in cities]
    first, second = (f'<call>\n{{"name": "look", "arguments": {{"q": "{city}"}}}}\n</call>' for city in cities)
    reply = Msg("Friday", [TextBlock("Ok."), *calls], "assistant")
    assert train([MSGS[1], reply], template, [None, [1, 0, 0]]) == ["Ok.\n"]
    assert train([MSGS[1], reply], template, [None, [0, 1, 0]]) == [first]
    assert train([MSGS[1], reply], template, [None, [0, 0, 1]]) == [f"{second}<|end|>"]


def test_a_call_that_the_template_writes_after_a_text_is_whole() -> None:
    reply = Msg("Friday", [ToolUseBlock("c1", "look", {"q": 1}), TextBlock("<b>Hi</b>")], "assistant")
    call = '<tool_call>{"name": "look", "arguments": {"q": 1}}</tool_call>'
    for weight, trained in {(1, 0): [call], (0, 1): ["<b>Hi</b>", "<|im_end|>"]}.items():
        sample = Sample([MSGS[1], reply], [look], weights=[None, weight], viewer="Eve")
        assert list_trained(tokenize(sample, UNMARKED, encode)) == trained


def test_a_block_does_not_have_texts_of_later_messages_that_need_the_block() -> None:
    template = ChatTemplate(
        "{% for m in messages %}{% if m.role != 'tool' or messages[loop.index0 - 1].tool_calls %}<|{{ m.role }}|>"
        "{% for c in m.tool_calls or [] %}<|call|>{{ c.function | tojson }}{% endfor %}{{ m.content }}<|end|>"
        "{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    reply = Msg("Eve", [ToolUseBlock("c1", "look", {}), TextBlock("Wait.")], "assistant")
    sample = Sample([MSGS[1], reply, MSGS[3]], weights=[None, (1, 0), None], viewer="Friday")
    call = '<|call|>{"name": "look", "arguments": {}}'
    assert list_trained(tokenize(sample, template, encode)) == [call]


def test_an_omitted_block_is_a_loss_if_later_messages_change_its_reply() -> None:
    reply = Msg("Eve", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")
    done = Msg("Friday", "Done.", "assistant")
    sample = Sample([MSGS[1], reply, MSGS[1], done], weights=[None, (1, None), None, None], viewer="Friday")
    tokenized = tokenize(sample, THINKING, encode)
    assert list_trained(tokenized) == ["Done.<|im_end|>"]
    assert [place for place, _ in tokenized.losses] == ["msgs[1].content[0]"]


def test_a_call_is_a_loss_if_the_template_writes_only_the_first_call() -> None:
    template = ChatTemplate(
        "{% for m in messages %}<|{{ m.role }}|>{% if m.tool_calls %}<|call|>"
        "{{ m.tool_calls[0].function | tojson }}{% endif %}{{ m.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    calls = [ToolUseBlock(f"c{number}", "look", {"q": number}) for number in (1, 2)]
    results = [ToolResultBlock(f"c{number}", "look", "look around") for number in (1, 2)]
    msgs = [MSGS[1], Msg("Friday", calls, "assistant"), Msg("tool", results, "system"), MSGS[4]]
    assert [place for place, _ in tokenize(Sample(msgs), template, encode).losses] == ["msgs[1].content[1]"]
    assert [item.place for item in template.render(msgs).omitted] == ["msgs[1].content[1]"]


def test_a_block_of_a_user_is_trained_if_the_template_refuses_the_prompt_of_the_reply() -> None:
    refusal = "{%- if messages | length == 1 %}{{ raise_exception('no reply') }}{% endif %}"
    template = ChatTemplate(
        refusal + (UNMARKED.jinja or ""), name="refusal", special_tokens={"eos_token": "<|im_end|>"}
    )
    msgs = [Msg("Bob", [TextBlock("Here?"), TextBlock("Where?")], "user"), MSGS[4]]
    assert train(msgs, template, [[0, 1], 0]) == ["\nWhere?"]
    with pytest.raises(TemplateError, match="no reply"):
        train(msgs, template, [[0, 1], None])


def test_a_block_without_text_does_not_change_the_weights_of_others() -> None:
    template = ChatTemplate.from_tags({"user": ("U: ", "\n"), "assistant": ("A: ", "</s>")})
    msgs = [MSGS[1], Msg("Friday", [TextBlock("a"), TextBlock("b"), ThinkingBlock("Hm.")], "assistant")]
    assert train(msgs, template, [None, [0, 1, 0]]) == ["b</s>"]


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_the_generation_prompt_has_the_weight_of_its_reply(template: ChatTemplate) -> None:
    msgs = [MSGS[1], Msg("Friday", "There.", "assistant"), MSGS[1], Msg("Eve", "Hm.", "assistant")]
    question = "<|im_start|>user\nWhere?<|im_end|>\n"
    trained = train(msgs, template, [None, 0, None, None], train_on="all", train_generation_prompt=True)
    assert trained == [question, f"\n{question}{HEADER}Hm.<|im_end|>\n"]
    sample = Sample(msgs, weights=[None, None, None, 1], viewer="Friday")
    assert list_trained(tokenize(sample, template, encode)) == ["There.<|im_end|>", "Hm.<|im_end|>"]


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_only_replies_of_the_viewer_are_trained(template: ChatTemplate) -> None:
    msgs = [*MSGS, Msg("Eve", "Hm.", "assistant")]
    sample = Sample(msgs, viewer="Eve")
    assert list_trained(tokenize(sample, template, encode)) == ["Hm.<|im_end|>"]


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_thinking_can_be_left_out(template: ChatTemplate) -> None:
    reply = Msg("Friday", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")
    msgs = [*MSGS[:2], reply, MSGS[1], reply]
    text = "<think>\nHm.\n</think>\n\nThere.<|im_end|>"
    assert train(msgs, template) == [text, text]
    assert train(msgs, template, train_thinking=False) == ["There.<|im_end|>"] * 2


def test_messages_of_users_with_media_are_never_trained() -> None:
    template = ChatTemplate(
        "{% for message in messages %}{% if message.role == 'assistant' %}{% generation %}"
        "{{ message.content }}</s>{% endgeneration %}{% elif message.content is string %}"
        "{{ message.content }}</s>{% else %}"
        "{% for part in message.content %}{{ part.text if part.type == 'text' else '<image>' }}{% endfor %}</s>"
        "{% endif %}{% endfor %}"
    )
    image = Msg("Bob", [ImageBlock(URLSource("https://example.org/a.png")), TextBlock("Where?")], "user")
    msgs = [image, Msg("Friday", "There.", "assistant"), Msg("Bob", "Thanks.", "user")]
    assert train(msgs, template, train_on="all") == ["There.</s>Thanks.</s>"]


def test_a_tag_template_trains_no_tags_before_replies() -> None:
    tags = {"user": ("U: ", "\n"), "assistant": ("A: ", "</s>\n")}
    template = ChatTemplate.from_tags(tags)
    msgs = [MSGS[1], MSGS[4]]
    assert train(msgs, template) == ["There.</s>\n"]
    assert train(msgs, template, train_generation_prompt=True) == ["A: There.</s>\n"]


@each_case("texts", [("Say A: ", "There."), ("Where?", "A: There."), ("A: ", "A: "), ("Where?", "")])
def test_texts_that_repeat_a_tag_change_no_mask(texts: tuple[str, str]) -> None:
    template = ChatTemplate.from_tags({"user": ("Q: ", ""), "assistant": ("A: ", "\n")})
    msgs = [Msg("Bob", texts[0], "user"), Msg("Friday", texts[1], "assistant")]
    assert train(msgs, template, stop_tokens=[]) == [texts[1] + "\n"]
    assert train(msgs, template, train_generation_prompt=True, stop_tokens=[]) == [f"A: {texts[1]}\n"]


@each_case("name", ["tools", "validate", "add_generation_prompt", "continue_final_message", "strftime_now"])
def test_variables_of_a_row_cannot_be_options(name: str) -> None:
    sample = Sample(MSGS, extra={"chat_template_kwargs": {name: None}})
    with pytest.raises(MessageError, match=f"extra.chat_template_kwargs.{name}: `tokenize` sets"):
        tokenize(sample, MARKED, encode)


def test_the_clock_of_a_row_is_replaced_by_now() -> None:
    sample = Sample(MSGS, extra={"chat_template_kwargs": {"strftime_now": None}})
    with pytest.raises(
        MessageError, match=r"^extra\.chat_template_kwargs\.strftime_now: .* Pass the time as `now`\."
    ):
        split_rewritten(sample, UNMARKED)


def test_the_time_of_a_sample_is_iso_text() -> None:
    template = ChatTemplate(f"{{{{ strftime_now('%Y') }}}}{UNMARKED.jinja}", name="clock")

    def read_year(value: Any) -> str:
        sample = Sample(MSGS, extra={"chat_template_kwargs": {"now": value}})
        assert [*split_rewritten(sample, template)] == [sample]
        return decode(tokenize(sample, template, encode).ids)[:4]

    assert read_year("2001-01-02") == "2001"
    assert read_year("2001-01-02T03:04:05.000006+02:00") == "2001"
    assert read_year(None) == f"{datetime.now():%Y}"
    for value in ("yesterday", 2001):
        with pytest.raises(MessageError, match=r"kwargs\.now: expected a time as ISO 8601 text"):
            read_year(value)


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_a_variable_can_have_the_name_of_a_parameter(template: ChatTemplate) -> None:
    for name in ("self", "text"):
        sample = Sample(MSGS, extra={"chat_template_kwargs": {name: "x"}})
        assert tokenize(sample, template, encode) == tokenize(Sample(MSGS), template, encode)
        assert split_rewritten(sample, template) == [sample]
    sample = Sample(MSGS, extra={"chat_template_kwargs": {"chat_template": ["x"]}})
    with pytest.raises(OptionError, match="chat_template: expected"):
        tokenize(sample, template, encode)


def test_a_stop_token_outside_the_marked_text_is_trained() -> None:
    text = (MARKED.jinja or "").replace("<|im_end|>{%- endgeneration %}", "{%- endgeneration %}<|im_end|>")
    template = ChatTemplate(text, name="stop outside")
    assert template.check().ends_with_stop_token is False
    assert train(MSGS, template) == [CALL_TEXT, "There.<|im_end|>"]


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_the_stop_token_after_a_reply_that_was_cut_off_is_not_trained(template: ChatTemplate) -> None:
    reply = replace(MSGS[4], metadata={"reply": {"finish_reason": "length"}})
    assert train([*MSGS[:4], reply], template) == [CALL_TEXT, "There."]
    tokenized = tokenize(Sample([*MSGS[:4], reply], tokens={4: [5000]}), template, encode)
    assert list_trained(tokenized) == [CALL_TEXT, "\u1388"]


def test_a_rewritten_reply_that_was_cut_off_does_not_matter_if_it_is_not_trained() -> None:
    reply = ThinkingBlock("Hm."), TextBlock("There")
    cut_off = Msg("Friday", [*reply], "assistant", metadata={"reply": {"finish_reason": "length"}})
    msgs = [MSGS[1], cut_off, MSGS[1], Msg("Friday", [*reply], "assistant")]
    texts = [list_trained(tokenize(part, THINKING, encode)) for part in split_rewritten(Sample(msgs), THINKING)]
    text = "<think>\nHm.\n</think>\n\nThere"
    assert texts == [[text], [text + "<|im_end|>"]]


def test_a_block_that_the_template_requires_has_its_weight() -> None:
    source = (UNMARKED.jinja or "").replace(
        "{%- for message in messages %}",
        "{%- for message in messages %}{%- if not message.content %}{{ raise_exception('no text') }}{% endif %}",
        1,
    )
    template = ChatTemplate(source, name="strict", special_tokens=UNMARKED.special_tokens)
    reply = Msg("Friday", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")
    assert train([MSGS[1], reply], template, [None, [1, 0]]) == ["<think>\nHm.\n</think>\n\n"]
    source = source.replace("not message.content", "message.role == 'assistant' and not message.tool_calls")
    template = ChatTemplate(source, name="strict")
    with pytest.raises(
        MessageError, match=r"msgs\[1\]\.content\[1\]: the chat template 'strict' refuses the conv"
    ):
        train([MSGS[1], CALL], template, [None, [1, 0]])


def test_recorded_token_ids_of_a_reply_without_text_are_an_error() -> None:
    sample = Sample([MSGS[1], Msg("Friday", "", "assistant"), *MSGS[1:2], MSGS[4]], tokens={1: [7]})
    with pytest.raises(MessageError, match=r"msgs\[1\]: the chat template writes no text for the reply"):
        tokenize(sample, ChatTemplate.builtin("mistral"), encode, stop_tokens=[])


def test_a_template_that_repeats_the_system_text_trains_the_first_user_text() -> None:
    template = ChatTemplate.builtin("torchtune_llama_2")
    msgs = [SYSTEM, *[Msg("Bob", "Where?", "user"), Msg("Friday", "There.", "assistant")] * 2]
    (trained,) = train(msgs, template, train_on="all", stop_tokens=[])
    assert trained.startswith("Where? [/INST] There.[INST] <<SYS>>\nBe brief.")
    assert trained.endswith("Where? [/INST] There.")


def test_the_bos_token_is_never_trained() -> None:
    text = "<s>{% for message in messages %}{{ message.role }}: {{ message.content }}</s>{% endfor %}"
    template = ChatTemplate(text, special_tokens={"bos_token": "<s>", "eos_token": "</s>"})
    assert train(MSGS[1:2], template, train_on="all") == ["user: Where?</s>"]


def test_a_reply_that_the_template_leaves_open_trains_no_generation_prompt() -> None:
    template = ChatTemplate(
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% if m.content %};{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}[assistant]{% endif %}"
    )
    assert train([MSGS[1], MSGS[4]], template) == ["There.;"]
    assert train([MSGS[1], Msg("Friday", "", "assistant")], template) == []


def test_a_user_message_with_the_weight_1_trains_no_system_prompt_and_no_tools() -> None:
    default = "{%- if messages[0].role != 'system' %}<|im_start|>system\nYou are Q.<|im_end|>\n{% endif %}"
    template = ChatTemplate(default + (UNMARKED.jinja or ""), special_tokens={"eos_token": "<|im_end|>"})
    texts = ["<|im_start|>user\nWhere?<|im_end|>\n", "There.<|im_end|>"]
    assert train([MSGS[1], MSGS[4]], template, [1, None]) == texts
    assert train([MSGS[1], MSGS[4]], UNMARKED, [1, None]) == texts


def test_variables_of_the_template_are_passed() -> None:
    template = ChatTemplate("{{ mode }}{% generation %}{{ messages[-1].content }}{% endgeneration %}")
    sample = Sample(MSGS[-1:], extra={"chat_template_kwargs": {"mode": "fast"}})
    assert decode(tokenize(sample, template, encode, stop_tokens=[]).ids) == "fastThere."


def test_a_generation_prompt_that_opens_thinking_is_not_trained() -> None:
    text = (UNMARKED.jinja or "").replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
    template = ChatTemplate(text, name="open thinking")
    reply = Msg("Friday", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")
    assert train([*MSGS[:2], reply], template) == ["Hm.\n</think>\n\nThere.<|im_end|>"]
    assert train([*MSGS[:2], MSGS[4]], template) == ["There.<|im_end|>"]


_texts = st.text(st.characters(codec="utf-8", exclude_characters="<>"), max_size=12)


def _create_reply(thinking: str, text: str, name: str) -> Msg:
    return Msg("Friday", [ThinkingBlock(thinking), TextBlock(text), ToolUseBlock("c", name, {})], "assistant")


_replies = st.builds(_create_reply, _texts.filter(str.strip), _texts, st.sampled_from(["look", "find"]))


@given(st.lists(st.tuples(_texts, _replies, _texts), min_size=1, max_size=4), st.sampled_from([MARKED, UNMARKED]))
@examples(60)
def test_what_is_not_trained_is_template_text_and_the_text_of_others(
    turns: list[tuple[str, Msg, str]], template: ChatTemplate
) -> None:
    msgs = [
        msg
        for user, reply, output in turns
        for msg in (Msg("Bob", user, "user"), reply, Msg("tool", [ToolResultBlock("c", "", output)], "system"))
    ]
    tokenized = tokenize(Sample(msgs), template, encode)
    trained = list_trained(tokenized)
    assert len(trained) == len(turns)
    for text, (_, reply, _) in zip(trained, turns, strict=True):
        assert text.startswith("<think>\n")
        assert text.endswith("</tool_call><|im_end|>")
        assert reply.thinking in text
        assert reply.text in text
    rest = [0] * len(tokenized.ids)
    for start, end in tokenized.spans:
        rest[start:end] = [1] * (end - start)
    assert rest == tokenized.loss_mask
    kept = decode([id for id, mask in zip(tokenized.ids, tokenized.loss_mask, strict=True) if not mask])
    expected = "".join(
        f"<|im_start|>user\n{user}<|im_end|>\n{HEADER}\n<|im_start|>tool\n{output}<|im_end|>\n"
        for user, _, output in turns
    )
    assert kept == expected
    ignored = [-100 if not mask else id for id, mask in zip(tokenized.ids, tokenized.loss_mask, strict=True)]
    assert tokenized.labels == ignored


# -- tokens ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return create_tokenizer(["Where is the tower? It is there, near the river.", "Grüße, 谢谢"])


def test_a_tokenizer_gives_the_tokens_of_the_whole_text(tokenizer: Any) -> None:
    msgs = [SYSTEM, Msg("Bob", "Where is the tower?", "user"), Msg("Friday", "Grüße, 谢谢 🙂 near!", "assistant")]
    tokenized = tokenize(Sample(msgs), MARKED, tokenizer)
    text = MARKED.render(msgs).text
    assert tokenized.ids == tokenizer.encode(text, add_special_tokens=False).ids
    (start, end), *others = tokenized.spans
    assert not others
    assert (
        tokenizer.decode(tokenized.ids[start:end], skip_special_tokens=False) == "Grüße, 谢谢 🙂 near!<|im_end|>"
    )
    assert tokenized.trained == sum(tokenized.loss_mask) == end - start
    assert tokenized == pickle.loads(pickle.dumps(tokenized))
    assert tokenized.to_dict() == {
        "input_ids": tokenized.ids,
        "labels": tokenized.labels,
        "loss_mask": tokenized.loss_mask,
    }


def test_a_token_that_begins_before_the_reply_is_not_trained() -> None:
    template = ChatTemplate.from_tags({"user": ("U: ", "\n"), "assistant": ("A: ", "")})
    msgs = [Msg("Bob", "Where is it?", "user"), Msg("Friday", "the river", "assistant")]
    for trim, prefix in product((False, True), repeat=2):
        tokenizer = create_tokenizer(["A: the river the river the"], trim=trim)
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
        tokenized = tokenize(Sample(msgs), template, tokenizer, stop_tokens=[])
        trained = [id for id, mask in zip(tokenized.ids, tokenized.loss_mask, strict=True) if mask]
        assert tokenizer.decode(trained) == " river"


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_tags_that_are_always_written_are_not_trained_without_thinking(template: ChatTemplate) -> None:
    source = (template.jinja or "").replace("{%- if message.reasoning_content %}<think>", "<think>")
    source = source.replace("</think>\n\n{% endif %}", "</think>\n\n")
    call = Msg("Friday", [ThinkingBlock("Hm."), *CALL.blocks[1:]], "assistant")
    for prompt in ("assistant\n", "assistant\n<think>\n"):
        always = ChatTemplate(source.replace("assistant\n{% endif %}", prompt + "{% endif %}"), name="thinks")
        for thought in (None, "Hm.", "A </think> B", "There."):
            reply = MSGS[4]
            if thought is not None:
                reply = Msg("Friday", [ThinkingBlock(thought), TextBlock("There.")], "assistant")
            msgs = [MSGS[1], reply, MSGS[1], MSGS[4], MSGS[1], call]
            trained = train(msgs, always, train_thinking=False)
            assert trained == ["There.<|im_end|>"] * 2 + [CALL_TEXT.removeprefix("Wait.")]
            assert "</think>" in train([MSGS[1], call], always)[0]


def test_a_channel_of_thinking_is_not_trained_without_thinking() -> None:
    source = (
        "{% for message in messages %}{% if message.reasoning_content %}<|start|>assistant<|channel|>analysis"
        "<|message|>{{ message.reasoning_content }}<|end|>{% endif %}<|start|>{{ message.role }}"
        "{% if message.role == 'assistant' %}<|channel|>final{% endif %}<|message|>{{ message.content }}<|end|>"
        "{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
    )
    template = ChatTemplate(source, name="channels")
    reply = Msg("Friday", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")
    trained = ["<|channel|>final<|message|>There.<|end|>"] * 2
    assert train([MSGS[1], reply] * 2, template, train_thinking=False) == trained
    assert train([MSGS[1], MSGS[4]] * 2, template, train_thinking=False) == trained


# -- stop tokens that the template does not write ----------------------------------------------------------------

NEXT_TURN: Final = ChatTemplate(
    "{% for message in messages %}{% if message.role == 'tool' %}<|observation|>{{ message.content }}"
    "{% else %}<|{{ message.role }}|>{{ message.content }}{% for call in message.tool_calls or [] %}"
    "<tool_call>{{ call.function.name }}{{ call.function.arguments | tojson }}</tool_call>{% endfor %}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    name="next turn",
)
"""Layout of GLM-4.5: the tag of the next turn ends a reply."""
STOPS: Final = ["<|endoftext|>", "<|user|>", "<|observation|>"]


def test_the_tag_of_the_next_turn_can_be_the_stop_token() -> None:
    call = 'Wait.<tool_call>look{"q": 1}</tool_call><|observation|>'
    for count in (3, 4, 5):
        texts = [call] if count < 5 else [call, "There.<|user|>"]
        assert train(MSGS[:count], NEXT_TURN, stop_tokens=STOPS) == texts
        assert train(MSGS[:count], NEXT_TURN, stop_tokens=STOPS, train_on="last") == texts[-1:]
    msgs = [*MSGS, *MSGS[1:2], MSGS[4]]
    assert train(msgs, NEXT_TURN, stop_tokens=STOPS) == [call, "There.<|user|>", "There.<|user|>"]
    assert train(msgs, NEXT_TURN, stop_tokens=["</s>"], train_on="last") == ["There.</s>"]
    assert train(msgs, NEXT_TURN, weights=[*[None] * 6, 0], stop_tokens=STOPS) == [call, "There.<|user|>"]
    cut_off = Msg("Friday", "There", "assistant", metadata={"reply": {"finish_reason": "length"}})
    assert train([*MSGS[:2], cut_off], NEXT_TURN, stop_tokens=STOPS) == ["There"]
    assert train(MSGS, MARKED, stop_tokens=STOPS) == train(MSGS, MARKED)


def test_the_stop_token_follows_recorded_token_ids() -> None:
    sample = Sample([*MSGS, *MSGS[1:2], MSGS[4]], tokens={4: [7, 8]})
    tokenized = tokenize(sample, NEXT_TURN, encode, stop_tokens=STOPS)
    assert list_trained(tokenized)[1:] == ["\x07\x08", "There.<|user|>"]
    assert not tokenized.losses


def test_a_reply_without_a_stop_token_is_an_error() -> None:
    reason = "the chat template 'next turn' writes no stop token after the reply"
    with pytest.raises(MessageError, match=rf"msgs\[2\]: {reason}. Pass stop_tokens="):
        train(MSGS, NEXT_TURN)
    tokenized = tokenize(Sample(MSGS), NEXT_TURN, encode, stop_tokens=[])
    assert list_trained(tokenized)[-1] == "There."
    assert tokenized.losses == [("msgs[2]", reason), ("msgs[4]", reason)]
    tokenized = tokenize(Sample(MSGS), NEXT_TURN, encode, stop_tokens=["</s>"])
    assert tokenized.losses == [("msgs[2]", reason)]
    assert train(MSGS, NEXT_TURN, weights=[None, None, 0, None, 0]) == []
    for value in ("<|user|>", [1], [""]):
        with pytest.raises(OptionError, match="stop_tokens"):
            train(MSGS, NEXT_TURN, stop_tokens=value)


def test_a_kind_of_reply_without_a_stop_token_is_a_loss() -> None:
    end = "{{- '<|im_end|>' if not message.tool_calls }}"
    template = ChatTemplate((UNMARKED.jinja or "").replace("{% endfor %}<|im_end|>", f"{{% endfor %}}{end}"))
    msgs = [MSGS[1], CALL, MSGS[3], Msg("Friday", "There.", "assistant")]
    assert template.check().stop_token == "<|im_end|>"
    spaced = ChatTemplate((template.jinja or "").replace("</tool_call>", " done"))
    reason = "writes no stop token after the reply"
    losses = tokenize(Sample(msgs), spaced, encode).losses
    assert [place for place, text in losses if reason in text] == ["msgs[1]"]
    assert tokenize(Sample(msgs), template, encode).losses == []  # the model can end the call with </tool_call>


# -- content that the template does not write --------------------------------------------------------------------


def test_content_of_trained_replies_that_is_not_written_is_a_loss() -> None:
    plain = ChatTemplate.builtin("chatml")
    reply = Msg("Friday", [ThinkingBlock("There."), TextBlock("There.")], "assistant")
    msgs = [*MSGS[:2], reply, *MSGS[1:2], reply]

    def list_places(template: ChatTemplate, msgs: list[Msg], weights: Any = None, **options: Any) -> list[str]:
        sample = Sample(msgs, weights=weights, tokens=options.pop("tokens", None))
        return [place for place, _ in tokenize(sample, template, encode, **options).losses]

    assert list_places(UNMARKED, msgs) == list_places(MARKED, msgs) == list_places(UNMARKED, MSGS) == []
    assert list_places(plain, msgs) == ["msgs[2].content[0]", "msgs[4].content[0]"]
    assert list_places(plain, msgs, train_on="last") == ["msgs[4].content[0]"]
    assert list_places(plain, msgs, train_thinking=False) == []
    assert list_places(plain, msgs, [None, None, 0, None, 1]) == ["msgs[4].content[0]"]
    assert list_places(plain, msgs, [None, None, 0, None, [0, 1]]) == []
    assert list_places(plain, msgs, tokens={2: [7]}) == ["msgs[4].content[0]"]
    image = Msg("Friday", [TextBlock("There."), ImageBlock(URLSource("https://example.org/a.png"))], "assistant")
    assert list_places(UNMARKED, [*MSGS[:2], image]) == ["msgs[2].content[1]"]
    only_calls = ChatTemplate(
        (UNMARKED.jinja or "")
        .replace("{{- message.content }}<tool", "{{- message.content if not message.tool_calls }}<tool")
        .replace(
            "{{- message.content }}{%- for call", "{{- message.content if not message.tool_calls }}{%- for call"
        ),
        name="only calls",
    )
    long = Msg("Friday", [TextBlock("look"), *CALL.blocks[1:]], "assistant")
    for msg in (CALL, long):  # the text `look` is also the name of the tool
        assert list_places(only_calls, [*MSGS[:2], msg, *MSGS[3:]]) == ["msgs[2].content[0]"]
    late = Msg("Friday", [TextBlock("There."), ThinkingBlock("Hm.")], "assistant")
    assert list_places(UNMARKED, [*MSGS[:2], late]) == []  # the template writes the thinking first
    quoted = ChatTemplate(
        UNMARKED.jinja.replace("{{- message.content }}{%- for", "{{- message.content | tojson }}{%- for")
        if UNMARKED.jinja
        else ""
    )
    assert list_places(quoted, [*MSGS[:2], Msg("Friday", 'A "b".', "assistant")]) == []


@pytest.mark.parametrize("template", [MARKED, UNMARKED])
def test_a_stop_token_that_contains_the_next_white_space_is_trained(template: ChatTemplate) -> None:
    tokenizer = create_tokenizer(["Where is it?"], rstrip=True)  # as <|end|> of Phi-3
    msgs = [Msg("Bob", "Where?", "user"), Msg("Friday", "There.", "assistant")] * 2
    tokenized = tokenize(Sample(msgs), template, tokenizer)
    text = template.render(msgs).text
    assert tokenized.ids == tokenizer.encode(text, add_special_tokens=False).ids
    trained = [tokenizer.decode(tokenized.ids[a:b], skip_special_tokens=False) for a, b in tokenized.spans]
    assert trained == ["There.<|im_end|>"] * 2
    weighted = tokenize(Sample(msgs, weights=[1, None, 1, None]), template, tokenizer)
    assert len(weighted.spans) == 3  # the first reply and the second question are adjacent
    first = slice(*tokenized.spans[0])
    assert tokenize(Sample(msgs, tokens={1: tokenized.ids[first]}), template, tokenizer) == tokenized


@pytest.mark.parametrize("template", [MARKED, UNMARKED])
def test_the_stop_token_of_a_blank_reply_is_trained_if_its_token_contains_white_space(
    template: ChatTemplate,
) -> None:
    for text, trim, rstrip in product(("", " ", "\n", "There."), (False, True), (False, True)):
        tokenizer = create_tokenizer(["Where is it?"], trim=trim, lstrip=True, rstrip=rstrip)
        tokenized = tokenize(Sample([MSGS[1], Msg("Friday", text, "assistant")] * 2), template, tokenizer)
        trained = [tokenizer.decode(tokenized.ids[a:b], skip_special_tokens=False) for a, b in tokenized.spans]
        assert trained == [text.strip() + "<|im_end|>"] * 2


def test_a_tokenizer_that_cuts_pads_or_splits_is_refused() -> None:
    tokenizer = create_tokenizer(["Where?"])
    tokenizer.enable_truncation(5)
    with pytest.raises(OptionError, match=r"the tokenizer has truncation enabled. Call no_truncation\(\)"):
        tokenize(Sample(MSGS), MARKED, tokenizer)
    tokenizer.no_truncation()
    tokenizer.enable_padding(length=500)
    with pytest.raises(OptionError, match="the tokenizer has padding enabled"):
        tokenize(Sample(MSGS), MARKED, tokenizer)
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    with pytest.raises(OptionError, match="the tokenizer encodes special tokens as ordinary text"):
        tokenize(Sample(MSGS), MARKED, tokenizer)


def cut(text: str, max_tokens: int, side: Any, template: ChatTemplate = MARKED) -> tuple[str, str]:
    sample = Sample([Msg("Bob", "W?", "user"), Msg("Friday", text, "assistant")])
    tokenized = tokenize(sample, template, encode, max_tokens=max_tokens, side=side)
    return decode(tokenized.ids), "".join(map(str, tokenized.loss_mask))


def test_truncation_replaces_the_last_token_by_the_stop_token() -> None:
    template = replace(MARKED, special_tokens={"eos_token": "$"})
    whole = "<|im_start|>user\nW?<|im_end|>\n<|im_start|>assistant\nThere.<|im_end|>\n"
    assert cut("There.", len(whole), "right", template)[0] == whole
    assert cut("There.", 54, "right", template) == (whole[:53] + "$", "0" * 52 + "10")
    assert cut("There.", 12, "left", template) == (whole[-12:-1] + "$", "1" * 11 + "0")
    assert cut("There.", 12, "left") == (whole[-12:], "1" * 11 + "0")
    assert cut("There.", 54, "right") == (whole[:54], "0" * 52 + "11")


def _truncate(tokens: list[int], size: int, side: str, eos: int | None) -> list[int]:
    """Returns the tokens that remain: the first or the last ones, of which the last becomes the token eos."""
    remaining = tokens[:size] if side == "right" else tokens[max(len(tokens) - size, 0) :]
    return [*remaining[:-1], eos] if eos is not None and len(tokens) > size else remaining


@given(_texts, st.integers(1, 90), st.sampled_from(["right", "left"]), st.sampled_from(["$", "<|im_end|>", None]))
@examples(200)
def test_truncation_keeps_the_tokens_and_the_mask_of_one_end(
    text: str, size: int, side: Any, token: str | None
) -> None:
    """torchtune has the parameter `side` since 0.7, in `torchtune.data.truncate`."""
    template = replace(UNMARKED, special_tokens={} if token is None else {"eos_token": token})
    sample = Sample([Msg("Bob", text, "user"), Msg("Friday", text + "!", "assistant"), *MSGS[1:2], MSGS[4]])
    whole = tokenize(sample, template, encode)
    cut = tokenize(sample, template, encode, max_tokens=size, side=side)
    eos = ord("$") if token == "$" else None  # a text of several tokens replaces no token
    assert cut.ids == _truncate(whole.ids, size, side, eos)
    is_replaced = len(whole.ids) > size and eos is not None and _truncate(whole.ids, size, side, None)[-1] != eos
    mask = _truncate(whole.loss_mask, size, side, None)
    assert cut.loss_mask == ([*mask[:-1], 0] if is_replaced else mask)
    assert cut.labels == [id if bit else -100 for id, bit in zip(cut.ids, cut.loss_mask, strict=True)]
    trained = {place for start, end in cut.spans for place in range(start, end)}
    assert trained == {place for place, bit in enumerate(cut.loss_mask) if bit}
    assert cut.trained == len(trained)
    assert tokenize(sample, template, encode, max_tokens=len(whole.ids), side=side) == whole


# -- recorded tokens ---------------------------------------------------------------------------------------------

STOP: Final = [ord(character) for character in "<|im_end|>"]


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED})
def test_recorded_token_ids_replace_the_text_of_a_reply(template: ChatTemplate) -> None:
    text = template.render(MSGS).text
    stopped = tokenize(Sample(MSGS, tokens={2: [5000, 5001, *STOP]}), template, encode)
    assert decode(stopped.ids) == text.replace(CALL_TEXT, "\u1388\u1389<|im_end|>")
    assert list_trained(stopped) == ["\u1388\u1389<|im_end|>", "There.<|im_end|>"]
    cut_off = tokenize(Sample(MSGS, tokens={2: [5000], 4: [5001]}), template, encode)
    assert decode(cut_off.ids) == text.replace(CALL_TEXT, "\u1388<|im_end|>").replace("There.", "\u1389")
    weights = [None, None, 0, None, None]
    hidden = tokenize(Sample(MSGS, weights=weights, tokens={2: [5000, *STOP]}), template, encode)
    assert list_trained(hidden) == ["There.<|im_end|>"]


def test_recorded_token_ids_of_a_rewritten_reply_are_an_error() -> None:
    reply = Msg("Friday", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")
    sample = Sample([MSGS[1], reply, MSGS[1], reply], tokens={1: [5]})
    with pytest.raises(MessageError, match=r"msgs\[1\]: .* Pass each sample that split_rewritten\(\)"):
        tokenize(sample, THINKING, encode)


def test_parts_of_recorded_token_ids_cannot_be_left_out() -> None:
    reply = Msg("Friday", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")
    for sample in (
        Sample([MSGS[1], reply], tokens={1: [5]}),
        Sample([MSGS[1], reply], weights=[None, [0, 1]], tokens={1: [5]}),
    ):
        with pytest.raises(MessageError, match=r"msgs\[1\]: parts of a reply with recorded token ids"):
            tokenize(sample, MARKED, encode, train_thinking=False)


# -- errors ------------------------------------------------------------------------------------------------------


def test_a_template_that_rewrites_earlier_replies_is_an_error() -> None:
    reply = Msg("Friday", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")
    with pytest.raises(
        MessageError, match=r"msgs\[1\]: the chat template 'thinking' changes the text of earlier messages"
    ) as error:
        train([MSGS[1], reply, MSGS[1], reply], THINKING)
    assert "split_rewritten" in error.value.advice


def test_a_first_reply_needs_a_generation_prompt() -> None:
    assert train([MSGS[4]], UNMARKED) == ["There.<|im_end|>"]
    with pytest.raises(MessageError, match=r"msgs\[0\]: the conversation starts with a reply"):
        train([MSGS[4]], ChatTemplate("{{ messages[0].content }}", name="bare"))


@each_case(
    ("options", "error", "text"),
    {
        "train_on": ({"train_on": "user"}, OptionError, "train_on: unknown value 'user'"),
        "side": ({"side": "top"}, OptionError, "side: unknown value 'top'"),
        "max_tokens": ({"max_tokens": 0}, OptionError, "max_tokens: must be an integer of at least 1"),
    },
)
def test_an_invalid_option_is_an_error(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        train(MSGS, **options)


def test_an_invalid_encoder_is_an_error() -> None:
    with pytest.raises(OptionError, match="encode: expected a tokenizer or a function, got 'gpt'"):
        tokenize(Sample(MSGS), MARKED, "gpt")
    with pytest.raises(OptionError, match=r"encode: expected token ids and offsets, got \[1, 2, 3\]"):
        tokenize(Sample(MSGS), MARKED, lambda _: [1, 2, 3])  # type: ignore[return-value]
    with pytest.raises(
        OptionError, match="encode: expected one offset for each token, got 1 tokens and 0 offsets"
    ):
        tokenize(Sample(MSGS), MARKED, lambda _: ([1], []))
    with pytest.raises(
        OptionError, match=r"encode: expected the last token to end at a position from 1 to .*, got"
    ):
        tokenize(Sample(MSGS), MARKED, lambda _: ([1, 2], [(0, 1), (1, 10_000)]))
    with pytest.raises(OptionError, match=r"got 0. Return the token ids without added special tokens"):
        tokenize(Sample(MSGS), MARKED, lambda text: ([1, 2], [(0, len(text)), (0, 0)]))


def test_offsets_can_be_lists_and_ids_can_be_of_another_type() -> None:
    def encode_text(text: str) -> Any:
        ids, offsets = encode(text)
        return deque(map(float, ids)), [[start, end] for start, end in offsets]

    tokenized = tokenize(Sample(MSGS), UNMARKED, encode_text)
    assert tokenized == tokenize(Sample(MSGS), UNMARKED, encode)
    assert {type(id) for id in tokenized.ids} == {int}


@each_case(
    "pair", [([1], [None]), ([1], None), ([1, 2], [(0, 1), None]), ([1], iter([(0, 1)])), (["a"], [(0, 1)])]
)
def test_ids_and_offsets_of_a_wrong_type_are_an_error(pair: Any) -> None:
    with pytest.raises(OptionError, match="encode: expected token ids and offsets, got"):
        tokenize(Sample(MSGS), UNMARKED, lambda _: pair)


def test_a_tool_result_with_other_content_is_an_error() -> None:
    mixed = Msg("tool", [ToolResultBlock("c1", "look", "found"), TextBlock("Hm.")], "system")
    with pytest.raises(MessageError, match=r"msgs\[3\]: the message has a tool result and other content"):
        train([*MSGS[:3], mixed], MARKED)


def test_a_sample_without_replies_trains_nothing() -> None:
    assert tokenize(Sample(MSGS[:2]), MARKED, encode).trained == 0
    assert isinstance(tokenize(Sample(MSGS[:2]), UNMARKED, encode), TokenizedSample)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20))),
)
@examples(100)
def test_spans_are_subtracted_as_sets_of_places(spans: list[Span], excluded: list[Span]) -> None:
    remaining = subtract_spans(spans, excluded)
    places = _list_places(spans) - _list_places(excluded)
    assert _list_places(remaining) == places
    assert remaining == sorted(remaining)


def _list_places(spans: list[Span]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}


def test_a_reply_whose_tool_calls_the_template_does_not_write_is_an_error() -> None:
    call = Msg("Friday", [ToolUseBlock("c", "look", {})], "assistant")
    msgs = [Msg("Bob", "Look.", "user"), call, Msg("tool", [ToolResultBlock("c", "look", "x")], "system")]
    msgs.append(Msg("Friday", "An x.", "assistant"))
    template = ChatTemplate.builtin("chatml")
    with pytest.raises(MessageError, match=r"^msgs\[1\]: .* does not write the tool calls of the reply"):
        tokenize(Sample(msgs), template, encode)
    last = tokenize(Sample(msgs), template, encode, train_on="last")
    weighted = tokenize(Sample(msgs, weights=[None, 0, None, 1]), template, encode)
    for tokenized in (last, weighted):
        assert bytes(i for i in tokenized.labels if i >= 0).decode() == "An x.<|im_end|>"


def test_a_call_of_another_agent_that_is_trained_and_not_written_is_an_error() -> None:
    call = Msg("Eve", [ToolUseBlock("c", "look", {})], "assistant")
    msgs = [Msg("Bob", "Look.", "user"), call, Msg("tool", [ToolResultBlock("c", "look", "x")], "system")]
    msgs.append(Msg("Friday", "An x.", "assistant"))
    template = ChatTemplate.builtin("chatml")
    for sample in (Sample(msgs, viewer="Friday"), Sample(msgs, viewer="Friday", weights=[None, [1], None, None])):
        with pytest.raises(MessageError, match=r"^msgs\[1\]: .* does not write the tool calls of the reply"):
            tokenize(sample, template, encode, train_on="assistant" if sample.weights else "all")
