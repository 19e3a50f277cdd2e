"""Tests of the types for fields: `Reasoning`, `Code`, `Citation` and `History`."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from agentkit import Msg, OptionError, TextBlock
from agentkit.prompts.field_types import Citation, Code, History, Reasoning, read_citations
from tests.cases import each_case
from tests.profiles import examples

SQL: Any = Code["sql"]


def test_reasoning_is_a_string() -> None:
    reasoning = Reasoning("a b")
    assert (reasoning, len(reasoning), reasoning + "c", "a" in reasoning) == ("a b", 3, "a bc", True)
    assert reasoning.content == "a b"
    assert type(reasoning.content) is str
    assert pickle.loads(pickle.dumps(reasoning)) == reasoning


@each_case("value", ["a", {"content": "a"}, Reasoning("a")])
def test_pydantic_validates_reasoning(value: object) -> None:
    parsed = TypeAdapter(Reasoning).validate_python(value)
    assert parsed == "a"
    assert type(parsed) is Reasoning


@each_case("value", [5, None, {"text": "a"}, {"content": 5}, {"content": "a", "more": 1}])
def test_pydantic_refuses_other_reasoning(value: object) -> None:
    with pytest.raises(ValidationError, match="expected a string or"):
        TypeAdapter(Reasoning).validate_python(value)


def test_the_schema_of_texts_is_a_string() -> None:
    assert TypeAdapter(Reasoning).json_schema() == {"type": "string"}
    assert TypeAdapter(Code).json_schema() == {"type": "string"}


def test_code_has_a_language_and_a_type_name() -> None:
    assert (SQL.__name__, SQL.language, Code.__name__, Code.language) == ("Code_sql", "sql", "Code", "python")
    assert Code["sql"] is SQL
    assert issubclass(SQL, Code)
    assert SQL("SELECT 1").code == "SELECT 1"


@each_case(
    ("value", "code"),
    [
        ("x = 1", "x = 1"),
        ("```sql\nSELECT 1\n```", "SELECT 1"),
        ("First:\n```\na\n```\nThen:\n```\nb\n```", "a"),
        ("```x```", "x"),
        ("```sql\nSELECT", "```sql\nSELECT"),
        ("````\n a\n\n````", " a\n"),
        ({"code": "```\na\n```"}, "```\na\n```"),
        ('{"code": "a"}', "a"),
        ("{'code': 'a'}", "a"),
        ('"a"', "a"),
        (Code("```\na\n```"), "```\na\n```"),
    ],
)
def test_pydantic_reads_code(value: object, code: str) -> None:
    parsed = TypeAdapter(SQL).validate_python(value)
    assert (parsed, type(parsed)) == (code, SQL)


@each_case("value", [5, None, {"text": "a"}])
def test_pydantic_refuses_other_code(value: object) -> None:
    with pytest.raises(ValidationError, match="expected a string or"):
        TypeAdapter(Code).validate_python(value)


@each_case(
    ("code", "written"),
    [
        ("x = 1", "x = 1"),
        (" x", "````python\n x\n````"),
        ("```\na\n```", "````python\n```\na\n```\n````"),
        ("a ```` b ````", "`````python\na ```` b ````\n`````"),
        ('{"code": "a"}', '````python\n{"code": "a"}\n````'),
    ],
)
def test_code_that_would_be_read_differently_is_written_in_a_longer_fence(code: str, written: str) -> None:
    assert TypeAdapter(Code).dump_python(Code(code), mode="json") == written
    assert TypeAdapter(Code).validate_python(written) == code


class Script(BaseModel):
    code: Code


@given(st.text(alphabet="`\n ax{}\"':codejsn\\") | st.text())
@examples(300)
def test_code_inside_a_model_is_restored(code: str) -> None:
    script = Script.model_construct(code=Code(code))
    assert Script.model_validate(script.model_dump(mode="json")) == script


@pytest.mark.parametrize("code", [Code("a"), SQL("a")])
def test_code_is_pickled_with_its_type(code: Code) -> None:
    copied = pickle.loads(pickle.dumps(code))
    assert (copied, type(copied)) == (code, type(code))
    assert type(deepcopy(code)) is type(code)


@each_case("language", ["", "a b", "a`b", "a\n", 5])
def test_a_language_that_cannot_follow_a_fence_is_refused(language: Any) -> None:
    with pytest.raises(OptionError, match="expected the name of a programming language"):
        Code[language]


def test_citations_of_all_providers_have_the_same_fields() -> None:
    items = [
        {"type": "url_citation", "url": "https://a", "title": "A", "start_index": 1, "end_index": 5},
        {
            "type": "char_location",
            "cited_text": "x",
            "document_index": 0,
            "document_title": "D",
            "start_char_index": 0,
        }
        | {"end_char_index": 1},
        {"uri": "https://b", "start_index": 2},
        "no citation",
    ]
    msg = Msg("a", [TextBlock("x", metadata={"citations": items}), TextBlock("y")], "assistant")
    assert read_citations(msg) == (
        Citation("url_citation", url="https://a", title="A", start=1, end=5),
        Citation("char_location", "x", document_index=0, title="D", start=0, end=1),
        Citation(url="https://b", start=2),
    )
    assert read_citations(Msg("a", "text", "assistant")) == ()


def test_a_citation_is_immutable_and_restored_from_its_json() -> None:
    citation = Citation("page", "x", title="T", start=3)
    adapter = TypeAdapter(Citation)
    assert adapter.validate_python(adapter.dump_python(citation, mode="json")) == citation
    with pytest.raises(AttributeError):
        citation.type = "other"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def test_a_history_keeps_its_rows() -> None:
    row = {"question": "q", "answer": object()}
    history = History([row, {}])
    assert history[0] is row
    assert [*history] == [row, {}]
    assert history == History([row, {}])
    assert history[1:] == History([{}])
    assert history != [row, {}]
    assert repr(History([{"a": 1}])) == "History([{'a': 1}])"


@each_case("value", [[{"a": 1}], ({"a": 1},), {"messages": [{"a": 1}]}, History([{"a": 1}])])
def test_pydantic_validates_a_history(value: object) -> None:
    adapter = TypeAdapter(History)
    assert adapter.validate_python(value) == History([{"a": 1}])
    assert adapter.dump_python(History([{"a": 1}]), mode="json") == [{"a": 1}]


@each_case(
    ("rows", "place"),
    [
        ("ab", "history"),
        ({"a": 1}, "history"),
        (5, "history"),
        ([{"a": 1}, 5], "history[1]"),
        ([{1: 2}], "history[0]"),
    ],
)
def test_rows_that_are_no_dicts_are_refused(rows: Any, place: str) -> None:
    with pytest.raises(OptionError) as caught:
        History(rows)
    assert caught.value.place == place
    with pytest.raises(ValidationError):
        TypeAdapter(History).validate_python(rows)
