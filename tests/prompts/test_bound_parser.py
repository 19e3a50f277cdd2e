"""Bound parsers: the replies of examples, and the variable `format`."""

from __future__ import annotations

from typing import Any, Final, Literal

import pytest

from agentkit import Msg, TextBlock, ToolUseBlock
from agentkit.prompts import OutputField, Signature, parsers
from agentkit.prompts.bound_parser import bind_parser
from agentkit.prompts.examples import ReplyText
from agentkit.prompts.parsers import first_word, last_code_block, structured, text, tool_call, yaml
from tests.cases import each_case


class Judge(Signature):
    """Judge."""

    verdict: Literal["good", "bad"] = OutputField()
    score: int = OutputField()


VALUES: Final = {"verdict": "good", "score": 3}
ONE: Final[Any] = Signature("question -> answer: int")
WORD: Final[Any] = Signature("question -> answer: Literal['yes']")


@each_case(
    ("parser", "signature", "outputs", "expected"),
    [
        (structured, Judge, VALUES, '{\n  "verdict": "good",\n  "score": 3\n}'),
        (parsers.json, Judge, VALUES, '{\n  "verdict": "good",\n  "score": 3\n}'),
        (yaml, Judge, VALUES, "verdict: good\nscore: 3"),
        (text, Judge, VALUES, '{"verdict": "good", "score": 3}'),
        (last_code_block, Judge, VALUES, '```\n{"verdict": "good", "score": 3}\n```'),
        (structured, ONE, {"answer": 3}, '{\n  "value": 3\n}'),
        (parsers.json, ONE, {"answer": 3}, "3"),
        (yaml, ONE, {"answer": 3}, "3"),
        (yaml, Signature("q -> a"), {"a": "x\ny\n"}, "|\n  x\n  y\n"),
        (text, ONE, {"answer": 3}, "3"),
        (first_word, WORD, {"answer": "yes"}, "yes"),
    ],
)
def test_a_text_is_written_as_its_parser_reads_it(
    parser: Any, signature: Any, outputs: dict[str, Any], expected: str
) -> None:
    bound = bind_parser(parser, signature)
    assert bound.write(outputs) == expected
    assert bound.parse(expected) == outputs


@pytest.mark.parametrize(
    ("signature", "outputs", "name", "arguments"),
    [(Judge, VALUES, "Judge", VALUES), (ONE, {"answer": 3}, "answer", {"value": 3})],
)
def test_a_tool_call_is_written_as_its_parser_reads_it(
    signature: Any, outputs: dict[str, Any], name: str, arguments: dict[str, Any]
) -> None:
    bound = bind_parser(tool_call, signature)
    msg = bound.write_message(outputs, [], note="Because.")
    assert (msg.text, [(call.name, call.input) for call in msg.tool_uses]) == ("Because.", [(name, arguments)])
    assert bound.parse(msg) == outputs


def test_the_text_of_a_reply_is_unchanged() -> None:
    bound = bind_parser(tool_call, ONE)
    assert bound.write_message({"answer": ReplyText("Three. ")}, []) == Msg("assistant", "Three. ", "assistant")


def test_tool_calls_follow_the_text_and_get_ids_for_each_reply() -> None:
    calls = [ToolUseBlock("c1", "look", {"at": 1}), {"name": "look", "args": {"at": 1}}]
    first, second = (bind_parser(text, ONE).write_message({"answer": 3}, calls, seed=seed) for seed in "ab")
    assert first.blocks[0] == TextBlock("3")
    assert [(call.name, call.input) for call in first.tool_uses] == [("look", {"at": 1})] * 2
    assert len({call.id for msg in (first, second) for call in msg.tool_uses}) == 4


def test_a_missing_output_is_not_written() -> None:
    assert bind_parser(structured, Judge).write({"score": 3}) == '{\n  "score": 3\n}'
    assert bind_parser(structured, Judge).write({}) == ""


def test_the_words_of_a_format_are_the_members_of_the_type() -> None:
    assert bind_parser(first_word, WORD).format_variable["instructions"] == (
        "Begin the reply with one of these words: yes."
    )


def test_the_same_parser_and_signature_are_bound_once() -> None:
    assert bind_parser(structured, Judge) is bind_parser(structured, Judge)
