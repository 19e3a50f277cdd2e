"""`samples_from_log`: one sample for each reply, with the prompt that the formatter sent."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from itertools import chain
from typing import Any, Final

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    Base64Source,
    Budget,
    BudgetError,
    ChatHistory,
    EmptyConversationError,
    ImageBlock,
    MessageError,
    Msg,
    MultiAgentHistory,
    OptionError,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    load_provider,
)
from agentkit.chat_templates import ChatTemplate
from agentkit.training import Sample, dump_rows, load_rows, samples_from_log, split_rewritten, tokenize
from tests.cases import each_case
from tests.profiles import examples
from tests.training.templates import MARKED, THINKING, UNMARKED, decode, encode, list_trained

IMAGE: Final = ImageBlock(
    Base64Source(
        "image/png",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    )
)


def look(q: int) -> str:
    """Looks."""
    return str(q)


LOG: Final = [
    Msg("system", "Be brief.", "system"),
    Msg("Bob", "Where?", "user"),
    Msg("Eve", "Hm.", "assistant"),
    Msg("Friday", [ThinkingBlock("Look."), ToolUseBlock("c1", "look", {"q": 1})], "assistant"),
    Msg("tool", [ToolResultBlock("c1", "look", "found")], "system"),
    Msg("Friday", "There.", "assistant"),
    Msg("Eve", "Thanks.", "assistant"),
    Msg("Friday", "Bye.", "assistant"),
]
VIEWER: Final = MultiAgentHistory(viewer="Friday")


def test_each_reply_of_each_agent_becomes_a_sample() -> None:
    samples = list(samples_from_log(LOG))
    assert [(sample.viewer, sample.source) for sample in samples] == [
        ("Eve", "msgs[2]"),
        ("Friday", "msgs[3]"),
        ("Friday", "msgs[5]"),
        ("Eve", "msgs[6]"),
        ("Friday", "msgs[7]"),
    ]
    weights = [None, None, 0, 0, None, 1]
    assert samples[2] == Sample(LOG[:6], weights=weights, viewer="Friday", source="msgs[5]")


def test_recorded_token_ids_come_from_the_metadata() -> None:
    reply = Msg("Friday", "There.", "assistant", metadata={"token_ids": [5, 6]})
    (sample,) = samples_from_log([LOG[1], reply], formatter=MARKED.formatter())
    assert sample.tokens == {1: (5, 6)}
    assert list_trained(tokenize(sample, MARKED, encode)) == ["\x05\x06<|im_end|>"]


def test_viewers_and_keep_select_samples() -> None:
    assert [sample.source for sample in samples_from_log(LOG, viewers=["Eve"])] == ["msgs[2]", "msgs[6]"]
    assert [sample.source for sample in samples_from_log(LOG, viewers="Eve")] == ["msgs[2]", "msgs[6]"]
    kept = samples_from_log(LOG, keep=lambda sample: "e" in sample.msgs[-1].text)
    assert [sample.msgs[-1].text for sample in kept] == ["There.", "Bye."]


@pytest.mark.parametrize("template", [MARKED, THINKING], ids=["marked", "thinking"])
def test_the_prompt_is_the_request_of_the_formatter(template: ChatTemplate) -> None:
    for sample, index in zip(
        samples_from_log(LOG, formatter=template.formatter(history=VIEWER), tools=[look]),
        (2, 3, 5, 6, 7),
        strict=True,
    ):
        formatter = template.formatter(history=MultiAgentHistory(viewer=LOG[index].name))
        prompt = formatter.lower(LOG[:index], tools=[look]).request["prompt"]
        assert template.render(sample.msgs, tools=sample.tools, add_generation_prompt=False).text.startswith(
            prompt
        )
        (trained,) = list_trained(tokenize(sample, template, encode))
        assert trained.endswith(f"{LOG[index].text or '</tool_call>'}<|im_end|>")


def test_what_a_budget_cut_is_cut() -> None:
    log = [LOG[0], *[msg for index in range(30) for msg in _exchange(index)]]
    formatter = MARKED.formatter(budget=Budget(200, reserve=0))
    samples = list(samples_from_log(log, formatter=formatter))
    prompt = anyio.run(formatter.format, log[:-1])["prompt"]
    assert len(samples) == 30
    assert len(samples[-1].msgs) < 20
    assert MARKED.render(samples[-1].msgs[:-1]).text == prompt


def _exchange(index: int) -> tuple[Msg, Msg]:
    return Msg("user", f"Question {index}?", "user"), Msg("assistant", f"Answer {index}.", "assistant")


@pytest.mark.anyio
async def test_a_budget_is_applied_inside_an_event_loop_too() -> None:
    formatter = MARKED.formatter(budget=Budget(1_000))
    assert len(list(samples_from_log(LOG, formatter=formatter))) == 5


def test_reading_continues_after_a_request_that_does_not_fit() -> None:
    log = [LOG[1], LOG[5], Msg("Bob", "word " * 300, "user"), LOG[5]]
    samples = samples_from_log(log, formatter=MARKED.formatter(budget=Budget(100, reserve=0)))
    assert next(samples).source == "msgs[1]"
    with pytest.raises(BudgetError):
        next(samples)
    assert samples.index == 3
    assert list(samples) == []


def test_variables_of_the_formatter_belong_to_the_sample() -> None:
    formatter = MARKED.formatter(history=ChatHistory())
    formatter.variables = {"enable_thinking": False}
    (sample, *_) = samples_from_log(LOG, formatter=formatter)
    assert sample.variables == {"enable_thinking": False}


def test_the_time_of_the_formatter_belongs_to_the_sample() -> None:
    template = ChatTemplate(f"{{{{ strftime_now('%c') }}}}{MARKED.jinja}", name="clock")
    formatter = template.formatter(variables={"now": datetime(2001, 1, 2, 3)})
    for sample in samples_from_log(LOG[:3], formatter=formatter):
        request = formatter.lower(sample.msgs[:-1]).request
        (stored,) = load_rows("openai", [json.loads(json.dumps(row)) for row in dump_rows("openai", [sample])])
        for item in (sample, stored):
            assert decode(tokenize(item, template, encode).ids).startswith(request["prompt"])


def test_control_tokens_are_spaced_in_samples_as_in_the_requests() -> None:
    log = [Msg("Bob", "Hi.<|im_end|>", "user"), Msg("Friday", "Hello.", "assistant")]
    for template in (MARKED, UNMARKED):
        formatter = template.formatter(on_special_tokens="space")
        (sample,) = samples_from_log(log, formatter=formatter)
        prompt = formatter.lower(log[:1]).request["prompt"]
        assert "Hi.< |im_end|>" in prompt
        assert decode(tokenize(sample, template, encode).ids) == f"{prompt}Hello.<|im_end|>\n"


@each_case("template", {"marked": MARKED, "unmarked": UNMARKED, "thinking": THINKING})
def test_samples_without_control_tokens_are_the_same_with_and_without_spaces(template: ChatTemplate) -> None:
    def list_tokenized(mode: Any) -> list[Any]:
        samples = samples_from_log(LOG, formatter=template.formatter(on_special_tokens=mode))
        parts = [part for sample in samples for part in split_rewritten(sample, template)]
        return [tokenize(part, template, encode) for part in parts]

    assert list_tokenized("space") == list_tokenized("keep")


def test_a_time_zone_whose_name_iso_text_cannot_represent_is_an_error() -> None:
    template = ChatTemplate(f"{{{{ strftime_now('%Z') }}}}{MARKED.jinja}", name="clock")
    now = datetime(2001, 1, 2, tzinfo=timezone(timedelta(hours=1), "CET"))
    with pytest.raises(MessageError, match="writes different texts for the sample and the request"):
        next(samples_from_log(LOG[:3], formatter=template.formatter(variables={"now": now})))


def test_other_formatters_give_their_messages() -> None:
    formatter = load_provider("openai").chat_formatter(history=VIEWER)
    *_, last = samples_from_log(LOG, formatter=formatter, viewers=["Friday"])
    request = formatter.lower(LOG[:7]).request
    users = [message["content"] for message in request["messages"] if message["role"] == "user"]
    texts = [
        [{"type": "text", "text": block.text} for block in msg.blocks if isinstance(block, TextBlock)]
        for msg in last.msgs[:-1]
        if msg.role == "user"
    ]
    assert texts == users
    assert last.msgs[-1].text == "Bye."


PROVIDERS: Final = (
    "anthropic",
    "dashscope",
    "dashscope-compatible",
    "deepseek",
    "gemini",
    "ollama",
    "ollama-raw",
    "openai",
    "openai-completions",
    "openai-responses",
    "vllm",
)


def _ask_again(number: int) -> list[Msg]:
    return [Msg("Bob", f"And {number}? " * 90, "user"), Msg("Friday", "There.", "assistant")]


LONG_LOG: Final = [
    *LOG,
    *chain.from_iterable(map(_ask_again, range(6))),
    Msg("Eve", [TextBlock("I look."), ToolUseBlock("c2", "look", {"q": 2})], "assistant"),
    Msg("tool", [ToolResultBlock("c2", "look", [TextBlock("A map."), IMAGE])], "system"),
    Msg("Ann", [TextBlock("Like this?"), IMAGE], "user"),
    Msg("Eve", "Yes.", "assistant"),
    Msg("Friday", "No.", "assistant"),
]


@pytest.mark.slow
@each_case("history", [ChatHistory(), MultiAgentHistory(), VIEWER])
@each_case("budget", [None, Budget(1_500, reserve=0)])
def test_the_messages_of_each_sample_give_the_request_of_the_formatter(
    history: Any, budget: Budget | None
) -> None:
    """The request is built again from the messages alone, without a history policy and a budget."""
    cuts = 0
    for name in PROVIDERS:
        provider = load_provider(name)
        options: Any = {"template": MARKED} if name in ("ollama-raw", "openai-completions") else {}
        own = provider.chat_formatter("m", history=history, budget=budget, **options)
        plain = provider.chat_formatter("m", history=ChatHistory(), **options)
        samples = list(samples_from_log(LONG_LOG, formatter=own, tools=[look]))
        assert len(samples) == sum(msg.role == "assistant" for msg in LONG_LOG)
        cuts += not any("And 1?" in msg.text for msg in samples[-1].msgs)
        anyio.run(_check_requests, samples, own, plain, history == VIEWER)
    assert (cuts > len(PROVIDERS) / 2) == (budget is not None)


async def _check_requests(samples: list[Sample], own: Any, plain: Any, has_viewer: bool) -> None:
    for sample in samples:
        index = int(str(sample.source)[5:-1])
        if has_viewer:
            own.history = MultiAgentHistory(viewer=sample.viewer)
        served = await own.format(LONG_LOG[:index], tools=[look])
        again = await plain.format(sample.msgs[:-1], tools=sample.tools)
        assert _write_request(again) == _write_request(served), (own, index)


def _write_request(request: Any) -> str:
    """Returns a request as text. Joints that DashScope's formatter adds between texts are omitted."""
    return json.dumps(request, sort_keys=True).replace('"text": "\\n', '"text": "')


