"""The commands `read` and `convert`: input, output and exit codes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from agentkit import Msg, load_messages, load_native
from tests.cases import each_case
from tests.cli.test_cli import call
from tests.logs.native_logs import LOGS, TEXTS
from tests.providers import PROVIDERS, chat, problems

OLLAMA: Final[dict[str, Any]] = {
    "model": "m",
    "message": {
        "role": "assistant",
        "content": "Hello 🙂",
        "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
    },
    "done": True,
    "done_reason": "stop",
    "prompt_eval_count": 3,
    "eval_count": 4,
}
LINES: Final[list[dict[str, Any]]] = [
    {"model": "m", "message": {"role": "assistant", "content": "Hel"}, "done": False},
    {"model": "m", "message": {"role": "assistant", "content": "lo 🙂"}, "done": False},
    {**OLLAMA, "message": {**OLLAMA["message"], "content": ""}},
]
NDJSON: Final = "".join(json.dumps(line) + "\n" for line in LINES)

_CHAT: Final = {
    "id": "x",
    "object": "chat.completion",
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}
REPLIES: Final[dict[str, Any]] = {
    "openai": _CHAT,
    "deepseek": _CHAT,
    "vllm": _CHAT,
    "dashscope-compatible": _CHAT,
    "openai-responses": {
        "id": "r",
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": [
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
            }
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
    },
    "anthropic": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 4},
    },
    "gemini": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
    },
    "ollama": {**OLLAMA, "message": {"role": "assistant", "content": "Hello"}},
    "dashscope": {
        "output": {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Hello"}}]},
        "usage": {"input_tokens": 3, "output_tokens": 4},
    },
}

_DEEP: Final = "[" * 100_000
HOSTILE: Final[dict[str, bytes]] = {
    "nothing": b"",
    "blank": b" \n\n",
    "binary": bytes(range(256)),
    "half a character": b'"\xc3',
    "too deep": _DEEP.encode(),
    "deep objects": b'{"a":' * 100_000,
    "a huge number": b"1" * 10_000,
    "a number": b"3",
    "not JSON": b"hello",
    "a truncated file": b'{"message": {"content": "Hel',
    "null": b"null",
}

Streams = tuple[Any, pytest.MonkeyPatch]


@pytest.fixture
def streams(capsysbinary: Any, monkeypatch: pytest.MonkeyPatch) -> Streams:
    return (capsysbinary, monkeypatch)


class TestRead:
    @each_case("provider", PROVIDERS)
    def test_the_message_of_a_response_is_written(self, streams: Streams, provider: str) -> None:
        code, out, err = call(*streams, "read", "--provider", provider, stdin=json.dumps(REPLIES[provider]))
        stored = json.loads(out)
        assert (code, err) == (0, "")
        assert Msg.from_dict(stored["message"]).text == "Hello"
        assert (stored["finish_reason"], stored["usage"]["input_tokens"], stored["usage"]["output_tokens"]) == (
            "stop",
            3,
            4,
        )
        native = stored["message"]["metadata"]["reply"]["native_finish_reason"]
        assert native in ("stop", "STOP", "end_turn", "completed")
        assert [*stored] == ["message", "usage", "finish_reason"]

    @each_case(
        "text",
        [
            json.dumps(LINES),
            NDJSON,
            "\ufeff" + NDJSON,
            "".join(f"data: {json.dumps(line)}\n\n" for line in LINES),
            "".join(f": ping\nevent: x\ndata:{json.dumps(line)}\r\n\r\n" for line in LINES),
            json.dumps(NDJSON),
            json.dumps([NDJSON[:40], NDJSON[40:]]),
        ],
    )
    def test_a_recorded_stream_is_recognized(self, streams: Streams, text: str) -> None:
        code, complete, _ = call(*streams, "read", "--provider", "ollama", stdin=json.dumps(OLLAMA))
        assert (code, json.loads(complete)["finish_reason"]) == (0, "tool_use")
        assert call(*streams, "read", "--provider", "ollama", stdin=text) == (0, complete, "")

    def test_a_reply_is_read_from_a_file_or_standard_input(self, streams: Streams, tmp_path: Path) -> None:
        (tmp_path / "reply.json").write_text(json.dumps(OLLAMA))
        from_file = call(*streams, "read", str(tmp_path / "reply.json"), "--provider", "ollama")
        assert from_file == call(*streams, "read", "-", "--provider", "ollama", stdin=json.dumps(OLLAMA))

    def test_a_truncated_stream_becomes_an_interrupted_reply(self, streams: Streams) -> None:
        code, out, _ = call(*streams, "read", "--provider", "ollama", stdin=json.dumps(LINES[:1]))
        stored = json.loads(out)
        assert (code, stored["finish_reason"], stored["usage"]) == (0, "interrupted", None)

    def test_a_bad_line_does_not_affect_other_replies(self, streams: Streams) -> None:
        rows: list[Any] = [OLLAMA, LINES, NDJSON, {"error": "model not found"}, 3, [3]]
        text = "\n\n".join(map(json.dumps, rows)) + "\n{bad\n" + json.dumps(OLLAMA)
        code, out, err = call(*streams, "read", "--provider", "ollama", "--lines", stdin=text)
        written = [json.loads(line) for line in out.splitlines()]
        assert (code, err) == (2, "")
        assert written[0] == written[1] == written[2] == written[7]
        errors = [row["error"] for row in written[3:7]]
        assert [set(error) for error in errors] == [{"class", "place", "sentence"}] * 4
        assert [error["place"] for error in errors] == ["reply", "input", "events[0]", "input"]
        assert "model not found" in errors[0]["sentence"]

    @each_case("text", HOSTILE)
    @each_case("provider", PROVIDERS)
    def test_the_error_for_any_other_input_is_one_line(self, streams: Streams, provider: str, text: bytes) -> None:
        code, out, err = call(*streams, "read", "--provider", provider, stdin=text)
        assert (code, out) == (2, "")
        assert err.startswith("agentkit: ")
        assert err.count("\n") == 1
        assert len(err) < 1_000

    @each_case("provider", PROVIDERS)
    @pytest.mark.parametrize(
        "odd",
        [
            *('"\\ud800"', "1" * 5_000, '{"a":' * 500 + "1" + "}" * 500),
            *(pytest.param(odd, marks=pytest.mark.slow) for odd in ("NaN", "1e999", '"\\u0000"', "[[[]]]", "-1")),
        ],
    )
    def test_odd_values_at_any_position_cause_no_traceback(
        self, streams: Streams, provider: str, odd: str
    ) -> None:
        log = json.dumps(REPLIES[provider])
        for text in (log.replace('"Hello"', odd), log.replace('"m"', odd), log.replace(" 4", f" {odd}")):
            code, out, err = call(*streams, "read", "--provider", provider, stdin=text)
            assert code in (0, 2)
            assert bool(out) == (code == 0)
            assert err.count("\n") == (code != 0)

    @pytest.mark.parametrize(
        ("arguments", "place"),
        [
            (["--provider", "nobody"], "nobody"),
            ([], "--provider"),
            (["--provider", "ollama", "no-such-file.json"], "no-such-file.json"),
            (["--provider", "ollama", "no-such-file.json", "--lines"], "no-such-file.json"),
        ],
    )
    def test_the_error_for_bad_options_is_one_line(
        self, streams: Streams, arguments: list[str], place: str
    ) -> None:
        code, out, err = call(*streams, "read", *arguments)
        assert (code, out) == (2, "")
        assert place in err
        assert err.count("\n") == 1


class TestConvert:
    @each_case("target", PROVIDERS)
    @each_case("source", [*LOGS])
    def test_the_request_of_another_provider_has_the_tools(
        self, streams: Streams, source: str, target: str
    ) -> None:
        code, out, err = call(
            *streams, "convert", "--from", source, "--to", target, stdin=json.dumps(LOGS[source])
        )
        request = json.loads(out)
        assert (code, err) == (0, "")
        assert problems(target, request) == []
        assert ("look" in json.dumps(request.get("tools") or request.get("config"))) or source not in PROVIDERS

    def test_stored_messages_round_trip(self, streams: Streams) -> None:
        for source, log in LOGS.items():
            code, out, _ = call(*streams, "convert", "--from", source, "--to", "agentkit", stdin=json.dumps(log))
            stored = json.loads(out)
            assert (code, stored["agentkit"]) == (0, 1)
            assert load_messages(stored) == load_native(source, log)
            again = call(*streams, "convert", "--from", "agentkit", "--to", "openai", stdin=out)
            assert again == call(*streams, "convert", "--from", source, "--to", "openai", stdin=json.dumps(log))
            assert again == call(*streams, "format", "--provider", "openai", stdin=out)

    def test_tool_choice_and_schema_are_converted(self, streams: Streams) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        response_format = {
            "type": "json_schema",
            "json_schema": {"name": "out", "description": "What.", "schema": schema},
        }
        choice = {"type": "function", "function": {"name": "look"}}
        log = {**LOGS["openai"], "tool_choice": choice, "response_format": response_format}
        _, out, _ = call(*streams, "convert", "--from", "openai", "--to", "agentkit", stdin=json.dumps(log))
        stored = json.loads(out)
        assert stored["tool_choice"] == {"name": "look"}
        assert stored["response_format"] == {"name": "out", "description": "What.", "schema": schema}
        _, out, _ = call(
            *streams, "convert", "--from", "openai", "--to", "openai-responses", stdin=json.dumps(log)
        )
        request = json.loads(out)
        assert (request["tool_choice"], request["text"]["format"]["name"]) == (
            {"type": "function", "name": "look"},
            "out",
        )

    def test_options_for_many_agents_and_models_change_the_request(self, streams: Streams) -> None:
        log = json.dumps(LOGS["agentscope"])
        _, framed, _ = call(
            *streams, "convert", "--from", "agentscope", "--to", "openai", "--multi-agent", stdin=log
        )
        assert "<history>" in framed
        _, viewed, _ = call(
            *streams, "convert", "--from", "agentscope", "--to", "openai", "--viewer", "Friday", stdin=log
        )
        assert "You are Friday." in viewed
        _, joined, _ = call(
            *streams, "convert", "--from", "agentscope", "--to", "dashscope", "--model", "qwen-plus", stdin=log
        )
        assert json.loads(joined)["messages"][0]["content"] == TEXTS[0]

    def test_the_ledger_lists_losses(self, streams: Streams) -> None:
        log = json.dumps(LOGS["anthropic"])
        _, _, err = call(
            *streams, "convert", "--from", "anthropic", "--to", "openai", "--ledger", "json", stdin=log
        )
        fates = {entry["place"]: entry["disposition"] for entry in json.loads(err)["blocks"]}
        assert fates["msgs[2].content[0]"] == "dropped"
        _, _, err = call(*streams, "convert", "--from", "anthropic", "--to", "openai", "--ledger", stdin=log)
        assert "does not accept thinking in this message" in err

    def test_a_loss_with_raise_exits_with_1(self, streams: Streams) -> None:
        song = {"messages": [{"role": "user", "content": [{"audio": "https://example.com/a.mp3"}]}]}
        arguments = ("convert", "--from", "dashscope", "--to", "anthropic", "--on-loss", "raise")
        code, out, err = call(*streams, *arguments, stdin=json.dumps(song))
        assert (code, out, err.count("\n")) == (1, "", 1)

    def test_tools_of_the_provider_are_reported(self, streams: Streams) -> None:
        log = {**LOGS["anthropic"], "tools": [{"type": "web_search_20250305", "name": "web_search"}]}
        code, _, err = call(*streams, "convert", "--from", "anthropic", "--to", "openai", stdin=json.dumps(log))
        assert (code, err) == (
            0,
            "agentkit: tools[0]: tool 'web_search_20250305' omitted: only anthropic runs this tool\n",
        )

    def test_each_line_becomes_a_request_or_an_error(self, streams: Streams) -> None:
        good = json.dumps(LOGS["ollama"])
        text = f"{good}\n\n{{bad\n3\n[]\n{good}"
        code, out, err = call(*streams, "convert", "--from", "ollama", "--to", "openai", "--lines", stdin=text)
        written = [json.loads(line) for line in out.splitlines()]
        assert (code, err) == (2, "")
        assert written[0] == written[4]
        assert [row["error"]["class"] for row in written[1:4]] == [
            "MessageError",
            "MessageError",
            "EmptyConversationError",
        ]

    @each_case("text", HOSTILE)
    @each_case("source", [*LOGS, "agentkit"])
    def test_the_error_for_any_other_log_is_one_line(self, streams: Streams, source: str, text: bytes) -> None:
        code, out, err = call(*streams, "convert", "--from", source, "--to", "openai", stdin=text)
        assert (code, out) == (2, "")
        assert err.startswith("agentkit: ")
        assert err.count("\n") == 1

    @each_case("source", [*LOGS])
    @pytest.mark.parametrize(
        "odd",
        [
            *('"\\ud800"', "1" * 4_000, '{"a":' * 400 + "1" + "}" * 400),
            *(pytest.param(odd, marks=pytest.mark.slow) for odd in ("NaN", "1e999", '"\\u0000"', "[[[]]]", "-1")),
        ],
    )
    def test_odd_values_at_any_position_cause_no_traceback(self, streams: Streams, source: str, odd: str) -> None:
        log = json.dumps(LOGS[source])
        for word in (TEXTS[2], TEXTS[3], "look", "here", "call_1", "user"):
            text = log.replace(json.dumps(word), odd)
            code, out, err = call(*streams, "convert", "--from", source, "--to", "anthropic", stdin=text)
            assert code in (0, 2)
            assert bool(out) == (code == 0)
            assert "Traceback" not in err

    @pytest.mark.parametrize(
        ("arguments", "place"),
        [
            (["--from", "nobody", "--to", "openai"], "nobody"),
            (["--from", "openai", "--to", "nobody"], "nobody"),
            (["--to", "openai"], "--from"),
            (["--from", "openai"], "--to"),
            (["--from", "openai", "--to", "openai", "no-such-file.json"], "no-such-file.json"),
        ],
    )
    def test_the_error_for_bad_options_is_one_line(
        self, streams: Streams, arguments: list[str], place: str
    ) -> None:
        code, out, err = call(*streams, "convert", *arguments, stdin="[]")
        assert (code, out) == (2, "")
        assert place in err
        assert err.count("\n") == 1


@pytest.mark.slow
def test_the_installed_command_converts_standard_input() -> None:
    log = LOGS["openai"]
    code = "from agentkit.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "convert", "-", "--from", "openai", "--to", "anthropic"],
        input=json.dumps(log),
        capture_output=True,
        text=True,
        check=True,
    )
    plan = chat("anthropic").lower(load_native("openai", log), tools=log["tools"], tool_choice="auto")
    assert json.loads(done.stdout) == plan.request


@each_case("text", ['"garbage"', '""', "[]", json.dumps(NDJSON), json.dumps(LINES)])
def test_a_stream_without_a_valid_event_is_an_error(streams: Streams, text: str) -> None:
    code, out, problem = call(*streams, "read", "--provider", "openai", stdin=text)
    assert (code, out) == (2, "")
    assert "the input has no event of openai" in problem


def test_json_text_loads_for_every_format() -> None:
    for name, log in LOGS.items():
        assert load_native(name, json.dumps(log)) == load_native(name, log), name
