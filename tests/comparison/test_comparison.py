"""Comparisons through the real SDKs against a loopback server, recordings, and the compare command."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from agentkit import (
    BadRequestError,
    Budget,
    BudgetError,
    CharacterTokenCounter,
    ChatModel,
    FinishReason,
    MessageError,
    Msg,
    OptionError,
    Price,
    ProviderError,
    RateLimitError,
    Usage,
    compare,
)
from agentkit.comparison.recordings import fingerprint
from agentkit.testing import LoopbackError, LoopbackServer, Reply
from tests.cli.test_cli import call

MSGS = [Msg("system", "Be brief.", "system"), Msg("Bob", "Where is the library?", "user")]
NAMES = ("openai", "openai-responses", "anthropic", "gemini", "ollama", "deepseek", "vllm", "dashscope-compatible")

pytestmark = pytest.mark.anyio


def model(server: LoopbackServer, provider: str, **options: Any) -> ChatModel:
    address = "host" if provider == "ollama" else "base_url"
    client_options: dict[str, Any] = {address: server.url(provider)}
    if provider == "gemini":
        client_options = {"http_options": {"base_url": server.url(provider), "api_version": "v1beta"}}
    if provider != "ollama":
        client_options["api_key"] = "sk-loopback"
    return ChatModel(provider, "some-model", client_options=client_options, **options)


async def test_each_result_has_request_reply_tokens_times_and_price() -> None:
    reply = Reply(Msg("x", "Round the corner.", "assistant"), usage=Usage(1_000, 100))
    with LoopbackServer(lambda _: reply) as server:
        models = {name: model(server, name, max_tokens=100) for name in NAMES}
        prices = {name: Price(2.0, 10.0) for name in NAMES[1:]}
        results = await compare(MSGS, models, prices=prices)
        for model_ in models.values():
            await model_.aclose()
    assert [result.label for result in results] == [*NAMES]
    for result in results:
        assert result.error is None, result
        assert result.reply is not None
        assert result.reply.text == "Round the corner."
        assert result.reply.finish_reason is FinishReason.STOP
        assert result.plan is not None
        assert result.plan.ledger.losses == []
        assert result.tokens is not None
        assert 5 < result.tokens < 60
        assert result.first_token is not None
        assert result.total is not None
        assert 0 < result.first_token <= result.total
        assert not result.replayed
        json.dumps(result.to_dict(), allow_nan=False)
    assert results[0].price is None
    assert results[2].price == pytest.approx(0.003)


async def test_a_failed_call_does_not_affect_other_models() -> None:
    with LoopbackServer([LoopbackError(429, "slow down", retry_after=3)]) as server:
        limited = model(server, "openai", max_tokens=5)
        limited._client.options["max_retries"] = 0  # pyright: ignore[reportPrivateUsage]
        small = ChatModel("anthropic:some-model", budget=Budget(2))
        with LoopbackServer(["Yes."]) as other:
            async with limited, model(other, "openai-responses") as answering:
                results = await compare(MSGS, {"a": limited, "b": small, "c": answering})
    a, b, c = results
    assert isinstance(a.error, RateLimitError)
    assert a.plan is not None
    assert isinstance(b.error, BudgetError)
    assert (b.plan, b.tokens) == (None, None)
    assert c.reply is not None
    assert c.reply.text == "Yes."


async def test_a_recording_is_replayed_without_a_server(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with LoopbackServer(["First.", LoopbackError(400, "no such part", code="bad")]) as server:
        models = {"good": model(server, "openai"), "bad": model(server, "openai", parameters={"top_p": 0.5})}
        recorded = await compare(MSGS, models, record=path, max_concurrency=1)
    good, bad = await compare(MSGS, models, replay=path)
    assert [json.loads(line)["fingerprint"] for line in path.read_text().splitlines()] == [
        result.fingerprint for result in recorded
    ]
    assert good.replayed
    assert good.reply == recorded[0].reply
    assert good.total == recorded[0].total
    assert isinstance(bad.error, BadRequestError)
    assert str(bad.error) == str(recorded[1].error)
    for item in models.values():
        await item.aclose()


async def test_a_call_without_a_record_is_an_error_or_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with LoopbackServer(["One.", "Two."]) as server:
        first = model(server, "openai")
        await compare(MSGS, [first], record=path)
        other = [Msg("Bob", "And the museum?", "user")]
        (missing,) = await compare(other, [first], replay=path)
        assert isinstance(missing.error, OptionError)
        assert "no call" in str(missing.error)
        (added,) = await compare(other, [first], replay=path, record=path)
        assert not added.replayed
        (again,) = await compare(other, [first], replay=path, record=path)
        assert again.replayed
        assert again.reply == added.reply
        assert len(server.requests) == 2
        await first.aclose()
    assert len(path.read_text().splitlines()) == 2


async def test_the_error_for_an_unreadable_recording_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    model = ChatModel("openai:some-model")
    for text, place in (
        ("{", ":1"),
        ("\n\n[]", ":3"),
        ('{"fingerprint": "x"}', ":1"),
        ('{"fingerprint": "x", "reply": {"name": 3}}', ":1"),
        ('{"fingerprint": "x", "reply": null, "error": 3}', ":1"),
    ):
        path.write_text(text)
        with pytest.raises(MessageError) as raised:
            await compare(MSGS, [model], replay=path)
        assert place in raised.value.place
    with pytest.raises(OptionError, match="there is no file"):
        await compare(MSGS, [model], replay=tmp_path / "none.jsonl")


async def test_invalid_models_are_refused() -> None:
    model = ChatModel("openai:some-model")
    for wrong in ([], [model, model], "openai:x", 3, [3], {"a": 3}):
        with pytest.raises(OptionError, match="models"):
            await compare(MSGS, wrong)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(ProviderError):
        await compare(MSGS, ["nimbus:one"])
    with pytest.raises(OptionError, match="max_concurrency"):
        await compare(MSGS, [model], max_concurrency=0)


@pytest.mark.parametrize("has_known_error", [False, True])
async def test_a_reply_that_cannot_be_recorded_is_returned(tmp_path: Path, has_known_error: bool) -> None:
    file = tmp_path / "calls.jsonl"
    with LoopbackServer("Yes.") as server:
        async with model(server, "openai") as item:
            if has_known_error:
                await compare(MSGS, [item], record=file)
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size if has_known_error else 0, hard))
            try:
                (result,) = await compare(MSGS, [item], record=file)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
                signal.signal(signal.SIGXFSZ, before)
    assert result.reply is not None
    assert result.reply.text == "Yes."
    assert isinstance(result.error, OptionError)
    assert "cannot write" in str(result.error)


async def test_options_are_refused_before_anything_is_sent() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"prices": {"any": 3}}, r"prices\['any'\]"),
        ({"prices": [Price(1, 2)]}, "prices"),
        ({"record": 5}, "record"),
        ({"replay": 5}, "replay"),
    ]
    with LoopbackServer("Yes.") as server:
        async with model(server, "openai") as item:
            for options, place in wrong:
                with pytest.raises(OptionError, match=place):
                    await compare(MSGS, [item], **options)
            bogus: dict[str, Any] = {"bogus": 1}
            with pytest.raises(OptionError, match="bogus"):
                await compare(MSGS, [item], **bogus)
    assert server.requests == []


async def test_an_unexpected_error_does_not_affect_other_models() -> None:
    class Broken(CharacterTokenCounter):
        async def count(self, request: Any, provider: Any = None) -> Any:
            raise ZeroDivisionError("no")

    with LoopbackServer("Yes.") as server:
        bad = ChatModel("openai:m", client_options={"nonsense": 1})
        odd = model(server, "openai", budget=Budget(1_000, Broken()))
        async with model(server, "openai") as good:
            results = await compare(MSGS, {"bad": bad, "odd": odd, "good": good})
    assert isinstance(results[0].error, OptionError)
    assert "ZeroDivisionError" in str(results[1].error)
    assert isinstance(results[1].error.__cause__ if results[1].error else None, ZeroDivisionError)
    assert results[2].error is None


async def test_a_recording_that_cannot_be_written_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with LoopbackServer("Yes.") as server:
        async with model(server, "openai") as item:
            for path in (tmp_path, tmp_path / "no" / "file.jsonl"):
                with pytest.raises(OptionError, match="record"):
                    await compare(MSGS, [item], record=path)
    assert server.requests == []


async def test_equal_calls_are_replayed_by_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with LoopbackServer("Of one.") as first, LoopbackServer("Of the other.") as second:
        async with model(first, "vllm") as first_model, model(second, "vllm") as second_model:
            models = {"one": first_model, "other": second_model}
            await compare(MSGS, models, record=path)
            results = await compare(MSGS, models, replay=path)
            renamed = await compare(MSGS, {"third": first_model}, replay=path)
    assert [result.reply and result.reply.text for result in results] == ["Of one.", "Of the other."]
    assert renamed[0].reply


async def test_a_call_is_appended_after_an_incomplete_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with LoopbackServer(["One.", "Two."]) as server:
        async with model(server, "openai") as item:
            await compare(MSGS, {"one": item}, record=path)
            path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().rstrip(b"\n"))
            await compare(MSGS, {"two": item}, record=path)
            results = await compare(MSGS, {"one": item, "two": item}, replay=path)
    assert [result.reply and result.reply.text for result in results] == ["One.", "Two."]


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    key = fingerprint("openai", "m", {}, {"effort": object()})
    assert key == fingerprint("openai", "m", {}, {"effort": object()})
    assert fingerprint("openai", "m", {}, {"seed": None}) == fingerprint("openai", "m", {}, {})


def test_a_fingerprint_depends_only_on_the_call() -> None:
    key = fingerprint("openai", "m", {"messages": [], "tools": []}, {"a": 1})
    assert key == fingerprint("openai", "m", {"tools": [], "messages": []}, {"a": 1})
    assert key != fingerprint("openai", "m", {"messages": [], "tools": []}, {"a": 2})
    assert key != fingerprint("openai", "n", {"messages": [], "tools": []}, {"a": 1})


@pytest.mark.parametrize("amount", ["1", None, -1, float("nan"), float("inf"), True])
def test_an_invalid_price_is_refused(amount: Any) -> None:
    for name in ("input", "output", "cache_read", "cache_write"):
        if amount is not None or name in ("input", "output"):
            with pytest.raises(OptionError, match=rf"^price\.{name}: expected a finite number of at least 0"):
                Price(**cast("dict[str, Any]", {"input": 1, "output": 2, name: amount}))


def test_cached_tokens_have_separate_prices() -> None:
    usage = Usage(1_000_000, 100_000, cache_read_tokens=500_000, cache_write_tokens=100_000)
    assert Price(2.0, 10.0).cost(usage) == pytest.approx(3.0)
    assert Price(2.0, 10.0, cache_read=0.2, cache_write=2.5).cost(usage) == pytest.approx(0.8 + 0.1 + 0.25 + 1.0)


# -- the command -----------------------------------------------------------------------------------------------

CONVERSATION = json.dumps([{"name": "Bob", "role": "user", "content": "Where is the library?"}])


def command_environment(server: LoopbackServer | None) -> dict[str, str]:
    """Returns the environment variables that the SDKs of the command read."""
    environment = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x"}
    if server is not None:
        environment |= {"OPENAI_BASE_URL": server.url("openai"), "ANTHROPIC_BASE_URL": server.url("anthropic")}
    return environment


@dataclass
class Command:
    """Runs the command in this process. Returns exit code, standard output and standard error."""

    capsys: pytest.CaptureFixture[bytes]
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str, server: LoopbackServer | None = None) -> tuple[int, str, str]:
        for name, value in command_environment(server).items():
            self.monkeypatch.setenv(name, value)
        return call(self.capsys, self.monkeypatch, "compare", *arguments, stdin=CONVERSATION)


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(capsysbinary, monkeypatch)


def test_the_command_prints_a_table_and_json_and_replays_a_recording(command: Command, tmp_path: Path) -> None:
    runs, out = tmp_path / "runs.jsonl", tmp_path / "out.json"
    models = ("--model", "openai:one", "--model", "anthropic:two", "--price", "one=2/10", "--json", str(out))
    reply = Reply(Msg("x", "Round the corner.", "assistant"), usage=Usage(1_000, 100))
    with LoopbackServer(reply) as server:
        code, table, err = command(*models, "--record", str(runs), server=server)
    assert (code, err) == (0, "")
    assert "openai:one" in table
    assert "Round the corner." in table
    results = json.loads(out.read_text())
    assert [result["label"] for result in results] == ["openai:one", "anthropic:two"]
    assert [result["price"] for result in results] == [pytest.approx(0.003), None]
    assert results[0]["reply"]["content"] == [{"type": "text", "text": "Round the corner."}]
    assert results[0]["usage"]["input_tokens"] == 1_000
    assert results[1]["request"]["messages"]
    assert command(*models, "--replay", str(runs)) == (0, table, "")
    replayed = json.loads(out.read_text())
    assert all(result.pop("replayed") for result in replayed)
    assert replayed == [{key: item for key, item in result.items() if key != "replayed"} for result in results]


@pytest.mark.slow
def test_the_installed_command_prints_only_json_to_stdout_and_exits_with_1_after_a_failed_call() -> None:
    arguments = ("compare", "--model", "openai:one", "--json", "-")
    with LoopbackServer(LoopbackError(400, "no such model", code="model_not_found")) as server:
        done = subprocess.run(
            [Path(sys.executable).parent / "agentkit", *arguments],
            input=CONVERSATION,
            env={**os.environ, **command_environment(server)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    (result,) = json.loads(done.stdout)
    assert result["error"]["class"] == "BadRequestError"
    assert "no such model" in result["error"]["sentence"]
    assert "openai:one" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nimbus:x"], "nimbus"),
        (["--model", "openai"], "model"),
        (["--model", "openai:x", "--price", "x=cheap"], "--price"),
        (["--model", "openai:x", "--replay", "no/such/file"], "no/such/file"),
        (["--model", "openai:x", "--max-tokens", "-1"], "max_tokens"),
        (["--model", "openai:x", "--model", "openai:x"], "twice"),
        (["--model", "openai:x", "--price", "y=1/2"], "--price"),
        (["--model", "openai:x", "--record", "no/such/file"], "--record"),
        (["--model", "openai:x", "--json", "no/such/file"], "--json"),
        ([], "--model"),
    ],
)
def test_the_command_reports_bad_options_on_a_single_line(
    arguments: list[str], message: str, command: Command
) -> None:
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_help_of_the_command_describes_its_options(command: Command) -> None:
    code, out, err = command("--help")
    assert (code, err) == (0, "")
    assert "/CACHE_WRITE" in out


def test_the_command_removes_control_characters_of_replies(command: Command) -> None:
    with LoopbackServer("\x1b[31mred \x1b]0;title\x07\x9b2J\u202e") as server:
        _, out, _ = command("--model", "openai:one", server=server)
    assert "red" in out
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)