def test_call_ids_of_a_reply_are_those_that_the_template_accepts() -> None:
    text = (
        "{% for message in messages %}{% for call in message.tool_calls or [] %}{% if call.id | length != 9 %}"
        "{{ raise_exception('id') }}{% endif %}{{ call.function.name }}{{ call.function.arguments | tojson }}"
        "{% endfor %}[{{ message.role }}]{{ message.content }}</s>{% endfor %}"
    )
    template = ChatTemplate(text, name="nine")
    assert not template.check().any_call_id
    samples = list(samples_from_log(LOG, formatter=template.formatter(), tools=[look], viewers=["Friday"]))
    (first, result) = samples[0].msgs[-1].tool_uses[0].id, samples[1].msgs[-2].tool_results[0].id
    assert first == result
    assert len(first) == 9


def test_a_template_that_depends_on_more_than_its_arguments_is_an_error() -> None:
    numbers = iter(range(1_000_000))
    template = ChatTemplate.from_function(lambda messages, others: f"{len(messages)} {next(numbers)}")
    with pytest.raises(MessageError, match="writes different texts for the sample and"):
        next(samples_from_log(LOG, formatter=template.formatter()))


_words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


def _ask(text: str) -> Msg:
    return Msg("Bob", text, "user")


def _reply(name: str, text: str) -> Msg:
    return Msg(name, text, "assistant")


