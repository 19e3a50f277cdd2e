"""One conversation to many models: through the real SDKs against a loopback server, and again from the record."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
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
from agentkit.cli import run
from agentkit.comparison.recordings import fingerprint
from agentkit.testing import LoopbackError, LoopbackServer, Reply

MSGS = [Msg("system", "Be brief.", "system"), Msg("Bob", "Where is the library?", "user")]
NAMES = ("openai", "openai-responses", "anthropic", "gemini", "ollama", "deepseek", "vllm", "dashscope-compatible")

pytestmark = pytest.mark.anyio


def model(server: LoopbackServer, provider: str, **options: Any) -> ChatModel:
    where = "host" if provider == "ollama" else "base_url"
    given: dict[str, Any] = {where: server.url(provider)}
    if provider == "gemini":
        given = {"http_options": {"base_url": server.url(provider), "api_version": "v1beta"}}
    if provider != "ollama":
        given["api_key"] = "sk-loopback"
    return ChatModel(provider, "some-model", client_options=given, **options)


async def test_each_model_answers_with_its_request_its_tokens_its_times_and_its_price() -> None:
    said = Reply(Msg("x", "Round the corner.", "assistant"), usage=Usage(1_000, 100))
    with LoopbackServer(lambda _: said) as server:
        models = {name: model(server, name, max_tokens=100) for name in NAMES}
        prices = {name: Price(2.0, 10.0) for name in NAMES[1:]}
        trials = await compare(MSGS, models, prices=prices)
        for one in models.values():
            await one.aclose()
    assert [trial.label for trial in trials] == [*NAMES]
    for trial in trials:
        assert trial.error is None, trial
        assert trial.reply is not None
        assert trial.reply.text == "Round the corner."
        assert trial.reply.finish_reason is FinishReason.STOP
        assert trial.plan is not None
        assert trial.plan.ledger.losses == []
        assert trial.tokens is not None
        assert 5 < trial.tokens < 60
        assert trial.first_token is not None
        assert trial.total is not None
        assert 0 < trial.first_token <= trial.total
        assert not trial.replayed
        json.dumps(trial.to_dict(), allow_nan=False)
    assert trials[0].price is None
    assert trials[2].price == pytest.approx(0.003)


async def test_one_that_fails_harms_no_other() -> None:
    with LoopbackServer([LoopbackError(429, "slow down", retry_after=3)]) as server:
        limited = model(server, "openai", max_tokens=5)
        limited._client_options["max_retries"] = 0  # pyright: ignore[reportPrivateUsage]
        small = ChatModel("anthropic:some-model", budget=Budget(2))
        with LoopbackServer(["Yes."]) as other:
            async with limited, model(other, "openai-responses") as answering:
                trials = await compare(MSGS, {"a": limited, "b": small, "c": answering})
    a, b, c = trials
    assert isinstance(a.error, RateLimitError)
    assert a.plan is not None
    assert isinstance(b.error, BudgetError)
    assert (b.plan, b.tokens) == (None, None)
    assert c.reply is not None
    assert c.reply.text == "Yes."


async def test_what_is_recorded_is_replayed_without_a_server(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with LoopbackServer(["First.", LoopbackError(400, "no such part", code="bad")]) as server:
        models = {"good": model(server, "openai"), "bad": model(server, "openai", parameters={"top_p": 0.5})}
        recorded = await compare(MSGS, models, record=path, max_concurrency=1)
    good, bad = await compare(MSGS, models, replay=path)
    assert [json.loads(line)["fingerprint"] for line in path.read_text().splitlines()] == [
        trial.fingerprint for trial in recorded
    ]
    assert good.replayed
    assert good.reply == recorded[0].reply
    assert good.total == recorded[0].total
    assert isinstance(bad.error, BadRequestError)
    assert str(bad.error) == str(recorded[1].error)
    for one in models.values():
        await one.aclose()


async def test_a_call_that_is_not_on_record_is_an_error_of_its_trial_or_is_recorded_too(tmp_path: Path) -> None:
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


async def test_a_recording_that_cannot_be_read_is_refused_by_its_line(tmp_path: Path) -> None:
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
    with pytest.raises(OptionError, match="not there"):
        await compare(MSGS, [model], replay=tmp_path / "none.jsonl")


async def test_models_are_refused_at_the_door() -> None:
    model = ChatModel("openai:some-model")
    for wrong in ([], [model, model], "openai:x", 3, [3], {"a": 3}):
        with pytest.raises(OptionError, match="models"):
            await compare(MSGS, wrong)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(ProviderError):
        await compare(MSGS, ["nimbus:one"])
    with pytest.raises(OptionError, match="max_concurrency"):
        await compare(MSGS, [model], max_concurrency=0)


@pytest.mark.parametrize("known", [False, True])
async def test_a_reply_that_cannot_be_put_on_record_is_kept(tmp_path: Path, known: bool) -> None:
    file = tmp_path / "calls.jsonl"
    with LoopbackServer("Yes.") as server:
        async with model(server, "openai") as one:
            if known:
                await compare(MSGS, [one], record=file)
            soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size if known else 0, hard))
            try:
                (trial,) = await compare(MSGS, [one], record=file)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
                signal.signal(signal.SIGXFSZ, before)
    assert trial.reply is not None
    assert trial.reply.text == "Yes."
    assert isinstance(trial.error, OptionError)
    assert "cannot be written" in str(trial.error)


async def test_options_are_refused_before_anything_is_sent() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"prices": {"any": 3}}, r"prices\['any'\]"),
        ({"prices": [Price(1, 2)]}, "prices"),
        ({"record": 5}, "record"),
        ({"replay": 5}, "replay"),
    ]
    with LoopbackServer("Yes.") as server:
        async with model(server, "openai") as one:
            for options, told in wrong:
                with pytest.raises(OptionError, match=told):
                    await compare(MSGS, [one], **options)
            bogus: dict[str, Any] = {"bogus": 1}
            with pytest.raises(OptionError, match="bogus"):
                await compare(MSGS, [one], **bogus)
    assert server.requests == []


async def test_what_one_brings_down_harms_no_other_either() -> None:
    class Broken(CharacterTokenCounter):
        async def count(self, request: Any, provider: Any = None) -> Any:
            raise ZeroDivisionError("no")

    with LoopbackServer("Yes.") as server:
        bad = ChatModel("openai:m", client_options={"nonsense": 1})
        odd = model(server, "openai", budget=Budget(1_000, Broken()))
        async with model(server, "openai") as good:
            trials = await compare(MSGS, {"bad": bad, "odd": odd, "good": good})
    assert isinstance(trials[0].error, OptionError)
    assert "ZeroDivisionError" in str(trials[1].error)
    assert isinstance(trials[1].error.__cause__ if trials[1].error else None, ZeroDivisionError)
    assert trials[2].error is None


async def test_a_record_that_cannot_be_written_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with LoopbackServer("Yes.") as server:
        async with model(server, "openai") as one:
            for path in (tmp_path, tmp_path / "no" / "file.jsonl"):
                with pytest.raises(OptionError, match="record"):
                    await compare(MSGS, [one], record=path)
    assert server.requests == []


async def test_equal_calls_are_told_apart_by_their_labels(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with LoopbackServer("Of one.") as first, LoopbackServer("Of the other.") as second:
        async with model(first, "vllm") as one, model(second, "vllm") as other:
            models = {"one": one, "other": other}
            await compare(MSGS, models, record=path)
            trials = await compare(MSGS, models, replay=path)
            renamed = await compare(MSGS, {"third": one}, replay=path)
    assert [trial.reply and trial.reply.text for trial in trials] == ["Of one.", "Of the other."]
    assert renamed[0].reply


async def test_a_recording_whose_last_line_was_cut_off_is_added_to(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    with LoopbackServer(["One.", "Two."]) as server:
        async with model(server, "openai") as one:
            await compare(MSGS, {"one": one}, record=path)
            path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().rstrip(b"\n"))
            await compare(MSGS, {"two": one}, record=path)
            trials = await compare(MSGS, {"one": one, "two": one}, replay=path)
    assert [trial.reply and trial.reply.text for trial in trials] == ["One.", "Two."]


def test_a_fingerprint_holds_in_every_process() -> None:
    one = fingerprint("openai", "m", {}, {"effort": object()})
    assert one == fingerprint("openai", "m", {}, {"effort": object()})
    assert fingerprint("openai", "m", {}, {"seed": None}) == fingerprint("openai", "m", {}, {})


def test_a_fingerprint_is_that_of_the_call_alone() -> None:
    one = fingerprint("openai", "m", {"messages": [], "tools": []}, {"a": 1})
    assert one == fingerprint("openai", "m", {"tools": [], "messages": []}, {"a": 1})
    assert one != fingerprint("openai", "m", {"messages": [], "tools": []}, {"a": 2})
    assert one != fingerprint("openai", "n", {"messages": [], "tools": []}, {"a": 1})


@pytest.mark.parametrize("amount", ["1", None, -1, float("nan"), float("inf"), True])
def test_a_price_is_a_number_from_0_on(amount: Any) -> None:
    for name in ("input", "output", "cache_read", "cache_write"):
        if amount is not None or name in ("input", "output"):
            with pytest.raises(OptionError, match=rf"^price\.{name}: expected a number from 0 on"):
                Price(**cast("dict[str, Any]", {"input": 1, "output": 2, name: amount}))


def test_a_price_tells_what_was_cached_apart_if_it_can() -> None:
    usage = Usage(1_000_000, 100_000, cache_read_tokens=500_000, cache_write_tokens=100_000)
    assert Price(2.0, 10.0).cost(usage) == pytest.approx(3.0)
    assert Price(2.0, 10.0, cache_read=0.2, cache_write=2.5).cost(usage) == pytest.approx(0.8 + 0.1 + 0.25 + 1.0)


# -- the command -----------------------------------------------------------------------------------------------

CONVERSATION = json.dumps([{"name": "Bob", "role": "user", "content": "Where is the library?"}])


def command(*arguments: str, server: LoopbackServer | None = None) -> subprocess.CompletedProcess[str]:
    """The installed command, with what its SDKs find in the environment."""
    found = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x"}
    if server is not None:
        found |= {"OPENAI_BASE_URL": server.url("openai"), "ANTHROPIC_BASE_URL": server.url("anthropic")}
    return subprocess.run(
        [Path(sys.executable).parent / "agentkit", "compare", *arguments],
        input=CONVERSATION,
        env={**os.environ, **found},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_prints_a_table_writes_json_and_replays_it_offline(tmp_path: Path) -> None:
    runs, out = tmp_path / "runs.jsonl", tmp_path / "out.json"
    models = ("--model", "openai:one", "--model", "anthropic:two", "--price", "one=2/10", "--json", str(out))
    said = Reply(Msg("x", "Round the corner.", "assistant"), usage=Usage(1_000, 100))
    with LoopbackServer(said) as server:
        done = command(*models, "--record", str(runs), server=server)
    assert (done.returncode, done.stderr) == (0, "")
    assert "openai:one" in done.stdout
    assert "Round the corner." in done.stdout
    found = json.loads(out.read_text())
    assert [trial["label"] for trial in found] == ["openai:one", "anthropic:two"]
    assert [trial["price"] for trial in found] == [pytest.approx(0.003), None]
    assert found[0]["reply"]["content"] == [{"type": "text", "text": "Round the corner."}]
    assert found[0]["usage"]["input_tokens"] == 1_000
    assert found[1]["request"]["messages"]
    again = command(*models, "--replay", str(runs))
    assert again.returncode == 0
    assert again.stdout == done.stdout
    replayed = json.loads(out.read_text())
    assert all(trial.pop("replayed") for trial in replayed)
    assert replayed == [{key: item for key, item in trial.items() if key != "replayed"} for trial in found]


def test_the_command_gives_json_alone_on_standard_output_and_1_where_a_call_failed(tmp_path: Path) -> None:
    with LoopbackServer(LoopbackError(400, "no such model", code="model_not_found")) as server:
        done = command("--model", "openai:one", "--json", "-", server=server)
    assert done.returncode == 1
    (trial,) = json.loads(done.stdout)
    assert trial["error"]["class"] == "BadRequestError"
    assert "no such model" in trial["error"]["sentence"]
    assert "openai:one" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
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
def test_the_command_refuses_bad_options_in_one_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "x")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CONVERSATION.encode())))
    assert run(["compare", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert err.count("\n") == 1


def test_the_command_says_what_it_takes() -> None:
    done = command("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "/CACHE_WRITE" in done.stdout


def test_the_command_lets_no_model_command_the_terminal() -> None:
    with LoopbackServer("\x1b[31mred \x1b]0;title\x07\x9b2J\u202e") as server:
        done = command("--model", "openai:one", server=server)
    assert "red" in done.stdout
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(done.stdout)
