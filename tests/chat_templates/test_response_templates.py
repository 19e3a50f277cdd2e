"""Response templates: content of replies, the same for any pieces, linear work, and errors of declarations."""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    Disposition,
    MessageError,
    Msg,
    OptionError,
    TextBlock,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    ToolUseDelta,
    ToolUseEnd,
    ToolUseStart,
)
from agentkit.chat_templates import ChatTemplate, ResponseTemplate
from agentkit.chat_templates.responses.response_template import RESPONSE_NAMES
from agentkit_openai import OpenAICompletionsParser
from tests.cases import each_case
from tests.chat_templates.reply_texts import CITY, REPLIES, Content, reply_pieces, reply_texts, summarize
from tests.profiles import examples

BUILTINS: Final = {name: ResponseTemplate.builtin(name) for name in RESPONSE_NAMES}
QWEN: Final = BUILTINS["qwen3"]
ANCHOR: Final = "<|im_start|>assistant\n"


def split(text: str, lengths: list[int]) -> Iterator[str]:
    """Yields pieces of a text, whose lengths repeat."""
    start = index = 0
    while start < len(text):
        end = start + lengths[index % len(lengths)]
        yield text[start:end]
        start, index = end, index + 1


def get_reply(msg: Msg) -> dict[str, Any]:
    """Returns the metadata of a reply."""
    reply: dict[str, Any] = (msg.metadata or {})["reply"]
    return reply


def parse_pieces(template: ResponseTemplate, pieces: Iterator[str], prompt: str = "") -> Msg:
    parser = template.stream_parser(prompt=prompt, tools=[CITY])
    events = [event for piece in pieces for event in parser.feed(piece)]
    msg = parser.finish()
    check_events([*events, *parser.drain()], msg)
    return msg


def check_events(events: list[Any], msg: Msg) -> None:
    """Checks that the pieces of each block are its text, and that each complete block ends once."""
    texts = {event.index: event.text for event in events if event.type in ("text-end", "thinking-end")}
    deltas: dict[int, str] = {}
    for event in events:
        if isinstance(event, TextDelta | ThinkingDelta):
            deltas[event.index] = deltas.get(event.index, "") + event.text
    assert deltas == texts
    pieces: dict[int, str] = {}
    for event in events:
        if isinstance(event, ToolUseDelta):
            pieces[event.index] = pieces.get(event.index, "") + event.text
    ends = {event.index: event.block for event in events if isinstance(event, ToolUseEnd)}
    for index, block in ends.items():
        assert block.raw_input is None or pieces.get(index, block.raw_input) == block.raw_input
    ended = [*ends.values()]
    calls = [block for block in msg.blocks if isinstance(block, ToolUseBlock)]
    assert [call for call in calls if call in ended] == ended
    assert events[-1].type == "message-end"


CASES: Final = [(name, text, content) for name, texts in REPLIES.items() for text, content in texts.items()]


@each_case(("name", "text", "content"), CASES)
def test_a_reply_has_thinking_text_and_calls(name: str, text: str, content: Content) -> None:
    msg = BUILTINS[name].parse(text, tools=[CITY])
    assert summarize(msg) == content
    assert msg.role == "assistant"
    assert str(msg.finish_reason) == ("tool_use" if content[2] else "stop")
    assert all(block.id for block in msg.blocks if isinstance(block, ToolUseBlock))
    for length in (1, 2, 7):
        assert parse_pieces(BUILTINS[name], split(text, [length])) == msg


