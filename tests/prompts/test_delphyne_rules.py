"""Rules of Delphyne 0.15 for queries, answers, parsers and chat histories: one case for each rule.

A case with the word "instead" is a deliberate difference. Its rule states what agentkit does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from agentkit import (
    Msg,
    OptionError,
    ParseError,
    TemplateError,
    TemplateNotFoundError,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.prompts import Example, Feedback, InputField, PromptAdapter, PromptTemplates, Signature, parsers
from agentkit.prompts.parser import ToolRequests
from agentkit.prompts.parsers import first_word, last_code_block, structured, text, tool_call, yaml
from agentkit.testing import ScriptedModel
from agentkit.tools.choices import ToolChoice

CAPABILITIES: Final = ScriptedModel([]).formatter.capabilities("gpt-5")
ERROR: Final = ParseError("too deep")


@dataclass
class Depth:
    """Depth of the water."""

    meters: int
    is_safe: bool = True


class Tide(Signature[Depth]):
    """Tell the depth at {{ query.harbor }}."""

    harbor: str
    boats: list[str] = InputField(default_factory=list)


class Plain(Signature[str]):
    """Tell the depth."""

    harbor: str


class Word(Signature[Literal["high", "low"]]):
    """Tell the tide."""

    harbor: str


class Texts(Signature[str]):
    """Not used."""

    __system_prompt__ = """
        First line.
          Second line of {{ query.harbor }}.
    """
    __instance_prompt__ = "Harbor {{ query.harbor }}"
    globals = {"unit": "m"}  # noqa: RUF012 - a constant of the signature

    harbor: str


class Chat(Signature[str]):
    """Answer."""

    question: str
    prefix: list[Msg | Feedback | Example] = InputField(default_factory=list)


def search(query: str) -> str:
    """Search."""
    return query


Turns = list[tuple[str, str]]


def turns(msgs: Sequence[Msg]) -> Turns:
    return [(msg.role, msg.text) for msg in msgs]


def render(adapter: PromptAdapter, signature: Any = Plain, **inputs: Any) -> Turns:
    return turns(adapter.format(signature, inputs or {"harbor": "Brest"}))


def user(template: str, signature: Any = Plain, **options: Any) -> str:
    return render(PromptAdapter(system="", user=template, **options), signature)[0][1]


def write(folder: Path, **files: str) -> PromptTemplates:
    for name, content in files.items():
        stem, _, suffix = name.rpartition("__")
        (folder / f"{stem.replace('__', '.')}.{suffix}").write_text(content, "utf-8")
    return PromptTemplates(folder, data=folder)


def write_twice(folder: Path, name: str, *contents: str) -> PromptTemplates:
    folders: list[Path] = []
    for number, content in enumerate(contents):
        folders.append(folder / str(number))
        folders[-1].mkdir()
        (folders[-1] / f"{name}.data.yaml").write_text(content, "utf-8")
    return PromptTemplates(data=folders)


def catch(error: type[Exception], function: Callable[..., object], *args: Any, **options: Any) -> str:
    """Returns the first sentence of the error that a function raises."""
    with pytest.raises(error) as caught:
        function(*args, **options)
    return str(caught.value).partition(". ")[0]


def read(parser: Any, reply: str | Msg, signature: Any = Plain) -> Any:
    return PromptAdapter(parser=parser).parse(signature, reply)["answer"]


def options(parser: Any, signature: Any = Tide) -> dict[str, Any]:
    return dict(PromptAdapter(parser=parser).request_options(signature, CAPABILITIES))


def call(*names: str, **arguments: Any) -> Msg:
    return Msg("Friday", [ToolUseBlock(f"c{i}", name, arguments) for i, name in enumerate(names)], "assistant")


SEARCH: Final = call("search", query="tides")
TOOL_OR_SEARCH: Final = tool_call.as_type(Depth).with_tools(search)
TIDE_OR_CALL: Final = structured.as_type(Depth).or_error().with_tools(search)


def return_error(value: str) -> ParseError:
    return ERROR


def fail(value: str) -> None:
    raise ERROR


def fail_as_python(value: str) -> None:
    raise ValueError("too deep for Python")


@dataclass(frozen=True)
class Case:
    """Rule, and the value that shows it, for a folder of templates."""

    rule: str
    actual: Callable[[Path], object]
    expected: object


MODES: Final = PromptAdapter(
    system="",
    user="{{ mode }} of {{ available_modes }}",
    parser=text,
    modes={"cot": PromptAdapter(user="Think, {{ mode }}.", parser=last_code_block), "brief": PromptAdapter()},
)
ANSWER: Final = '{"meters": 3, "is_safe": true}'
INDENTED: Final = '{\n  "meters": 3,\n  "is_safe": true\n}'

QUERIES: Final[list[Case]] = [
    Case(
        "the attributes of a query are its arguments, defaults included",
        lambda _: user("{{ query | json }}", Tide),
        '{"harbor": "Brest", "boats": []}',
    ),
    Case("the tags of a query are its name by default", lambda _: Tide.tags, ("Tide",)),
    Case(
        "a prompt is the file of the query and the kind",
        lambda folder: render(
            PromptAdapter(
                system="no",
                user="no",
                templates=write(folder, Plain__system__jinja="A", Plain__instance__jinja="B\n"),
            )
        ),
        [("system", "A"), ("user", "B")],
    ),
    Case(
        "otherwise, a prompt is the class attribute, dedented and stripped",
        lambda _: render(PromptAdapter(), Texts, harbor="Brest"),
        [("system", "First line.\n  Second line of Brest."), ("user", "Harbor Brest")],
    ),
    Case(
        "the arguments of an adapter take precedence over the class attribute",
        lambda _: render(PromptAdapter(system="S", user="U"), Texts, harbor="Brest"),
        [("system", "S"), ("user", "U")],
    ),
    Case(
        "the default of the kind instance is the arguments as trimmed YAML",
        lambda _: render(PromptAdapter(), Tide, harbor="Brest", boats=["a", "b"])[1],
        ("user", "harbor: Brest\nboats:\n  - a\n  - b"),
    ),
    Case(
        "the arguments are written without the prefix",
        lambda _: render(PromptAdapter(), Chat, question="2 + 2?", prefix=[])[1],
        ("user", "question: 2 + 2?"),
    ),
    Case(
        "the default of the kind system is the docstring, which is a template",
        lambda _: render(PromptAdapter(), Tide, harbor="Brest")[0],
        ("system", "Tell the depth at Brest."),
    ),
    Case(
        "a query without a docstring gets a sentence with its fields instead",
        lambda _: PromptAdapter().format(Signature("a -> b"), {"a": "x"})[0].text,
        "Given the fields `a`, produce the fields `b`.",
    ),
    Case(
        "the default of the kind feedback contains the description",
        lambda _: PromptAdapter().format_feedback(Feedback("bad", "Too deep."), Plain, {"harbor": "Brest"}),
        'Error. Please try again.\n\n"""\nToo deep.\n"""',
    ),
    Case(
        "feedback without a description fails",
        lambda _: catch(TemplateError, PromptAdapter().format_feedback, Feedback("bad"), Plain, {}),
        "Plain.feedback (default text), line 1: the feedback has no description",
    ),
    Case(
        "a kind without any text is an error with the name of the file",
        lambda _: catch(TemplateNotFoundError, PromptAdapter().format_prompt, "hint", Plain, {}),
        "Plain.hint.jinja: no such template",
    ),
    Case(
        "any other kind is a file",
        lambda folder: PromptAdapter(
            templates=write(folder, Plain__hint__jinja="{{ query.harbor }}: {{ x }}")
        ).format_prompt("hint", Plain, {"harbor": "Brest"}, {"x": 3}),
        "Brest: 3",
    ),
    Case(
        "line breaks after blocks, indents of blocks and the last line break are removed",
        lambda _: user("A\n  {% if true %}\nB\n  {% endif %}\nC\n"),
        "A\nB\nC",
    ),
    Case(
        "an undefined name is an error",
        lambda _: catch(TemplateError, user, "{{ query.port }}"),
        "Plain.instance (default text), line 1: 'dict object' has no attribute 'port'",
    ),
    Case(
        "the filters yaml and json have options",
        lambda _: user("{{ query | json(indent=1) }}|{{ query | yaml(exclude_fields='harbor') | trim }}", Tide),
        '{\n "harbor": "Brest",\n "boats": []\n}|boats: []',
    ),
    Case(
        "fail() raises",
        lambda _: catch(TemplateError, user, "{{ fail('no harbor') }}"),
        "Plain.instance (default text), line 1: no harbor",
    ),
    Case(
        "a syntax error and a missing include are template errors",
        lambda _: [
            catch(TemplateError, user, source).partition(",")[0]
            for source in ("{% if %}", "{% include 'x.jinja' %}")
        ],
        ["Plain.instance (default text)"] * 2,
    ),
    Case(
        "data has the data files by name",
        lambda folder: user(
            "{{ data.ports[0] }}", templates=write(folder, ports__data__yaml="[Brest, Vigo]", a__jinja="")
        ),
        "Brest",
    ),
    Case(
        "lists in data files of one name are concatenated",
        lambda folder: user(
            "{{ data.ports | json }}", templates=write_twice(folder, "ports", "[Brest]", "[Vigo]")
        ),
        '["Brest", "Vigo"]',
    ),
    Case(
        "data files of one name that are not both lists are an error",
        lambda folder: catch(OptionError, write_twice, folder, "ports", "[Brest]", "a: 1").partition(": ")[2],
        "another data folder has a file of this name, but at least one of the two files contains no list",
    ),
    Case("params are free parameters", lambda _: user("{{ params.n }}", params={"n": 3}), "3"),
    Case(
        "globals are defined if the query has them",
        lambda _: (
            PromptAdapter(user="{{ globals.unit }}").format(Texts, {"harbor": "Brest"})[1].text,
            catch(TemplateError, user, "{{ globals }}").rpartition(": ")[2],
        ),
        ("m", "'globals' is undefined"),
    ),
    Case(
        "examples have numbers, and a request has none",
        lambda _: [
            msg.text
            for msg in PromptAdapter(system="", user="{{ example }} {{ example_id }}").format(
                Plain, {"harbor": "Vigo"}, examples=[Example({"harbor": "Brest"}, {"answer": "3"})] * 2
            )
            if msg.role == "user"
        ],
        ["True 1", "True 2", "False None"],
    ),
    Case(
        "YAML keeps the order of keys and all characters, and writes long texts as blocks",
        lambda _: render(PromptAdapter(system=""), Tide, harbor="Île\nB", boats=["x"])[0][1],
        "harbor: |-\n  Île\n  B\nboats:\n  - x",
    ),
    Case(
        "YAML breaks lines after 100 characters",
        lambda _: render(PromptAdapter(system=""), harbor="word " * 25 + "end")[0][1],
        f"harbor: {'word ' * 18}word\n  {'word ' * 6}end",
    ),
    Case(
        "the text after !<assistant> becomes an assistant message",
        lambda _: render(PromptAdapter(system="", user="Harbor?\n!<assistant>\nThe depth is")),
        [("user", "Harbor?"), ("assistant", "The depth is")],
    ),
    Case(
        "a priming without text has no message",
        lambda _: render(PromptAdapter(system="", user="Harbor?\n!<assistant>\n")),
        [("user", "Harbor?")],
    ),
    Case(
        "an input cannot prime the reply instead",
        lambda _: render(PromptAdapter(system="", user="{{ query.harbor }}"), Plain, harbor="a\n!<assistant>\nb"),
        [("user", "a\n!<assistant>\nb")],
    ),
    Case("the default mode is None", lambda _: user("{{ mode }} {{ available_modes }}"), "None [None]"),
    Case(
        "a mode selects the wording and the parser",
        lambda _: [
            (turns(adapter.format(Plain, {"harbor": "B"})), adapter.parse(Plain, "x\n```\n3\n```")["answer"])
            for adapter in (MODES, MODES.select_mode("cot"), MODES.select_mode("brief"))
        ],
        [
            ([("user", "None of [None, 'cot', 'brief']")], "x\n```\n3\n```"),
            ([("user", "Think, cot.")], "3"),
            ([("user", "brief of [None, 'cot', 'brief']")], "x\n```\n3\n```"),
        ],
    ),
    Case(
        "each example has its own mode",
        lambda _: turns(
            MODES.format(
                Plain,
                {"harbor": "C"},
                examples=[
                    Example({"harbor": "A"}, {"answer": "1"}, mode="cot"),
                    Example({"harbor": "B"}, {"answer": "2"}),
                ],
            )
        ),
        [
            ("user", "Think, cot."),
            ("assistant", "```\n1\n```"),
            ("user", "None of [None, 'cot', 'brief']"),
            ("assistant", "2"),
            ("user", "None of [None, 'cot', 'brief']"),
        ],
    ),
    Case(
        "format has the place, the kind and the schema of the answer",
        lambda _: [
            user("{{ format.where }} {{ format.what }} {{ format.schema | json }}", Word, parser=parser)
            for parser in (text, yaml, first_word, last_code_block, tool_call)
        ],
        [
            f'{where} {what} {{"enum": ["high", "low"], "type": "string"}}'
            for where, what in (
                ("full_answer", "text"),
                ("full_answer", "yaml"),
                ("full_answer", "one_word"),
                ("last_code_block", "text"),
                ("tool_call", "json"),
            )
        ],
    ),
    Case(
        "format.instructions are the instructions for the model, instead of a library template",
        lambda _: [
            user("{{ format.instructions }}", signature, parser=parser)
            for signature, parser in (
                (Plain, text),
                (Plain, last_code_block),
                (Word, first_word),
                (Plain, first_word),
                (Tide, tool_call),
                (Signature("harbor -> n: int"), yaml),
                (Signature("harbor -> n: int"), structured),
            )
        ],
        [
            "Reply with the answer only.",
            "End the reply with a code block that contains the answer only.",
            "Begin the reply with one of these words: high, low.",
            "Begin the reply with one word.",
            "Reply with one call of the tool `Depth`.",
            'Reply with YAML only. The value must match this JSON schema:\n{"type": "integer"}',
            'Reply with JSON only. The value must match this JSON schema:\n{"type": "integer"}',
        ],
    ),
]

ANSWERS: Final[list[Case]] = [
    Case(
        "an answer has a mode, content, tool calls and a justification",
        lambda _: [
            (msg.text, [(use.name, use.input) for use in msg.tool_uses])
            for msg in MODES.format(
                Plain,
                {"harbor": "B"},
                examples=[
                    Example(
                        {"harbor": "A"},
                        {"answer": "3", "tool_calls": [{"name": "look", "args": {"at": "A"}}]},
                        mode="cot",
                        note="It is deep.",
                    )
                ],
            )[1:2]
        ],
        [("```\n3\n```\n\nIt is deep.", [("look", {"at": "A"})])],
    ),
    Case(
        "a justification follows the answer after a blank line",
        lambda _: (
            PromptAdapter(parser=text)
            .format(Plain, {"harbor": "B"}, examples=[Example({"harbor": "A"}, {"answer": "3"}, note="Deep.")])[2]
            .text
        ),
        "3\n\nDeep.",
    ),
    Case("structured requests the type", lambda _: options(None), {"response_format": Depth}),
    Case("structured validates the answer", lambda _: read(None, ANSWER, Tide), Depth(3)),
    Case(
        "structured accepts no tool calls",
        lambda _: catch(ParseError, structured.as_type(Depth).parse, call("search")),
        "reply: expected text, got tool calls: search",
    ),
    Case(
        "structured accepts bare types instead: the request asks for an object with the property value",
        lambda _: (options(None, Plain), read(None, '{"value": "deep"}'), read(None, '"deep"')),
        ({"response_format": str}, "deep", "deep"),
    ),
    Case("text reads the text", lambda _: read(text, " deep "), " deep "),
    Case(
        "text accepts no tool calls",
        lambda _: catch(ParseError, text.parse, call("search")),
        "reply: expected text, got tool calls: search",
    ),
    Case("strip removes white space at both ends", lambda _: read(text.strip(), " deep "), "deep"),
    Case(
        "json and yaml take the type from the query",
        lambda _: (read(parsers.json, ANSWER, Tide), read(yaml, "meters: 3", Tide)),
        (Depth(3), Depth(3)),
    ),
    Case(
        "as_type reads another type",
        lambda _: (read(parsers.json.as_type(int), "3"), read(yaml.as_type(list[int]), "- 3")),
        (3, [3]),
    ),
    Case(
        "last_code_block reads the last fence, also if fences are unbalanced",
        lambda _: (
            read(last_code_block, "```\na\n```\n```py\nb\n```\n"),
            read(last_code_block, "```\na\n```\n```py\nb"),
        ),
        ("b", "b"),
    ),
    Case(
        "last_code_block needs a line break after the opening fence",
        lambda _: catch(ParseError, read, last_code_block, "Use ```a``` here."),
        "reply: expected a code block, but the text has none",
    ),
    Case("first_word reads the first word", lambda _: read(first_word, " high, or so", Plain), "high,"),
    Case(
        "first_word must be a member exactly",
        lambda _: (
            read(first_word, "low tide", Word),
            catch(ParseError, read, first_word, "Low tide", Word),
        ),
        ("low", "reply: expected one of 'high', 'low' as the first word, got 'Low'"),
    ),
    Case(
        "tool_call offers the type as a tool that must be called",
        lambda _: (
            [tool.name for tool in options(tool_call)["tools"]],
            options(tool_call)["tool_choice"],
            read(tool_call, call("Depth", meters=3), Tide),
        ),
        (["Depth"], ToolChoice("tool", "Depth"), Depth(3)),
    ),
    Case(
        "a reply without exactly one call of this tool is a parse error instead of an assertion",
        lambda _: [
            catch(ParseError, read, tool_call, reply, Tide)
            for reply in (call("Depth", "Depth", meters=3), call("other"), "deep")
        ],
        [
            f"reply: expected one call of the tool Depth, got {actual}"
            for actual in ("Depth, Depth", "other", "no call")
        ],
    ),
    Case(
        "a tool that must be called, beside other tools, makes any call required",
        lambda _: (
            [tool.name for tool in options(TOOL_OR_SEARCH)["tools"]],
            options(TOOL_OR_SEARCH)["tool_choice"],
        ),
        (["Depth", "search"], ToolChoice("required")),
    ),
    Case("map changes the value", lambda _: read(text.map(len), "deep"), 4),
    Case(
        "validate may return or raise an error, and a ValueError becomes one",
        lambda _: [
            catch(ParseError, read, text.as_type(str).validate(check), "deep")
            for check in (return_error, fail, fail_as_python)
        ],
        ["reply: too deep", "reply: too deep", "reply: too deep for Python"],
    ),
    Case(
        "or_error returns the error as a value",
        lambda _: read(structured.as_type(Depth).or_error(), "deep", Tide).description,
        "expected JSON, but the text contains none",
    ),
    Case(
        "with_tools reads an answer or tool calls",
        lambda _: [read(structured.as_type(Depth).with_tools(search), reply, Tide) for reply in (ANSWER, SEARCH)],
        [Depth(3), ToolRequests(SEARCH.tool_uses)],
    ),
    Case(
        "with_tools must follow as_type",
        lambda _: catch(OptionError, read, structured.with_tools(search), ANSWER, Tide),
        "parser: structured.with_tools(search) declares no type, so the outputs of Tide would not be validated",
    ),
    Case(
        "calls to known tools win over parsing",
        lambda _: read(
            text.with_tools(search),
            Msg("Friday", [{"type": "text", "text": "Hm."}, *SEARCH.tool_uses], "assistant"),
        ),
        ToolRequests(SEARCH.tool_uses),
    ),
    Case(
        "a bad tool argument is an error that or_error does not return",
        lambda _: catch(
            ParseError, read, structured.as_type(Depth).or_error().with_tools(search), call("search"), Tide
        ),
        "tool_calls[0].input: the arguments of the tool search lack 'query'",
    ),
    Case(
        "an unknown tool falls through to the parser",
        lambda _: catch(ParseError, read, structured.as_type(Depth).with_tools(search), call("other"), Tide),
        "reply: expected text, got tool calls: other",
    ),
    Case("the choices are the members of a Literal", lambda _: Word.choices(), ("high", "low")),
    Case(
        "an answer is written so that its parser reads it",
        lambda _: [
            PromptAdapter(parser=parser).format_assistant_message_content(Word, {"answer": "low"})
            for parser in (None, parsers.json, yaml, text, first_word, last_code_block, tool_call)
        ],
        ['{\n  "value": "low"\n}', '"low"', "low", "low", "low", "```\nlow\n```", '{\n  "value": "low"\n}'],
    ),
]
HISTORIES: Final[list[Case]] = [
    Case(
        "the prefix has answers, feedback and tool results, which follow the instance prompt",
        lambda _: [
            (msg.role, msg.text, len(msg.tool_uses), len(msg.tool_results))
            for msg in PromptAdapter(system="", user="{{ query.question }}").format(
                Chat,
                {
                    "question": "Tides?",
                    "prefix": [
                        Msg("Friday", "high", "assistant"),
                        Feedback("bad", "Be precise."),
                        SEARCH,
                        Msg("tools", [ToolResultBlock("c0", "3 m")], "user"),
                    ],
                },
            )
        ],
        [
            ("user", "Tides?", 0, 0),
            ("assistant", "high", 0, 0),
            ("user", 'Error. Please try again.\n\n"""\nBe precise.\n"""', 0, 0),
            ("assistant", "", 1, 0),
            ("user", "", 0, 1),
        ],
    ),
    Case(
        "the chat is the system prompt, each example with its prefix and answer, and the request with its prefix",
        lambda _: turns(
            PromptAdapter(user="{{ query.question }}", parser=text).format(
                Chat,
                {"question": "Q", "prefix": [Msg("Friday", "P", "assistant")]},
                examples=[
                    Example({"question": "A", "prefix": [Msg("Friday", "B", "assistant")]}, {"answer": "C"}),
                    Example({"question": "D"}, {"answer": "E"}),
                ],
            )
        ),
        [
            ("system", "Answer."),
            *(("user", "A"), ("assistant", "B"), ("assistant", "C")),
            *(("user", "D"), ("assistant", "E")),
            *(("user", "Q"), ("assistant", "P")),
        ],
    ),
    Case(
        "structured answers are JSON with an indent of 2",
        lambda _: (
            PromptAdapter()
            .format(Tide, {"harbor": "B"}, examples=[Example({"harbor": "A"}, {"answer": json.loads(ANSWER)})])[2]
            .text
        ),
        INDENTED,
    ),
    Case(
        "two equal tool calls get two ids instead of one",
        lambda _: len(
            {
                use.id
                for msg in PromptAdapter().format(
                    Plain,
                    {"harbor": "B"},
                    examples=[Example({"harbor": "A"}, {"tool_calls": [{"name": "look", "args": {}}] * 2})] * 2,
                    history=[Example({"harbor": "A"}, {"tool_calls": [{"name": "look", "args": {}}] * 2})] * 2,
                )
                for use in msg.tool_uses
            }
        ),
        8,
    ),
    Case(
        "the kind repair asks again with the error",
        lambda _: PromptAdapter().format_prompt(
            "repair", Plain, {"harbor": "B"}, {"feedback": Feedback("bad", "Too deep.")}
        ),
        "Invalid answer. Please consider the following feedback and try again:\n\nToo deep.",
    ),
    Case(
        "the kind more asks for another answer",
        lambda _: PromptAdapter().format_prompt("more", Plain, {"harbor": "B"}),
        "Good! Can you generate a different answer now?",
    ),
]


@pytest.mark.parametrize("case", [*QUERIES, *ANSWERS, *HISTORIES], ids=lambda case: case.rule)
def test_the_rule_holds(case: Case, tmp_path: Path) -> None:
    assert case.actual(tmp_path) == case.expected
