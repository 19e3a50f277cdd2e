"""The command `format`: input, output and exit codes."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentkit import available_providers
from agentkit.cli import run
from tests.cases import each_case
from tests.providers import MESSAGE_PROVIDERS
from tests.wire.shapes import check_request

DATA = Path(__file__).parents[2] / "examples" / "data"
LIBRARY = str(DATA / "library.json")
POISONED = str(DATA / "poisoned.json")

MESSAGES = '[{"name": "Bob", "role": "user", "content": "hi"}]'


def call(
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str,
    stdin: str | bytes = "",
) -> tuple[int, str, str]:
    """Returns exit code, standard output and standard error of one run."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    code = run(list(arguments))
    out, err = capsysbinary.readouterr()
    return code, out.decode(), err.decode()


class TestFormat:
    @pytest.fixture(autouse=True)
    def _streams(self, capsysbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.streams = (capsysbinary, monkeypatch)

    def call(self, *arguments: str, stdin: str | bytes = "") -> tuple[int, str, str]:
        return call(*self.streams, *arguments, stdin=stdin)

    def test_the_request_for_a_file_is_written(self) -> None:
        code, out, err = self.call("format", LIBRARY, "--provider", "openai")
        assert (code, err) == (0, "")
        assert check_request("openai", json.loads(out)) == []
        assert len(json.loads(out)["tools"]) == 2

    def test_standard_input_is_read(self) -> None:
        assert self.call("format", "--provider", "ollama", stdin=MESSAGES)[0] == 0
        code, out, _ = self.call("format", "-", "--provider", "ollama", stdin=MESSAGES)
        assert (code, json.loads(out)) == (0, {"messages": [{"role": "user", "content": "hi"}]})

    def test_tools_tool_choice_and_schema_come_from_the_object(self) -> None:
        asked = {
            "messages": json.loads(MESSAGES),
            "tools": [
                {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
            ],
            "tool_choice": {"name": "look"},
            "response_format": {"type": "object", "properties": {"x": {"type": "string"}}},
        }
        code, out, _ = self.call("format", "--provider", "openai", stdin=json.dumps(asked))
        request = json.loads(out)
        assert code == 0
        assert request["tool_choice"]["function"]["name"] == "look"
        assert request["response_format"]["type"] == "json_schema"

    def test_options_for_many_agents_change_the_request(self) -> None:
        _, framed, _ = self.call("format", "--provider", "openai", "--multi-agent", stdin=MESSAGES)
        assert "<history>" in framed
        _, viewed, _ = self.call("format", "--provider", "openai", "--viewer", "Friday", stdin=MESSAGES)
        assert "You are Friday." in viewed
        _, plain, _ = self.call(
            "format", "--provider", "openai", "--frame", "plain", stdin=MESSAGES.replace("hi", "<|x")
        )
        assert "<|x" in plain

    def test_all_writes_a_request_for_every_provider(self) -> None:
        code, out, _ = self.call("format", LIBRARY, "--all")
        assert code == 0
        assert sorted(json.loads(out)) == sorted(MESSAGE_PROVIDERS)

    def test_a_template_writes_the_prompt_for_a_local_model(self) -> None:
        code, out, _ = self.call(
            "format", "--provider", "openai-completions", "--template", "zephyr", stdin=MESSAGES
        )
        assert code == 0
        assert json.loads(out)["prompt"] == "<|user|>\nhi</s>\n<|assistant|>\n"
        code, out, _ = self.call("format", "--all", "--template", "zephyr", stdin=MESSAGES)
        assert sorted(json.loads(out)) == available_providers()
        for provider, template in (("openai-completions", ()), ("openai", ("--template", "zephyr"))):
            code, _, err = self.call("format", "--provider", provider, *template, stdin=MESSAGES)
            assert code
            assert "template: " in err

    def test_the_ledger_is_a_table_on_stderr(self) -> None:
        code, out, err = self.call("format", POISONED, "--keep-invalid", "--provider", "anthropic", "--ledger")
        assert code == 0
        assert json.loads(out)
        assert "msgs[28].content[1]" in err
        assert "described, content lost" in err

    def test_the_ledger_may_be_json(self) -> None:
        _, _, err = self.call("format", POISONED, "--keep-invalid", "--provider", "anthropic", "--ledger", "json")
        ledger = json.loads(err)
        assert {entry["disposition"] for entry in ledger["blocks"]} >= {"dropped", "described", "carried"}

    def test_max_tokens_cuts_messages(self) -> None:
        code, out, _ = self.call(
            "format", str(DATA / "react.json"), "--provider", "openai", "--max-tokens", "4000"
        )
        assert code == 0
        assert 1 < len(json.loads(out)["messages"]) < 124

    def test_a_loss_with_raise_exits_with_1(self) -> None:
        code, out, err = self.call(
            "format", POISONED, "--keep-invalid", "--provider", "openai", "--on-loss", "raise"
        )
        assert (code, out) == (1, "")
        *notes, error = err.splitlines()
        assert error.startswith("agentkit: msgs[0].content[0]: ")
        assert [note.partition(": invalid block: ")[0] for note in notes] == ["agentkit: messages[32].content[1]"]

    @each_case(
        ("arguments", "stdin", "place"),
        [
            (["--provider", "openai"], "{", "input"),
            (["--provider", "openai"], b"\xff", "input"),
            (["--provider", "openai"], '[{"name": "a"}]', "messages[0].role"),
            (["--provider", "openai"], '[{"name": "a", "role": "user", "content": 3}]', "messages[0].content"),
            (["--provider", "openai"], "[3]", "messages[0]"),
            (["--provider", "openai"], "[]", "msgs"),
            (["--provider", "openai"], '{"agentkit": 99, "messages": []}', "agentkit"),
            (["--provider", "openai"], f'{{"messages": {MESSAGES}, "tools": 3}}', "tools"),
            (["--provider", "openai"], f'{{"messages": {MESSAGES}, "tools": [{{"name": ""}}]}}', "tools[0].name"),
            (["--provider", "openai"], f'{{"messages": {MESSAGES}, "tool_choice": 3}}', "tool_choice"),
            (["--provider", "openai"], f'{{"messages": {MESSAGES}, "response_format": "x"}}', "response_format"),
            (["--provider", "nobody"], MESSAGES, "provider"),
            ([], MESSAGES, "--provider"),
            (["--provider", "openai", "--max-tokens", "0"], MESSAGES, "budget.max_tokens"),
            (["--provider", "openai", "--media-root", "no/such/folder"], MESSAGES, "media_roots[0]"),
            (["--provider", "openai", "no-such-file.json"], "", "no-such-file.json"),
            (["--provider", "openai", "--nonsense"], MESSAGES, "--nonsense"),
            (["--provider", "openai", "--on-loss", "weep"], MESSAGES, "--on-loss"),
        ],
    )
    def test_bad_input_exits_with_2_and_a_line_with_the_place(
        self, arguments: list[str], stdin: str | bytes, place: str
    ) -> None:
        code, out, err = self.call("format", *arguments, stdin=stdin)
        assert (code, out) == (2, "")
        assert err.startswith("agentkit: ")
        assert place in err
        assert err.count("\n") == 1

    def test_a_conversation_too_large_for_the_budget_is_bad_input(self) -> None:
        code, _, err = self.call(
            "format", POISONED, "--keep-invalid", "--provider", "anthropic", "--max-tokens", "10"
        )
        assert code == 2
        assert "smallest legal request" in err

    def test_each_line_becomes_a_request_or_an_error(self) -> None:
        log = f"{MESSAGES}\n{{bad\n[]\n{MESSAGES}\n"
        code, out, err = self.call("format", "--provider", "ollama", "--lines", stdin=log)
        written = [json.loads(line) for line in out.splitlines()]
        assert (code, err) == (2, "")
        assert [("error" in line) for line in written] == [False, True, True, False]
        assert set(written[1]["error"]) == {"class", "place", "sentence"}
        assert written[2]["error"]["class"] == "EmptyConversationError"

    def test_losses_without_bad_lines_exit_with_1(self) -> None:
        song = {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="}}
        lossy = json.dumps([{"name": "Bob", "role": "user", "content": [song]}])
        code, out, _ = self.call("format", "--provider", "anthropic", "--on-loss", "raise", "--lines", stdin=lossy)
        assert code == 1
        assert json.loads(out)["error"]["place"] == "msgs[0].content[0]"

    def test_media_files_are_read_only_from_media_roots(self, tmp_path: Path) -> None:
        (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"0" * 30)
        source = {"type": "url", "url": (tmp_path / "a.png").as_uri()}
        asked = json.dumps([{"name": "Bob", "role": "user", "content": [{"type": "image", "source": source}]}])
        _, without, _ = self.call("format", "--provider", "openai", stdin=asked)
        assert "outside the media roots" in without
        _, within, _ = self.call("format", "--provider", "openai", "--media-root", str(tmp_path), stdin=asked)
        assert "data:image/png;base64,iVBORw0KGgo" in within


def test_without_the_extra_the_error_names_the_install_command() -> None:
    code = "import sys; sys.modules['typer'] = None; from agentkit.cli import main; main(['format'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'agentkit-middleware[cli]'" in done.stderr


@pytest.mark.slow
def test_a_closed_output_pipe_is_not_an_error() -> None:
    code = "from agentkit.cli import main; main()"
    command = f"{sys.executable} -c '{code}' format {LIBRARY} --all | head -c 10"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("lines", [(), ("--lines",)])
def test_an_output_pipe_that_closes_early_is_not_a_failure(
    lines: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages_file = tmp_path / "said.json"
    messages_file.write_text(MESSAGES)
    reading, writing = os.pipe()
    os.close(reading)
    err = io.StringIO()
    with io.FileIO(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, write_through=True))
        monkeypatch.setattr(sys, "stderr", err)
        assert run(["format", "--provider", "openai", *lines, str(messages_file)]) == 0
    assert err.getvalue() == ""