@pytest.mark.parametrize("name", RESPONSE_NAMES)
@given(data=st.data())
@examples(150)
def test_pieces_of_a_reply_have_the_message_of_the_whole_reply(name: str, data: st.DataObject) -> None:
    text = data.draw(reply_texts(name))
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    template = BUILTINS[name]
    msg = template.parse(text, tools=[CITY])
    assert parse_pieces(template, split(text, lengths)) == msg
    assert parse_pieces(template, iter(text)) == msg
    ids = [block.id for block in msg.blocks if isinstance(block, ToolUseBlock)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", RESPONSE_NAMES)
@given(data=st.data())
@examples(100)
def test_no_text_of_a_reply_is_lost(name: str, data: st.DataObject) -> None:
    """Each word is in a block, in the metadata, or in a marker."""
    pieces = data.draw(reply_pieces(name))
    numbered = [f"w{index}, {piece}" for index, piece in enumerate(pieces)]
    msg = BUILTINS[name].parse("".join(numbered))
    raw = [block.raw_input or "" for block in msg.blocks if isinstance(block, ToolUseBlock)]
    found = json.dumps([msg.to_dict(), raw])
    for index in range(len(numbered)):
        assert f"w{index}," in found


@pytest.mark.parametrize(
    "source",
    [
        r"a.*b|c",
        r"<u>\s*|$",
        r"x\B",
        r"<\bab",
        r"b(?!$)",
        r"[$b]\Z|c",
        r"(?=[\s\S]*?</t>)",
        r"(?<=x)y",
        r"\bz\b",
        r"x*",
        r"ab|abcd",
        r"q(?!ef)",
    ],
)
@given(data=st.data())
@examples(60)
def test_any_expression_has_the_same_matches_for_any_pieces(source: str, data: st.DataObject) -> None:
    spec = {
        "start_anchor": "A:",
        "fields": {
            "thinking": {"open_pattern": source, "close_pattern": data.draw(st.sampled_from(["</t>", "$", "c*"]))}
        }
        | {"content": {"close_pattern": r"E\s*|$"}},
    }
    template = ResponseTemplate(spec)
    alphabet = ["a", "b", "c", "d", " ", "\n", "x", "y", "z", "</t>", "<u>", "E", "q", "e", "f", "a" * 80]
    text = "".join(data.draw(st.lists(st.sampled_from(alphabet), max_size=15)))
    whole = template.parse(text)
    assert parse_pieces(template, iter(text)) == whole
    assert parse_pieces(template, split(text, data.draw(st.lists(st.integers(1, 9), min_size=1)))) == whole


# -- the prompt ---------------------------------------------------------------------------------------------------


def test_the_prompt_may_have_opened_the_thinking() -> None:
    prompt = f"<|im_start|>user\n<think> is a tag<|im_end|>\n{ANCHOR}<think>\n"
    assert summarize(QWEN.parse("hm\n</think>\n\nHi", prompt)) == (["hm"], ["Hi"], [])
    assert summarize(QWEN.parse("Hi", f"{ANCHOR}<think>\n\n</think>\n\n")) == ([], ["Hi"], [])
    assert summarize(QWEN.parse(" day", f"{ANCHOR}Good")) == ([], ["Good day"], [])
    assert summarize(QWEN.parse("Hi", f"{ANCHOR}No.<|im_end|>\n{ANCHOR}")) == ([], ["Hi"], [])
    deepseek = BUILTINS["deepseek"]
    assert summarize(deepseek.parse("Hi", "<｜User｜>q<｜Assistant｜></think>")) == ([], ["Hi"], [])
    assert summarize(deepseek.parse("hm</think>Hi", "<｜Assistant｜><think>\n")) == (["hm"], ["Hi"], [])


def test_a_prompt_of_another_model_is_refused() -> None:
    with pytest.raises(OptionError, match="the prompt does not contain the start of a reply") as error:
        QWEN.parse("Hi", "[INST] Hello. [/INST]")
    assert error.value.place == "prompt"


# -- calls --------------------------------------------------------------------------------------------------------


def call(text: str) -> str:
    return f"<tool_call>{text}</tool_call>"


def first_call(text: str, template: ResponseTemplate = QWEN) -> ToolUseBlock:
    return next(block for block in template.parse(text).blocks if isinstance(block, ToolUseBlock))


def test_ids_depend_on_the_prompt_and_the_earlier_text() -> None:
    text = call('{"name": "f", "arguments": {}}')
    one, two = (block.id for block in QWEN.parse(text * 2).blocks if isinstance(block, ToolUseBlock))
    assert one != two
    assert first_call(text).id == one
    assert first_call("a" + text).id != one
    later = QWEN.parse(text, ANCHOR).blocks[0]
    assert isinstance(later, ToolUseBlock)
    assert later.id != one


def test_ids_of_the_model_are_kept_if_they_are_new() -> None:
    item = '{"name": "f", "arguments": {}, "id": "abcdefghi"}'
    ids = [
        block.id
        for block in BUILTINS["mistral"].parse(f"[TOOL_CALLS][{item}, {item}]").blocks
        if isinstance(block, ToolUseBlock)
    ]
    assert ids[0] == "abcdefghi"
    assert ids[1] not in ("", "abcdefghi")
    assert first_call(next(iter(REPLIES["kimi"])), BUILTINS["kimi"]).id == "functions.f:0"
    assert first_call("[TOOL_CALLS]f[CALL_ID]abc[ARGS]{}", BUILTINS["mistral_v11"]).id == "abc"


@each_case(
    ("body", "raw"),
    [
        ('{"name": "f", "arguments": {"a": 1,}}', '{"a": 1,}'),
        ('{"name": "f", "arguments": {"a": "}\\""', '{"a": "}\\""'),
        ('{"name": "f", "arguments": [1]}', "[1]"),
        ('{"name": "f", "arguments": ', ""),
        ('{"name": "f", "arguments": "no JSON"}', "no JSON"),
    ],
)
def test_damaged_arguments_stay_raw(body: str, raw: str) -> None:
    msg = QWEN.parse(f"Hi{call(body)}")
    block = msg.blocks[1]
    assert isinstance(block, ToolUseBlock)
    assert (block.name, block.input) == ("f", {})
    assert (block.raw_input or "") == raw
    unclosed = QWEN.parse(f"Hi<tool_call>{body}")
    assert str(unclosed.finish_reason) == "interrupted"
    block = unclosed.blocks[1]
    assert isinstance(block, ToolUseBlock)
    assert (block.name, block.input, block.raw_input) == ("f", {}, raw)


def test_a_call_without_its_last_brace_or_marker_is_read() -> None:
    for text in ('<tool_call>{"name": "f", "arguments": {"a": 1}', call('{"name": "f", "arguments": {"a": 1}')):
        assert first_call(text).input == {"a": 1}
    msg = BUILTINS["gpt_oss"].parse(' to=functions.f<|channel|>commentary json<|message|>{"a": 1}')
    assert str(msg.finish_reason) == "tool_use"


@each_case(
    "body", ["", "{}", "[1]", '{"nam', "3", '{"name": 3, "arguments": {}}', "[" * 5_000, '{"arguments": {}}']
)
def test_a_call_without_a_name_stays_text(body: str) -> None:
    assert summarize(QWEN.parse(f"a{call(body)}")) == ([], ["a", call(body)], [])


def test_markers_in_strings_of_arguments_end_the_region() -> None:
    """The close marker has no quotes, so it ends the call wherever it is, as in transformers."""
    text = call('{"name": "f", "arguments": {"a": "<think> <tool_call>"}}')
    assert first_call(text).input == {"a": "<think> <tool_call>"}
    text = call('{"name": "f", "arguments": {"a": "</tool_call>"}}')
    assert first_call(text).raw_input == '{"a": "'
    assert isinstance(QWEN.parse(text).blocks[1], TextBlock)


def test_arguments_stream_where_the_marker_has_the_name() -> None:
    parser = BUILTINS["kimi"].stream_parser()
    text = next(iter(REPLIES["kimi"]))
    events = [event for piece in split(text, [3]) for event in parser.feed(piece)]
    started = next(event for event in events if isinstance(event, ToolUseStart))
    assert (started.id, started.name) == ("functions.f:0", "f")
    deltas = [event.text for event in events if isinstance(event, ToolUseDelta)]
    assert len(deltas) > 3
    assert "".join(deltas) == '{"city": "Rome"}'
    assert [event.text for event in events if isinstance(event, TextEnd)] == ["ok"]


@each_case(
    ("name", "head", "tail"),
    [
        ("qwen3", '<tool_call>\n{"name": "f", "arguments": ', "}\n</tool_call>"),
        ("mistral", '[TOOL_CALLS][{"name": "f", "arguments": ', ', "id": "abcdefghi"}]'),
        ("llama_3", '{"name": "f", "parameters": ', "}<|eot_id|>"),
        ("mistral_v11", "[TOOL_CALLS]f[ARGS]", "</s>"),
        ("deepseek", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
        ("kimi", "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>", "<|tool_call_end|>"),
        ("gpt_oss", " to=functions.f<|channel|>commentary json<|message|>", "<|call|>"),
    ],
)
def test_arguments_stream_after_the_name(name: str, head: str, tail: str) -> None:
    raw = '{"a": "}\\"{[", "b": [1, {"c": "\\\\"}], "d":  1.0}'
    parser = BUILTINS[name].stream_parser()
    parser.feed(head)
    events = [event for piece in split(raw, [3]) for event in parser.feed(piece)]
    deltas = [event.text for event in events if isinstance(event, ToolUseDelta)]
    assert len(deltas) > 10
    events += parser.feed(tail)
    msg = parser.finish()
    block = msg.blocks[0]
    assert isinstance(block, ToolUseBlock)
    events += parser.drain()
    deltas = [event.text for event in events if isinstance(event, ToolUseDelta)]
    assert ("".join(deltas), block.raw_input, block.input) == (raw, raw, json.loads(raw))
    assert BUILTINS[name].parse(head + raw + tail) == msg


@each_case(
    ("text", "raw", "has_end"),
    [
        ("<function=f><parameter=city>Ro", "<parameter=city>Ro", False),
        ("<function=f><parameter=city>Ro</function>", "<parameter=city>Ro", True),
        (
            "<function=f>In Rome <parameter=n>1</parameter></function>",
            "In Rome <parameter=n>1</parameter>",
            True,
        ),
        ("<function=f><parameter=n>1</parameter><parameter=n>2</parameter></function>", None, True),
    ],
)
def test_text_that_is_no_argument_is_not_dropped(text: str, raw: str | None, has_end: bool) -> None:
    """A call whose arguments are cut off never looks like a call with fewer arguments."""
    msg = BUILTINS["qwen3_coder"].parse(text)
    block = msg.blocks[0]
    assert isinstance(block, ToolUseBlock)
    expected = raw or "<parameter=n>1</parameter><parameter=n>2</parameter>"
    assert (block.name, block.input, block.raw_input) == ("f", {}, expected)
    assert str(msg.finish_reason) == ("tool_use" if has_end else "interrupted")


@each_case(
    "body",
    [
        '{"name": "f", "arguments": {"a": 1}, "why": "because"}',
        '{"name": "f", "arguments": {"a": 1}, "name": "g"}',
        '{"name": "f", "arguments": {"a": 1}} because',
        '{"why": "because", "name": "f", "arguments": {"a": 1}}',
        '[{"name": "f", "arguments": {"a": 1}}, {"name": "g", ',
    ],
)
def test_a_call_with_more_text_keeps_the_text(body: str) -> None:
    block = first_call(call(body))
    assert (block.name, block.input, block.metadata) == ("f", {"a": 1}, {"reply_text": body})


def test_a_call_of_tags_without_its_end_is_interrupted() -> None:
    msg = BUILTINS["qwen3_coder"].parse("<function=f><parameter=n>1</parameter>\n")
    assert summarize(msg)[2] == [("f", {"n": "1"})]
    assert str(msg.finish_reason) == "interrupted"


def test_a_cut_off_list_of_calls_is_interrupted() -> None:
    msg = BUILTINS["mistral"].parse('[TOOL_CALLS][{"name": "f", "arguments": {}}, {"name": "g", "argu')
    assert str(msg.finish_reason) == "interrupted"


def test_the_schema_of_a_tool_decides_the_types_of_arguments() -> None:
    pairs = (f"<arg_key>{key}</arg_key>\n<arg_value>3</arg_value>\n" for key in ("n", "city"))
    text = f"<tool_call>f\n{''.join(pairs)}"
    glm = BUILTINS["glm"]
    assert summarize(glm.parse(f"{text}</tool_call>", tools=[CITY]))[2] == [("f", {"n": 3, "city": "3"})]
    assert summarize(glm.parse(f"{text}</tool_call>"))[2] == [("f", {"n": "3", "city": "3"})]


# -- other content ------------------------------------------------------------------------------------------------


def test_text_after_the_end_of_the_reply_is_metadata() -> None:
    msg = QWEN.parse(f"Hi<|im_end|>\n<|im_start|>user\n{call('{}')}")
    assert summarize(msg) == ([], ["Hi"], [])
    assert get_reply(msg)["text_after_end"] == f"<|im_start|>user\n{call('{}')}"


def test_text_before_and_after_a_finish_reason_is_metadata() -> None:
    parser = OpenAICompletionsParser(response_template="qwen3")
    for text, reason in (("Hi<|im_end|>la", None), ("te", "stop"), (" and later\n", None)):
        parser.feed({"choices": [{"index": 0, "text": text, "finish_reason": reason}]})
    msg = parser.finish()
    assert (summarize(msg), get_reply(msg)["text_after_end"]) == (([], ["Hi"], []), "late and later")


def test_text_outside_of_all_fields_is_metadata() -> None:
    text = "<|channel|>final<|message|>Hi<|end|><|start|>assistant<|channel|>other<|message|>hm<|end|>"
    msg = BUILTINS["gpt_oss"].parse(text)
    assert summarize(msg) == ([], ["Hi"], [])
    assert get_reply(msg)["outside"] == "<|channel|>other<|message|>hm<|end|>"


def test_a_reply_without_any_field_is_text() -> None:
    assert summarize(BUILTINS["gpt_oss"].parse("Hello.")) == ([], ["Hello."], [])
    assert BUILTINS["gpt_oss"].parse("").blocks == ()


def test_thinking_that_does_not_end_is_interrupted() -> None:
    msg = QWEN.parse("<think>hm")
    assert (summarize(msg), str(msg.finish_reason)) == ((["hm"], [], []), "interrupted")


def test_other_fields_are_metadata() -> None:
    field = {"open": "<n>", "close": "</n>"}
    fields = {
        "number": {**field, "content": "int"},
        "share": {"open": "<s>", "close": "</s>", "content": "float"},
        "flag": {"open": "<b>", "close": "</b>", "content": "bool", "optional": False},
        "tags": {"open": "<t>", "close": "</t>", "content": "kv-lines", "repeats": True},
        "keys": {"open": "<k>", "close": "</k>", "repeats": True, "join": ", "},
        "cited": {
            "open_pattern": r"<c=(?P<id>\d)>",
            "close": "</c>",
            "transform": {"id": "{id}", "text": "{content}"},
        },
        "content": {},
    }
    template = ResponseTemplate(
        {"start_anchor": "A:", "defaults": {"role": "assistant", "lang": "en"}, "fields": fields}
    )
    msg = template.parse("<n>3</n>a<s>.5</s><t>a: b\nc</t><t>d:e</t><k>x</k><c=1>x</c><n>q</n><k>y</k>")
    found = {
        "lang": "en",
        "number": "q",
        "share": 0.5,
        "tags": [{"a": "b"}, {"d": "e"}],
        "keys": "x, y",
        "cited": {"id": "1", "text": "x"},
    }
    assert get_reply(msg)["fields"] == found
    assert get_reply(msg)["missing_fields"] == ["flag"]
    assert summarize(msg) == ([], ["a"], [])


def test_lists_of_calls_in_python_syntax() -> None:
    field = {"open": "[C]", "close": "[/C]", "content": "python-call-list", "transform_each": True}
    transform = {"function": {"name": "{name}", "arguments": "{arguments}"}}
    template = ResponseTemplate(
        {"start_anchor": "A:", "fields": {"tool_calls": {**field, "transform": transform}}}
    )
    msg = template.parse("[C][f(city='Rome', n=3), g()][/C]")
    assert summarize(msg)[2] == [("f", {"city": "Rome", "n": 3}), ("g", {})]
    assert summarize(template.parse("[C][f(3)][/C]")) == ([], ["[C][f(3)][/C]"], [])


def test_lone_surrogates_become_replacement_characters() -> None:
    msg = QWEN.parse("a\ud83d<think>\ude00</think>\ud83d\ude00")
    assert summarize(msg) == (["\ufffd"], ["a\ufffd", "😀"], [])
    str(msg).encode()


# -- work ---------------------------------------------------------------------------------------------------------


def count_steps(template: ResponseTemplate, pieces: list[str]) -> int:
    """Returns the number of executed lines of Python code."""
    steps = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return trace

    parser = template.stream_parser()
    sys.settrace(trace)
    try:
        for piece in pieces:
            parser.feed(piece)
        parser.finish()
    finally:
        sys.settrace(None)
    return steps


@each_case("piece", ["word ", "a < b ", "   ", "<<<", "\n", "é", call('{"name": "f", "arguments": {}}')])
def test_the_work_is_linear(piece: str) -> None:
    short, long = (count_steps(QWEN, [piece] * count) for count in (100, 1_000))
    assert long < 11 * short


def test_a_long_reply_in_one_piece_is_fast() -> None:
    text = "word < " * 20_000
    assert len(summarize(QWEN.parse(text))[1][0]) == len(text) - 1
    nested = {"open_pattern": r"(?=[\s\S]*?</think>)", "close_pattern": r"</think>\s*"}
    spec = {"start_anchor": "A:", "fields": {"thinking": nested, "content": {"close_pattern": r"<e>\s*|$"}}}
    template = ResponseTemplate(spec)
    assert summarize(template.parse(f"hm</think>{text}"))[0] == ["hm"]
    assert parse_pieces(template, split(text, [5])) == template.parse(text)


@pytest.mark.slow
@each_case(
    ("name", "text"),
    [
        ("gpt_oss", " " * 100_000),
        ("gpt_oss", " to=f" * 10_000),
        ("gpt_oss", "to=" * 10_000 + " x"),
        ("qwen3_coder", "<function=" * 20_000 + " x"),
        ("qwen3", "<tool_call>" + " " * 100_000 + "x"),
        ("qwen3", call('{"name": "f", "arguments": {}}') * 5_000),
        ("qwen3_coder", "<function=f>" + "<parameter=a>" * 5_000),
        ("glm", "<tool_call>f\n" + "<arg_key>a</arg_key><arg_value>" * 2_000),
        ("qwen3", "<tool_call>" * 5_000),
        ("qwen3", "</think>" + "\n" * 100_000),
        ("llama_3", '{"name": "f", "parameters": ' + "} " * 20_000),
        ("mistral", "[TOOL_CALLS][" + '{"name":' * 5_000),
        ("deepseek", "<｜tool▁calls▁begin｜>" * 2_000 + " " * 20_000),
        ("kimi", "<|tool_call_begin|>" * 3_000),
    ],
)
def test_hostile_replies_end_soon(name: str, text: str) -> None:
    begun = time.process_time()
    BUILTINS[name].parse(text)
    assert time.process_time() - begun < 3


# -- declarations -------------------------------------------------------------------------------------------------

FIELD: Final[dict[str, Any]] = {"open": "<a>", "close": "</a>"}


@each_case(
    ("changes", "place"),
    [
        ({"version": 2}, "version"),
        ({"fields": {}}, "fields"),
        ({"start_anchor": ""}, "start_anchor"),
        ({"start_anchor_pattern": "A"}, "start_anchor"),
        ({"start": "A"}, "start"),
        ({"fields": {"a": {**FIELD, "open_pattern": "b"}}}, "fields.a.open"),
        ({"fields": {"a": {"open_pattern": "("}}}, "fields.a.open_pattern"),
        ({"fields": {"a": {"open_pattern": r"(?P<n>\d)"}}}, "fields.a.transform"),
        ({"fields": {"a": {"open": []}}}, "fields.a.open"),
        ({"fields": {"a": {}, "b": {}}}, "fields"),
        ({"fields": {"a": {**FIELD, "content": "yaml"}}}, "fields.a.content"),
        ({"fields": {"a": {**FIELD, "join": "x"}}}, "fields.a.join"),
        ({"fields": {"a": {**FIELD, "transform": "x{content}"}}}, "fields.a.transform"),
        ({"fields": {"a": {**FIELD, "transform_each": True}}}, "fields.a.transform_each"),
        ({"fields": {"a": {**FIELD, "content": "xml-inline"}}}, "fields.a.content_args.tag_pattern"),
        ({"fields": {"a": {**FIELD, "closed": "x"}}}, "closed"),
    ],
)
def test_an_invalid_declaration_is_refused(changes: dict[str, Any], place: str) -> None:
    spec = {"start_anchor": "A:", "fields": {"a": FIELD}, **changes}
    with pytest.raises(OptionError) as error:
        ResponseTemplate(spec)
    assert error.value.place.endswith(place)


def test_a_template_is_read_from_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer_config.json"
    with pytest.raises(OptionError, match="does not exist"):
        ResponseTemplate.from_folder(tmp_path)
    path.write_text("{}")
    with pytest.raises(OptionError, match="has no response_template"):
        ResponseTemplate.from_folder(str(tmp_path))
    path.write_text(json.dumps({"response_template": dict(QWEN.spec)}))
    assert ResponseTemplate.from_folder(tmp_path).spec == QWEN.spec
    path.write_text("{")
    with pytest.raises(OptionError, match="not valid JSON"):
        ResponseTemplate.from_folder(tmp_path)


@each_case(
    ("folder", "reason"),
    [
        (5, "expected Path, got int"),
        (None, "expected Path, got None"),
        ("a" * 5_000, "does not exist"),
        ("a\0b", "does not exist"),
    ],
)
def test_a_folder_that_does_not_exist_is_refused(folder: Any, reason: str) -> None:
    with pytest.raises(OptionError, match=r"^folder: ") as caught:
        ResponseTemplate.from_folder(folder)
    assert reason in str(caught.value)


@each_case(("content", "reason"), [(b"[" * 200_000, "is not valid JSON"), (b"\xff", "cannot be read")])
def test_a_damaged_file_of_a_tokenizer_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_bytes(content)
    with pytest.raises(OptionError, match=rf"^folder: .* {reason}"):
        ResponseTemplate.from_folder(tmp_path)


def test_templates_can_be_pickled_and_unknown_names_are_refused() -> None:
    copy = pickle.loads(pickle.dumps(QWEN))
    text = next(iter(REPLIES["qwen3"]))
    assert copy.parse(text) == QWEN.parse(text)
    with pytest.raises(OptionError, match="unknown value 'qwen'"):
        ResponseTemplate.builtin("qwen")


def test_the_stream_parser_refuses_bytes_and_later_pieces() -> None:
    parser = QWEN.stream_parser()
    with pytest.raises(MessageError, match="expected a string, got bytes"):
        parser.feed(b"Hi")
    assert [event.type for event in parser.feed({"text": "Hi"})] == ["message-start", "text-start", "text-delta"]
    parser.finish()
    with pytest.raises(MessageError, match="`finish` was already called"):
        parser.feed("x")


# -- round trips --------------------------------------------------------------------------------------------------

CHATML: Final = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n"
    "{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}{% for c in m.tool_calls %}<tool_call>\n"
    '{{ {"name": c.function.name, "arguments": c.function.arguments} | tojson }}\n</tool_call>{% endfor %}'
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_damaged_arguments_that_the_template_does_not_write_are_omitted() -> None:
    template = ChatTemplate(CHATML)
    for arguments, omitted in (('{"n": 1}', []), ('{"n": 1,}', ["msgs[0].content[0]"])):
        msg = QWEN.parse(call(f'{{"name": "f", "arguments": {arguments}}}'))
        assert [item.place for item in template.render([msg]).omitted] == omitted
    damaged = Msg("a", [ToolUseBlock("c", "f", {"n": 1}, '{"n": 1,}')], "assistant")
    ledger = template.formatter().lower([damaged, Msg("t", [ToolResultBlock("c", "f", "ok")], "user")]).ledger
    assert next((entry.disposition, entry.lost) for entry in ledger.entries) == (Disposition.REPAIRED, False)


def test_numbers_of_arguments_are_rendered_as_the_model_wrote_them() -> None:
    tool = Tool("f", "", {"type": "object", "properties": {"x": {"type": "number"}}})
    for text in ("1e+22", "12345678901234567890123", "3", "2.0", "-1.5", "1e-07"):
        msg = BUILTINS["qwen3_coder"].parse(
            f"<function=f><parameter=x>\n{text}\n</parameter></function>", tools=[tool]
        )
        (block,) = msg.tool_uses
        assert json.dumps(block.input) == f'{{"x": {text}}}'


@each_case(
    ("source", "losses"),
    [
        (CHATML, set[str]()),
        (CHATML.replace("{% if m.reasoning_content %}", "{% if false %}"), {"thinking"}),
        (CHATML.replace("c in m.tool_calls", "c in (m.tool_calls or [])[:1]"), {"several calls"}),
        (
            CHATML.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}"),
            {"text", "call", "text and call", "several calls"},
        ),
    ],
)
def test_the_report_names_replies_that_change(source: str, losses: set[str]) -> None:
    report = ChatTemplate(source, response_template=QWEN.spec).check()
    assert report.round_trip_losses == frozenset(losses)
    assert ChatTemplate(source).check().round_trip_losses is None
