"""Invalid blocks in the input of a command; help, version, and options of all commands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from typing import Any, Final

import pytest

from agentkit import InvalidBlock, LossError, Msg, load_messages, load_provider
from tests.cases import each_case
from tests.cli.test_cli import call
from tests.providers import MESSAGE_PROVIDERS

TEXT: Final[dict[str, Any]] = {"type": "text", "text": "hi"}
INVALID: Final[dict[str, Any]] = {"type": "text", "text": 3}
RESULT: Final[dict[str, Any]] = {
    "type": "tool_result",
    "id": "1",
    "name": "look",
    "output": [TEXT, {"type": "poem"}],
}
CALL: Final[dict[str, Any]] = {"type": "tool_use", "id": "1", "name": "look", "input": {}}
STORED: Final = json.dumps(
    [
        {"name": "Bob", "role": "user", "content": [TEXT, INVALID]},
        {"name": "Friday", "role": "assistant", "content": [CALL]},
        {"name": "system", "role": "system", "content": [RESULT]},
        {"name": "Bob", "role": "user", "content": "So?"},
    ]
)
PLACES: Final = ("messages[0].content[1]", "messages[2].content[0].output[1]")
NATIVE: Final = json.dumps([{"role": "user", "content": [TEXT, {"type": "text", "text": 3}]}])

COMMANDS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "format": (("format", "--provider", "openai"), STORED),
    "format --all": (("format", "--all"), STORED),
    "convert": (("convert", "--from", "agentkit", "--to", "anthropic"), STORED),
    "convert to the format of agentkit": (("convert", "--from", "agentkit", "--to", "agentkit"), STORED),
    "convert a native log": (("convert", "--from", "openai", "--to", "anthropic"), NATIVE),
    "compare": (("compare", "--model", "openai:m", "--replay", "no-such-file"), STORED),
}
WITH_LINES: Final = [name for name in COMMANDS if name != "compare"]


class TestCommand:
    @pytest.fixture(autouse=True)
    def _streams(self, capsysbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.streams = (capsysbinary, monkeypatch)

    def call(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        return call(*self.streams, *arguments, stdin=stdin)

    @each_case("name", [*COMMANDS])
    def test_an_invalid_block_is_bad_input_with_place_and_reason(self, name: str) -> None:
        arguments, text = COMMANDS[name]
        code, out, err = self.call(*arguments, stdin=text)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        blocks = [
            block for msg in load_messages(STORED) for block in msg.blocks if isinstance(block, InvalidBlock)
        ]
        if text is STORED:
            assert err.startswith(f"agentkit: {PLACES[0]}: invalid block: {blocks[0].reason}; {PLACES[1]}: ")
        else:
            assert re.match(r"agentkit: messages\[0\]\.content\[1\]: invalid block: \w", err)
        assert "--keep-invalid" in err

    @pytest.mark.parametrize("name", WITH_LINES)
    def test_a_line_with_an_invalid_block_is_bad_input(self, name: str) -> None:
        arguments, text = COMMANDS[name]
        good = re.sub(r', \{"type": "(poem|text", "text": 3)"?\}', "", text)
        code, out, err = self.call(*arguments, "--lines", stdin=f"{good}\n{text}\n{good}\n")
        written = [json.loads(line) for line in out.splitlines()]
        assert (code, err) == (2, "")
        assert ["error" in line for line in written] == [False, True, False]
        assert written[1]["error"]["place"] == PLACES[0]
        assert "invalid block: " in written[1]["error"]["sentence"]

    @pytest.mark.parametrize("lines", [(), ("--lines",)])
    @pytest.mark.parametrize("name", WITH_LINES)
    def test_keep_invalid_writes_the_request_and_reports_each_block(
        self, name: str, lines: tuple[str, ...]
    ) -> None:
        arguments, text = COMMANDS[name]
        code, out, err = self.call(*arguments, "--keep-invalid", *lines, stdin=text + "\n")
        assert code == 0
        assert "error" not in json.loads(out)
        reported = [line.split(": ", 3)[1:3] for line in err.splitlines()]
        places = PLACES if text is STORED else PLACES[:1]
        assert reported == [[place, "invalid block"] for place in places]

    def test_a_printed_ledger_replaces_the_reports(self) -> None:
        code, _, err = self.call("format", "--provider", "openai", "--keep-invalid", "--ledger", stdin=STORED)
        assert code == 0
        assert err.count("invalid block: ") == 2
        _, _, err = self.call("format", "--provider", "openai", "--keep-invalid", "--ledger", "json", stdin=STORED)
        lost = [block["reason"] for block in json.loads(err)["blocks"] if block["lost"]]
        assert [reason.partition(":")[0] for reason in lost] == ["invalid block"] * 2

    def test_compare_with_keep_invalid_calls_the_models(self) -> None:
        arguments, text = COMMANDS["compare"]
        code, _, err = self.call(*arguments, "--keep-invalid", stdin=text)
        assert code == 2  # the recording does not exist
        assert "no-such-file" in err

    # -- help, version, options ---------------------------------------------------------------------------------

    def test_without_a_command_the_help_is_printed(self) -> None:
        code, out, err = self.call()
        assert (code, out) == (2, "")
        _, helped, _ = self.call("--help")
        assert err.strip() == helped.strip()
        assert err.count("\n") > 5

    def test_help_exits_with_0(self) -> None:
        for arguments in (["--help"], ["format", "--help"], ["compare", "--help"]):
            code, out, err = self.call(*arguments)
            assert (code, err) == (0, "")
            assert out.startswith("Usage: agentkit ")

    def test_the_version_is_that_of_the_distribution(self) -> None:
        assert self.call("--version") == (0, f"agentkit {version('agentkit-middleware')}\n", "")

    def test_max_tokens_limits_the_prompt_in_every_command(self) -> None:
        asked = json.dumps([{"name": "Bob", "role": "user", "content": "hi " * 500}])
        for arguments in (
            ["format", "--provider", "openai"],
            ["convert", "--from", "agentkit", "--to", "openai"],
        ):
            code, out, err = self.call(*arguments, "--max-tokens", "50", stdin=asked)
            assert (code, out) == (2, "")
            assert "the budget has only 50" in err
        table = self.call("compare", "--model", "openai:m", "--max-tokens", "50", stdin=asked)
        assert table[0] == 1
        assert "BudgetError" in table[1]
        for name in ("format", "convert", "compare"):
            _, helped, _ = self.call(name, "--help")
            text = " ".join(helped.partition("--max-tokens")[2].split())
            assert text.startswith(
                "<int> Maximum number of prompt tokens (estimated). The oldest messages are dropped if necessary."
            )


def test_the_installed_command_prints_its_help() -> None:
    code = "from agentkit.cli import main; main([])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: agentkit ")


@each_case("provider", MESSAGE_PROVIDERS)
def test_the_ledger_and_the_error_contain_the_reason_of_an_invalid_block(provider: str) -> None:
    msgs = load_messages(STORED)
    invalid = [item for msg in msgs for item in _list_invalid_blocks(msg)]
    package = load_provider(provider)
    for formatter in (package.chat_formatter(), package.multi_agent_formatter()):
        losses = formatter.lower(msgs).ledger.losses
        assert [reason for _, reason in losses] == [f"invalid block: {block.reason}" for block in invalid]
    for formatter in (package.chat_formatter(on_loss="raise"), package.multi_agent_formatter(on_loss="raise")):
        with pytest.raises(LossError) as caught:
            formatter.lower(msgs)
        assert caught.value.reason == f"invalid block: {invalid[0].reason}"
        assert invalid[0].reason in str(caught.value)


def _list_invalid_blocks(msg: Msg) -> list[InvalidBlock]:
    items = [item for block in msg.blocks for item in (block.items if block.type == "tool_result" else (block,))]
    return [item for item in items if isinstance(item, InvalidBlock)]
