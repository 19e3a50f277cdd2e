"""The command `export`: rows of training data, the summary, and refused conversations."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from agentkit import (
    MessageError,
    Msg,
    MultiAgentHistory,
    OptionError,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    dump_messages,
)
from agentkit.chat_templates import ChatTemplate
from agentkit.cli.files import encode_row
from agentkit.training import Sample, load_rows, samples_from_log
from tests.cases import each_case
from tests.cli.test_cli import call as call_command
from tests.training.templates import UNMARKED, create_tokenizer

Call: TypeAlias = Callable[..., tuple[int, str, str]]

MSGS: Final = [
    Msg("system", "Be brief.", "system"),
    Msg("Bob", "Où?", "user"),
    Msg("Friday", "Here.", "assistant"),
    Msg("Alice", "There.", "assistant"),
    Msg("Bob", "So?", "user"),
    Msg("Friday", "Yes.", "assistant"),
]


@pytest.fixture
def call(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs the command, and returns exit code, standard output and standard error."""
    return partial(call_command, capsysbinary, monkeypatch)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(dump_messages(MSGS)), "utf-8")
    return path


def read_rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@each_case("format", ["openai", "sharegpt", "trl"])
def test_a_conversation_is_one_row(call: Call, log: Path, format: Any) -> None:
    code, out, err = call("export", str(log), "--format", format)
    (row,) = read_rows(out)
    assert code == 0
    assert err.startswith("1 samples, 0 refused, ")
    (sample,) = load_rows(format, [row])
    assert [msg.text for msg in sample.msgs] == [msg.text for msg in MSGS]


def test_each_reply_of_a_viewer_is_a_row_with_its_prompt(call: Call, log: Path) -> None:
    code, out, err = call("export", str(log), "--format", "openai", "--viewer", "Friday", "--template", "zephyr")
    rows = read_rows(out)
    assert (code, err) == (0, "2 samples, 0 refused, 0 losses\n")
    formatter = ChatTemplate.builtin("zephyr").formatter(history=MultiAgentHistory(viewer="Friday"))
    expected = [*samples_from_log(MSGS, viewers=["Friday"], formatter=formatter)]
    assert [row["messages"][-1]["content"] for row in rows] == ["Here.", "Yes."]
    assert [row["messages"][1]["content"] for row in rows] == [sample.msgs[1].text for sample in expected]
    code, out, _ = call("export", str(log), "--format", "openai", "--viewer", "all")
    assert [row["messages"][-1]["content"] for row in read_rows(out)] == ["Here.", "There.", "Yes."]
    code, out, err = call("export", str(log), "--format", "openai", "--viewer", "Eve")
    assert (code, out) == (2, "")
    assert err.endswith(
        "--viewer: no agent with the name 'Eve' wrote a reply in the logs. Pass one of 'Alice', 'Friday'.\n"
    )


