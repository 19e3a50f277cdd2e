"""The command `prompt`: messages, requests, values of replies, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from agentkit import load_messages, load_provider
from agentkit.prompts import ChatAdapter, Example, JSONAdapter, PromptAdapter, Signature, XMLAdapter
from tests.cases import each_case
from tests.cli.test_cli import call as call_command
from tests.providers import PROVIDERS, problems

TASK: Final[dict[str, Any]] = {
    "signature": "question, context: list[str] -> answer: int",
    "instructions": "Be brief.",
    "inputs": {"question": "2 + 2?", "context": ["math"]},
    "examples": [{"inputs": {"question": "1 + 1?", "context": []}, "outputs": {"answer": 2}}],
}
SIGNATURE: Final[Any] = Signature(TASK["signature"], "Be brief.")
EXAMPLE: Final = Example({"question": "1 + 1?", "context": []}, {"answer": 2})


Call: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs the command, and returns exit code, standard output and standard error."""
    return partial(call_command, capsysbinary, monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(TASK), "utf-8")
    return path


@each_case(
    ("name", "adapter"),
    [("chat", ChatAdapter()), ("json", JSONAdapter()), ("xml", XMLAdapter()), ("prompt", PromptAdapter())],
)
def test_the_command_writes_the_messages_of_the_adapter(call: Call, file: Path, name: str, adapter: Any) -> None:
    code, out, err = call("prompt", str(file), "--adapter", name)
    assert (code, err) == (0, "")
    expected = adapter.format(SIGNATURE, TASK["inputs"], examples=[EXAMPLE])
    assert load_messages(json.loads(out)) == expected


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_command_builds_the_request_of_a_provider(call: Call, file: Path, provider: str) -> None:
    code, out, _ = call("prompt", str(file), "--provider", provider, "--adapter", "json")
    request = json.loads(out)
    assert code == 0
    assert problems(provider, request) == []
    msgs = JSONAdapter().format(SIGNATURE, TASK["inputs"], examples=[EXAMPLE])
    formatter = load_provider(provider).chat_formatter()
    options = JSONAdapter().request_options(SIGNATURE, formatter.capabilities())
    assert request == formatter.lower(msgs, **options).request


def test_the_command_parses_a_reply(call: Call, file: Path) -> None:
    code, out, _ = call("prompt", str(file), "--parse", "[[ ## answer ## ]]\n4")
    assert (code, json.loads(out)) == (0, {"answer": 4})
    code, out, _ = call("prompt", str(file), "--parse", '{"answer": "4"}', "--adapter", "json")
    assert (code, json.loads(out)) == (0, {"answer": 4})


def test_each_line_is_a_prompt_or_a_reply(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    rows = [TASK, {**TASK, "reply": "[[ ## answer ## ]]\n4"}, {**TASK, "reply": "four"}, {"signature": "a b"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    code, out, _ = call("prompt", str(path), "--lines")
    first, second, third, fourth = map(json.loads, out.splitlines())
    assert code == 2
    assert (first["messages"][0]["role"], second) == ("system", {"answer": 4})
    assert [row["error"]["class"] for row in (third, fourth)] == ["ParseError", "OptionError"]


WRONG: Final[list[tuple[Any, str]]] = [
    ([], "agentkit: input: expected an object, got list []. Pass an object with `signature`."),
    ({}, 'agentkit: signature: expected a string such as "question -> answer", got None.'),
    ({"signature": "a -> b", "inputs": []}, "agentkit: inputs: expected an object with the values"),
    ({"signature": "a -> b", "imputs": {}}, "agentkit: imputs: unknown key. Use the keys signature,"),
    ({"signature": "a -> b", "examples": [{"inputs": {}}]}, "agentkit: examples[0]: expected an object with"),
    ({"signature": "a -> b", "examples": [3], "inputs": {"a": "x"}}, "agentkit: examples[0]: expected"),
    ({"signature": "a -> b", "inputs": {"a": "x", "c": 1}}, "agentkit: StringSignature.c: "),
    ({"signature": "a: os.PathLike -> b"}, "agentkit: signature"),
]


@each_case(("task", "sentence"), WRONG)
def test_a_wrong_description_is_refused_with_its_place(
    call: Call, tmp_path: Path, task: Any, sentence: str
) -> None:
    path = tmp_path / "task.json"
    path.write_text(json.dumps(task), "utf-8")
    code, out, err = call("prompt", str(path))
    assert (code, out) == (2, "")
    assert err.startswith(sentence)


def test_a_reply_that_cannot_be_parsed_is_an_error(call: Call, file: Path) -> None:
    code, out, err = call("prompt", str(file), "--parse", "four")
    assert (code, out) == (2, "")
    assert err.startswith("agentkit: answer: expected the fields answer, but the reply has none.")