def _call(name: str, text: str) -> Msg:
    return Msg(name, [TextBlock(text), ToolUseBlock("c", "look", {"q": 1})], "assistant")


def _answer(text: str) -> Msg:
    return Msg("tool", [ToolResultBlock("c", "look", text)], "system")


_speakers = st.sampled_from(["Friday", "Eve"])
_messages = st.one_of(
    st.builds(_ask, _words),
    st.builds(_reply, _speakers, _words),
    st.builds(_call, _speakers, _words),
    st.builds(_answer, _words),
)


@given(st.lists(_messages, min_size=1, max_size=7))
@examples(80)
def test_each_sample_starts_with_the_request(log: list[Msg]) -> None:
    msgs = [LOG[0], *log]
    formatter = MARKED.formatter(history=VIEWER)
    if not any(msg.role == "assistant" for msg in log):
        return
    for sample in samples_from_log(msgs, formatter=formatter, tools=[look]):
        index = int(str(sample.source)[5:-1])
        own: Any = MARKED.formatter(history=MultiAgentHistory(viewer=sample.viewer))
        prompt = own.lower(msgs[:index], tools=[look]).request["prompt"]
        assert MARKED.render(sample.msgs, tools=sample.tools, add_generation_prompt=False).text.startswith(prompt)
        assert tokenize(sample, MARKED, encode).trained


def test_invalid_arguments_are_errors() -> None:
    with pytest.raises(OptionError, match="viewers: no agent with the name 'Bob' wrote a reply in the log"):
        samples_from_log(LOG, viewers=["Bob"])
    with pytest.raises(OptionError, match="viewers: expected Collection, got int 1"):
        samples_from_log(LOG, viewers=1)  # type: ignore[arg-type]
    with pytest.raises(EmptyConversationError):
        samples_from_log([])
    invalid: Any = "openai"
    with pytest.raises(OptionError, match="formatter: expected FormatterBase"):
        samples_from_log(LOG, formatter=invalid)


def test_the_texts_of_a_frame_are_joined_as_the_template_joins_them() -> None:
    msgs = [Msg("Bob", "Hello.", "user"), Msg("Eve", "Hi.", "user"), Msg("Friday", "Yes?", "assistant")]
    formatter = ChatTemplate.builtin("chatml").formatter(history=VIEWER)
    (sample,) = samples_from_log(msgs, viewers=["Friday"], formatter=formatter)
    assert all(isinstance(msg.content, str) for msg in sample.msgs)
    (row,) = dump_rows("trl", [sample])
    assert [message["content"] for message in row["prompt"]] == [sample.msgs[0].content]
