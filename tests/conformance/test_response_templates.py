"""Response templates: the thinking, texts and calls equal those of transformers, except for the differences below.

The response templates are the built-in ones, and those of trl. The environment variable AGENTKIT_TRAINING names
the interpreter of an environment in which trl is installed.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, TextBlock, ThinkingBlock, Tool, ToolUseBlock
from agentkit.chat_templates import ChatTemplate, ResponseTemplate
from agentkit.chat_templates.responses.response_template import RESPONSE_NAMES
from tests.chat_templates.reply_texts import CITY, REPLIES, Content, reply_texts, summarize
from tests.conformance.training_packages import find_package
from tests.conformance.trl_response_templates import read_trl_specs
from tests.profiles import examples

parse_response: Any = pytest.importorskip("transformers.utils.chat_parsing").parse_response
NUMBERS: Final = Tool(
    CITY.name, CITY.description, {"properties": {**CITY.parameters["properties"], "x": {"type": "number"}}}
)
TOOL: Final = {"function": {"name": CITY.name, "parameters": CITY.parameters}}

TRL: Final = {
    "qwen3": "qwen3",
    "qwen3_5": "qwen3_coder",
    "glm4moe": "glm",
    "llama3": "llama_3",
    "gptoss": "gpt_oss",
    "lfm2_2_5": "lfm",
    "nemotron_3": "nemotron",
    "gemma4": "gemma",
    "deepseek_r1_distill": "deepseek_r1",
}
"""Format of the replies of each response template of trl."""

OTHER_REPLIES: Final[dict[str, list[str]]] = {
    "lfm": ["<think>hm</think>ok<|tool_call_start|>[f(city='Rome', n=3), g()]<|tool_call_end|><|im_end|>", "Hi"],
    "nemotron": [
        "hm</think>ok<tool_call>\n<function=f>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>\n"
    ],
    "gemma": [
        '<|channel>thought\nhm<channel|>ok<|tool_call>call:f{city:<|"|>Rome<|"|>,n:3}<tool_call|>',
        "Hi<turn|>",
    ],
    "deepseek_r1": ["hm</think>Hi<｜end▁of▁sentence｜>", "Hi"],
}
DIFFERENCES: Final = {
    "damaged": "transformers refuses the whole reply; agentkit keeps arguments raw, and other text as text",
    "after the end": "transformers keeps only text after the end of the turn; agentkit puts it into the metadata",
    "no field": "transformers drops text that belongs to no field; agentkit keeps it if there is no other content",
    "several": "transformers keeps the last text (or thinking) of several; agentkit keeps each as a block",
    "no name": "transformers returns calls without a name; agentkit keeps their text",
    "arguments": "transformers returns arguments that are no object; agentkit keeps them raw",
    "tags": "transformers drops text beside the tags of arguments, and repeated tags; agentkit keeps the text raw",
}
"""Differences from transformers, with the reason. Everything else is equal."""


@cache
def load_specs() -> dict[str, tuple[str, dict[str, Any]]]:
    """Returns the format of the replies and the declaration of each response template."""
    builtins = {name: (name, dict(ResponseTemplate.builtin(name).spec)) for name in RESPONSE_NAMES}
    return builtins | {f"trl {name}": (TRL[name], spec) for name, spec in read_trl_specs().items()}


def read_message(message: dict[str, Any]) -> Content:
    """Returns the thinking, the text and the calls of a message of transformers."""
    thinking = [message[key] for key in ("thinking", "reasoning_content") if message.get(key)]
    functions = [call.get("function", call) for call in message.get("tool_calls", [])]
    # In JSON of a call, agentkit also reads the key `parameters`, which models write in place of `arguments`.
    calls = [(item.get("name"), item.get("arguments", item.get("parameters", {}))) for item in functions]
    return thinking, [message["content"]] if message.get("content") else [], calls


def find_difference(msg: Msg, expected: Content | None, *, has_tags: bool) -> str:
    """Returns the name of the difference from transformers. Returns an empty text if there is none."""
    thinking, texts, calls = found = summarize(msg)
    if expected is None:
        return "damaged"
    if found == expected:
        return ""
    if "text_after_end" in (msg.metadata or {})["reply"]:
        return "after the end"
    if expected == ([], [], []) and len(texts) == 1 and not thinking and not calls:
        return "no field"
    if not all(isinstance(name, str) and name for name, _ in expected[2]):
        return "no name"
    if not all(isinstance(arguments, dict) for _, arguments in expected[2]):
        return "arguments"
    if not expected[2] and (thinking, texts[:-1]) == expected[:2]:
        return "no name"  # the text of a call that is an empty list or object
    is_last = all(not last or last == all_[-1:] for all_, last in zip(found[:2], expected[:2], strict=True))
    has_several = len(thinking) > len(expected[0]) or len(texts) > len(expected[1])
    if is_last and has_several and calls == expected[2]:
        return "several"
    blocks = [block for block in msg.blocks if isinstance(block, ToolUseBlock)]
    pairs = list(zip(blocks, expected[2], strict=False))
    if has_tags and pairs and all(block.raw_input or block.input == item[1] for block, item in pairs):
        return "tags"
    return "unknown"


def compare(spec: dict[str, Any], text: str, prompt: str = "") -> str:
    template = ResponseTemplate(spec)
    msg = template.parse(text, prompt, tools=[CITY])
    for length in (1, 3, 10):
        parser = template.stream_parser(prompt=prompt, tools=[CITY])
        for start in range(0, len(text), length):
            parser.feed(text[start : start + length])
        assert parser.finish() == msg
    try:
        expected = read_message(parse_response(text, spec, prefix=prompt, tools=[TOOL]))
    except (ValueError, KeyError, AttributeError, TypeError):
        expected = None
    has_tags = spec["fields"].get("tool_calls", {}).get("content") == "xml-inline"
    return find_difference(msg, expected, has_tags=has_tags)


def test_replies_of_each_format_equal_those_of_transformers() -> None:
    compared: Counter[str] = Counter()
    for name, (kind, spec) in load_specs().items():
        for text in (*REPLIES.get(kind, ()), *OTHER_REPLIES.get(kind, ())):
            difference = compare(spec, text)
            is_other_dialect = name.startswith("trl") and difference in ("damaged", "no field", "several")
            assert not difference or is_other_dialect, (name, text, difference)
            compared[difference] += 1
    assert compared[""] >= 35


@pytest.mark.parametrize("name", [*RESPONSE_NAMES, *(f"trl {name}" for name in TRL)])
@given(data=st.data())
@examples(400)
def test_damaged_replies_differ_only_for_the_known_reasons(name: str, data: st.DataObject) -> None:
    kind, spec = load_specs()[name]
    markers = kind if kind in REPLIES else "qwen3"
    text = data.draw(reply_texts(markers)).encode("utf-8", "replace").decode()
    others = st.sampled_from(OTHER_REPLIES.get(kind, [""]))
    whole = data.draw(others) + text if kind in OTHER_REPLIES else text
    assert compare(spec, whole) in {"", *DIFFERENCES}, whole


def test_each_difference_exists() -> None:
    qwen = dict(ResponseTemplate.builtin("qwen3").spec)
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    texts = {
        "damaged": "<tool_call>{</tool_call>",
        "after the end": "a<|im_end|>b",
        "several": f"a{call}b",
        "no name": "<tool_call>{}</tool_call>",
        "arguments": '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
    }
    assert {name: compare(qwen, text) for name, text in texts.items()} == {name: name for name in texts}
    assert {*texts, "tags", "no field"} == {*DIFFERENCES}
    glm = dict(ResponseTemplate.builtin("glm").spec)
    assert compare(glm, f"<tool_call>f{2 * '<arg_key>n</arg_key><arg_value>1</arg_value>'}</tool_call>") == "tags"
    assert compare(dict(ResponseTemplate.builtin("gpt_oss").spec), "a") == "no field"


def test_the_prompt_counts_as_in_transformers() -> None:
    qwen = dict(ResponseTemplate.builtin("qwen3").spec)
    start = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
    for prefill in ("", "<think>\n", "<think>\n\n</think>\n\n", "Good", "<think>hm</think>Good"):
        for text in ("hm</think>Hi", " day", "Hi<|im_end|>", ""):
            assert compare(qwen, text, start + prefill) == ""


LOSSES: Final[dict[tuple[str, str], set[str]]] = {
    ("qwen3", "qwen3"): {"bare text"},
    ("qwen3_training", "qwen3"): {"bare text"},
    ("qwen2_5", "qwen3"): {"thinking"},
    ("qwen3_5_think", "qwen3_coder"): set(),
    ("glm4moe", "glm"): {"bare text"},
    ("llama3_1", "llama_3"): {"text and call", "several calls"},
    ("gptoss", "gpt_oss"): {"several calls"},
    ("deepseekv3", "deepseek"): {"text", "thinking", "call", "text and call", "several calls"},
}
"""Replies that a chat template of trl does not write as the model wrote them.