def test_rows_of_trl_have_the_columns_of_the_first_row(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "logs.jsonl"
    path.write_text("\n".join(json.dumps(dump_messages(msgs)) for msgs in (MSGS, MSGS[:3])), "utf-8")
    options = ("--format", "trl", "--train-on", "last")
    code, out, err = call("export", str(path), *options)
    assert (code, err) == (0, "2 samples, 0 refused, 0 losses\n")
    assert [[*row] for row in read_rows(out)] == [["prompt", "completion"]] * 2


LOGS: Final[dict[str, Any]] = {
    "openai": {
        "messages": [{"role": "user", "content": "Où?"}, {"role": "assistant", "content": "Here."}],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
    },
    "anthropic": {
        "messages": [
            {"role": "user", "content": "Où?"},
            {"role": "assistant", "content": [{"type": "text", "text": "Here."}]},
        ],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "Où?"}]},
            {"role": "model", "parts": [{"text": "Here."}]},
        ],
        "config": {"tools": [{"function_declarations": [{"name": "look"}]}]},
    },
    "ollama": {
        "messages": [{"role": "user", "content": "Où?"}, {"role": "assistant", "content": "Here."}],
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
    },
    "openai-responses": {
        "input": [
            {"role": "user", "content": "Où?"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Here."}]},
        ],
        "tools": [{"type": "function", "name": "look", "parameters": {"type": "object"}}],
    },
    "dashscope": {
        "input": {"messages": [{"role": "user", "content": "Où?"}, {"role": "assistant", "content": "Here."}]},
        "parameters": {"tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}]},
    },
}


@pytest.mark.parametrize("provider", LOGS)
def test_logs_of_providers_are_exported(call: Call, tmp_path: Path, provider: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(LOGS[provider]), "utf-8")
    code, out, err = call("export", str(path), "--from", provider, "--format", "openai")
    assert (code, err) == (0, "1 samples, 0 refused, 0 losses\n")
    (row,) = read_rows(out)
    assert [message["content"] for message in row["messages"]] == ["Où?", "Here."]
    assert [tool["function"]["name"] for tool in row["tools"]] == ["look"]


def test_an_unreadable_log_is_refused_and_the_next_is_read(call: Call, log: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.json"
    code, out, err = call("export", str(missing), str(log), "--format", "openai")
    assert (code, len(read_rows(out))) == (2, 1)
    assert err.splitlines() == [
        f"agentkit: {missing}: read failed (No such file or directory). Pass a readable file.",
        "1 samples, 1 refused, 0 losses",
    ]


def test_a_refused_sample_does_not_end_its_conversation(call: Call, tmp_path: Path) -> None:
    metadata = {"reply": {"token_ids": [1], "usage": {"output_tokens": 2}}}
    broken = Msg("Friday", "Hm.", "assistant", metadata=metadata)
    path = tmp_path / "logs.jsonl"
    texts = [json.dumps(dump_messages(msgs)) for msgs in ([*MSGS[:3], broken, *MSGS[4:]], MSGS[:3])]
    path.write_text("\n".join(texts), "utf-8")
    code, out, err = call("export", str(path), "--format", "openai", "--viewer", "all")
    assert code == 2
    assert [row["messages"][-1]["content"] for row in read_rows(out)] == ["Here.", "Yes.", "Here."]
    refused, summary = err.splitlines()
    assert refused.startswith(f"agentkit: {path}, line 1: msgs[3]: the server returned 1 token ids")
    assert summary == "3 samples, 1 refused, 0 losses"


def test_an_error_in_the_prompt_of_a_reply_names_both_messages(call: Call, tmp_path: Path) -> None:
    used = Msg("Friday", [ToolUseBlock("c1", "look", {})], "assistant")
    path = tmp_path / "log.json"
    path.write_text(json.dumps(dump_messages([MSGS[1], MSGS[3], used])), "utf-8")
    _, _, err = call("export", str(path), "--format", "openai", "--viewer", "Friday", "--template", "chatml")
    assert err.startswith(f"agentkit: {path}: msgs[2]: msgs[1]: the chat template")


@pytest.mark.slow
@each_case("redirect", [">> {log}", "- < {log} >> {log}", "> {log}"])
def test_a_log_that_is_also_the_output_is_refused(tmp_path: Path, redirect: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(LOGS["openai"]) + "\n", "utf-8")
    source = "" if "- <" in redirect else str(path)
    code = f"{sys.executable} -c 'from agentkit.cli import main; main()' export --from openai --format openai"
    command = f"{code} {source} {redirect.format(log=path)}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=60)
    assert "the file is also the output. Redirect standard output to another file." in done.stderr
    assert (done.returncode, len(path.read_text("utf-8").splitlines())) == (2, 1 if ">>" in redirect else 0)


def test_standard_error_can_be_closed(log: Path) -> None:
    code = f"{sys.executable} -c 'from agentkit.cli import main; main()' export {log} --format openai 2>&-"
    done = subprocess.run(code, shell=True, stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (done.returncode, len(read_rows(done.stdout))) == (0, 1)


def test_a_failure_of_the_output_ends_the_command(call: Call, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(row: bytes) -> None:
        raise OptionError("standard output", "write failed (No space left on device)", "Free some space.")

    monkeypatch.setattr("agentkit.cli.export.write_bytes", fail)
    code, out, err = call("export", str(log), str(log), "--format", "openai")
    assert (code, out) == (2, "")
    assert err == "agentkit: standard output: write failed (No space left on device). Free some space.\n"


def test_only_the_last_reply_is_trained(call: Call, log: Path) -> None:
    _, out, _ = call("export", str(log), "--format", "openai", "--train-on", "last")
    weights = [message.get("weight") for message in read_rows(out)[0]["messages"]]
    assert weights == [None, None, 0, 0, None, 1]


def test_the_replies_of_a_conversation_are_listed_once(
    call: Call, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[Sample] = []

    def list_replies(sample: Sample) -> tuple[int, ...]:
        listed.append(sample)
        return (2, 3, 5)

    monkeypatch.setattr(Sample, "replies", property(list_replies))
    call("export", str(log), "--format", "openai", "--train-on", "last")
    assert len(listed) == 1  # the time of a search for each message grows with the square of their number


def test_the_summary_counts_tokens_losses_and_refused_conversations(call: Call, tmp_path: Path) -> None:
    tokenizer = cast("Any", tokenizers).Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    source = ChatTemplate.builtin("zephyr").jinja or ""
    (tmp_path / "chat_template.jinja").write_text(source, "utf-8")
    path = tmp_path / "logs.jsonl"
    calls = [MSGS[1], Msg("Friday", [ToolUseBlock("c1", "look", {})], "assistant")]
    texts = [json.dumps(dump_messages(msgs)) for msgs in (MSGS, calls, MSGS[:3])]
    path.write_text("\n".join([texts[0], "", "[", *texts[1:]]), "utf-8")
    options = ("--template", str(tmp_path), "--max-tokens", "40")
    code, out, err = call("export", str(path), "--format", "alpaca", *options)
    refused, invalid, unwritten, summary, *reasons = err.splitlines()
    assert code == 2
    assert [row["output"] for row in read_rows(out)] == ["Here."]
    assert refused.startswith(f"agentkit: {path}, line 1: samples[0]")
    assert invalid.startswith(f"agentkit: {path}, line 3: input: the text is not JSON")
    assert unwritten.startswith(f"agentkit: {path}, line 4: msgs[1]: the chat template")
    trained = len("Here.</s>")
    assert summary == f"1 samples, {trained} trained tokens, 1 cut, 3 refused, 2 losses"
    assert reasons == [
        "  1 × the format has no field for the name 'Bob'",
        "  1 × the format has no field for the name 'Friday'",
    ]
    code, out, err = call("export", str(path), "--format", "alpaca")  # a reply that is only a call would be empty
    assert [row["output"] for row in read_rows(out)] == ["Here."]
    *_, unwritten, summary, _, _ = err.splitlines()
    assert unwritten == (
        f"agentkit: {path}, line 4: samples[1].msgs[1]: the format 'alpaca' has no field for the content of the "
        "trained reply. Use another format, or remove the reply."
    )
    assert summary == "1 samples, 3 refused, 2 losses"


def test_what_the_template_does_not_write_is_counted(call: Call, tmp_path: Path) -> None:
    used = ToolUseBlock("c1", "look", {"q": 1})
    reply = Msg("Friday", [ThinkingBlock("Hm."), TextBlock("Here.")], "assistant")
    log = [Msg("Bob", "Où?", "user"), reply, Msg("Bob", "So?", "user"), Msg("Friday", [used], "assistant")]
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    path, folder = tmp_path / "log.json", tmp_path / "model"
    path.write_text(json.dumps({**dump_messages(log), "tools": tools}), "utf-8")
    folder.mkdir()
    tokenizer = cast("Any", tokenizers).Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.save(str(folder / "tokenizer.json"))
    source = "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{% endfor %}"
    (folder / "chat_template.jinja").write_text(source, "utf-8")
    for template, counts in (("chatml", "1 losses"), (str(folder), "3 losses")):
        options = ("--format", "openai", "--viewer", "Friday", "--template", template)
        code, out, err = call("export", str(path), *options)
        assert (code, len(read_rows(out))) == (2, 1)
        refused, summary, *reasons = err.splitlines()
        assert refused.startswith(f"agentkit: {path}: msgs[3]: the chat template")
        assert "does not write the tool calls of the reply" in refused
        assert summary.startswith("1 samples")
        assert summary.endswith(f"1 refused, {counts}")
        assert len(reasons) == int(counts[0])
        assert any("does not write the declarations of tools" in reason for reason in reasons)
    assert any("writes no stop token after the reply" in reason for reason in reasons)
    assert any("does not write this content of a trained reply" in reason for reason in reasons)


def test_declarations_of_tools_that_the_template_does_not_write_are_counted(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**dump_messages(MSGS), "tools": [{"name": "look"}]}), "utf-8")
    for options in ((), ("--viewer", "Friday")):
        code, _, err = call("export", str(path), "--format", "openai", "--template", "chatml", *options)
        summary, reason = err.splitlines()
        assert (code, summary[1:]) == (0, " samples, 0 refused, 1 losses")
        assert reason.startswith("  1 × the chat template")
        assert reason.endswith("does not write the declarations of tools")


def test_recorded_token_ids_of_another_text_are_refused(call: Call, tmp_path: Path) -> None:
    tokenizer: Any = create_tokenizer(["Here."])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text(UNMARKED.jinja or "", "utf-8")
    path = tmp_path / "logs.jsonl"
    texts = ("Here.", "nonsense")
    recorded = [{"token_ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in texts]
    logs = [dump_messages([MSGS[1], replace(MSGS[2], metadata=metadata)]) for metadata in recorded]
    path.write_text("\n".join(map(json.dumps, logs)), "utf-8")
    options = ("--format", "openai", "--viewer", "Friday", "--template", str(tmp_path))
    code, out, err = call("export", str(path), *options)
    refused, summary, *_ = err.splitlines()
    assert (code, len(read_rows(out))) == (2, 1)
    assert refused.startswith(f"agentkit: {path}, line 2: msgs[1]: the recorded token ids decode to the text")
    assert summary.startswith("1 samples, ")
    assert "1 refused" in summary


@each_case(
    ("options", "text"),
    [
        (("--format", "openai"), "read failed"),
        (("--format", "openai", "--from", "nowhere"), "nowhere"),
        (
            ("--format", "openai", "--max-tokens", "9"),
            "--max-tokens: tokens cannot be counted without a tokenizer",
        ),
        (("--format", "openai", "--template", "nothing"), "there is no built-in template"),
        (("--format", "csv"), "'csv' is not one of"),
        ((), "Missing option '--format'"),
    ],
)
def test_a_wrong_option_is_an_error(call: Call, tmp_path: Path, options: tuple[str, ...], text: str) -> None:
    code, out, err = call("export", str(tmp_path / "missing.json"), *options)
    assert (code, out) == (2, "")
    assert text in err


@each_case("value", ["NaN", "Infinity ∞", 1e22, {"a": [None, True]}])
def test_a_row_is_one_line_of_json(value: Any) -> None:
    line = encode_row({"value": value})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"value": value}


@each_case("value", [math.nan, -math.inf, "\ud800"])
def test_a_row_that_json_cannot_represent_is_an_error(value: Any) -> None:
    with pytest.raises(MessageError, match="cannot be written as JSON"):
        encode_row({"value": [value]})