Qwen3 and GLM write empty thinking before a text. Qwen2.5 has no thinking. Llama 3.1 refuses several calls, and
drops the text beside a call. gpt-oss writes the first call only. The prompt of DeepSeek opens the thinking, and
earlier turns do not have it.
"""


@cache
def load_template(file: str, name: str) -> ChatTemplate:
    source = (find_package("trl") / "chat_templates" / f"{file}.jinja").read_text("utf-8")
    return ChatTemplate(source, response_template=ResponseTemplate.builtin(name).spec)


@pytest.mark.parametrize(("file", "name"), LOSSES)
def test_replies_are_rendered_as_the_model_wrote_them(file: str, name: str) -> None:
    assert load_template(file, name).check().round_trip_losses == frozenset(LOSSES[file, name])


WORDS: Final = st.sampled_from(
    ["Hi", "a b", "é你", "😀", "1.5", "true", "{}", "a\n\nb", '"q"', "it's", "x < y", "a\\b", "{{x}}"]
)
TEXTS: Final = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
ARGUMENTS: Final = st.fixed_dictionaries(
    {}, optional={"city": TEXTS, "n": st.integers(), "x": st.sampled_from([1.5, 2.0, 1e22, 1e-7, 10**23 + 1])}
)
REPLY_BLOCKS: Final = {
    "text": st.builds(TextBlock, TEXTS).map(lambda block: [block]),
    "thinking": st.tuples(st.builds(ThinkingBlock, TEXTS), st.builds(TextBlock, TEXTS)),
    "call": st.builds(ToolUseBlock, st.just("abcde0001"), st.just("f"), ARGUMENTS).map(lambda block: [block]),
}
"""Blocks of random replies by kind. Texts do not start or end with white space, which the parser drops."""


@pytest.mark.parametrize(("file", "name"), [pair for pair, losses in LOSSES.items() if len(losses) < 5])
@given(data=st.data())
@examples(100)
def test_random_replies_are_rendered_as_the_model_wrote_them(file: str, name: str, data: st.DataObject) -> None:
    template = load_template(file, name)
    kind = data.draw(st.sampled_from(sorted(REPLY_BLOCKS.keys() - LOSSES[file, name])))
    user, reply = Msg("user", "Q", "user"), Msg("assistant", [*data.draw(REPLY_BLOCKS[kind])], "assistant")
    prompt = template.render([user], tools=[NUMBERS]).text
    text = template.render([user, reply], tools=[NUMBERS]).text
    msg = ResponseTemplate.builtin(name).parse(text.removeprefix(prompt), prompt, tools=[NUMBERS])
    assert template.render([user, msg], tools=[NUMBERS]).text == text
