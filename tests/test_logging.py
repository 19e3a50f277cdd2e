"""Log records: one per event, with place and reason, and without text of the conversation."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any, Final

import pytest

from agentkit import (
    AudioBlock,
    Budget,
    ChatModel,
    ClearResults,
    Fetch,
    ImageBlock,
    InvalidBlock,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    TextBlock,
    ToolResultBlock,
    URLSource,
    load_messages,
    load_provider,
)
from agentkit.testing import LoopbackError, LoopbackServer
from tests.cases import each_case
from tests.conftest import EchoFormatter, call, lower, result, text_msg
from tests.providers import MESSAGE_PROVIDERS
from tests.providers.calling import create_model

pytestmark = pytest.mark.anyio

SECRET: Final = "swordfish"
SONG: Final = AudioBlock.from_bytes(b"RIFF....WAVE", "audio/wav")


def get_records(caplog: pytest.LogCaptureFixture, area: str) -> list[tuple[int, str]]:
    return [
        (record.levelno, record.getMessage()) for record in caplog.records if record.name == f"agentkit.{area}"
    ]


async def test_a_cut_is_logged_once_with_its_places(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agentkit")
    msgs = [text_msg(SECRET, f"{SECRET} {number} " + "word " * 40) for number in range(12)]
    plan = await EchoFormatter(budget=Budget(300, strategy=OldestFirst())).plan(msgs)
    assert plan.cut is not None
    ((level, text),) = get_records(caplog, "budget")
    assert level == logging.INFO
    assert text == (
        f"cut to fit the budget: {len(plan.cut.dropped)} messages dropped from msgs[0] to {plan.cut.dropped[-1]}; "
        f"{plan.cut.tokens:,} tokens saved, {plan.tokens} tokens remain"
    )
    assert SECRET not in caplog.text


async def test_blocks_that_a_cut_altered_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agentkit")
    msgs = [call("a"), result("a", output=SECRET * 100), call("b"), result("b"), text_msg("Bob", "so?")]
    await EchoFormatter(budget=Budget(150, strategy=ClearResults(0, 0, 0))).plan(msgs)
    ((_, text),) = get_records(caplog, "budget")
    assert "0 messages dropped; 1 block altered, the first at msgs[1].content[0]" in text
    assert SECRET not in caplog.text


async def test_a_request_within_its_budget_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentkit")
    await EchoFormatter(budget=Budget(1_000)).plan([text_msg("Bob", "hi")])
    assert caplog.records == []


@pytest.mark.parametrize("on_loss", ["describe", "drop"])
@pytest.mark.parametrize("budget", [None, Budget(10_000)])
async def test_a_loss_is_logged_once_with_its_place_and_reason(
    caplog: pytest.LogCaptureFixture, on_loss: Any, budget: Budget | None
) -> None:
    caplog.set_level(logging.INFO, "agentkit")
    formatter = load_provider("anthropic").chat_formatter(on_loss=on_loss, budget=budget)
    await formatter.plan([Msg("Bob", [TextBlock(SECRET), SONG], "user")])
    assert get_records(caplog, "losses") == [
        (logging.INFO, "msgs[0].content[1]: lost: Anthropic Messages does not accept audio")
    ]
    assert SECRET not in caplog.text


@each_case("name", MESSAGE_PROVIDERS)
async def test_no_record_quotes_the_conversation(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agentkit")
    invalid = load_messages(
        [{"name": "Bob", "role": "user", "content": [{"type": "text", "text": {"x": SECRET}}]}]
    )
    assert isinstance(invalid[0].blocks[0], InvalidBlock)
    assert SECRET in invalid[0].blocks[0].reason
    msgs = [
        *invalid,
        text_msg(SECRET, SECRET),
        text_msg("Eve", SECRET),
        Msg(SECRET, [SONG, ImageBlock(URLSource(f"https://example.com/{SECRET}.xyz?key={SECRET}"))], "user"),
        Msg("system", [ToolResultBlock(SECRET, SECRET, SECRET)], "system"),
        Msg("system", [TextBlock(SECRET)], "system"),
    ]
    provider = load_provider(name)
    for formatter in (
        provider.chat_formatter(),
        provider.multi_agent_formatter(history=MultiAgentHistory(viewer=SECRET)),
    ):
        caplog.clear()
        plan = await formatter.plan(msgs)
        texts = [text for _, text in get_records(caplog, "losses")]
        assert [text.partition(": ")[0] for text in texts] == [place for place, _ in plan.ledger.losses]
        assert "msgs[0].content[0]: lost: invalid block …" in texts
        assert SECRET not in caplog.text


async def test_repairs_and_added_texts_are_logged_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentkit")
    plan = lower([call("a"), text_msg("Bob", SECRET), result("a"), call(SECRET)])
    assert get_records(caplog, "repairs") == [
        (
            logging.DEBUG,
            "msgs[1].content[0]: moved: was between tool calls and their results; moved after the results",
        ),
        (logging.DEBUG, "added: interrupted: call … of tool … has no result, so an error result was added"),
    ]
    assert [made.reason for made in plan.ledger.syntheses] == [
        "call 'swordfish' of tool 'search' has no result, so an error result was added"
    ]
    caplog.clear()
    caplog.set_level(logging.INFO, "agentkit")
    lower([call("a"), text_msg("Bob", SECRET), result("a")])
    assert caplog.records == []


async def test_a_second_plan_is_logged_with_the_model(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agentkit")
    msgs = [text_msg("Bob", f"{number} " + "word " * 40) for number in range(40)]
    too_long = LoopbackError(400, "prompt is too long: 2000 tokens > 1000 maximum")
    with LoopbackServer([too_long, "Yes."]) as server:
        async with create_model("openai", server, budget=Budget(100_000)) as model:
            assert (await model.generate(msgs)).text == "Yes."
    ((level, text),) = get_records(caplog, "models")
    assert level == logging.INFO
    assert text.startswith(f"openai:{model.model}: the prompt is too long; shortened to at most ")
    assert len(get_records(caplog, "budget")) == 1


async def test_a_download_is_logged_with_its_host_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentkit")
    url = f"http://user:{SECRET}@127.0.0.1:1/{SECRET}.png?key={SECRET}"
    formatter = load_provider("ollama").chat_formatter(fetch=Fetch(allow_private=True, timeout=5))
    await formatter.plan([Msg("Bob", [ImageBlock(URLSource(url))], "user")])
    ((level, text),) = get_records(caplog, "media")
    assert (level, text.partition(": ")[0]) == (logging.DEBUG, "no media fetched from 127.0.0.1")
    assert SECRET not in caplog.text


async def test_no_record_has_a_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentkit")
    with LoopbackServer("Yes.") as server:
        options = {**server.client_options("openai"), "api_key": SECRET}
        async with ChatModel("openai:m", client_options=options, budget=Budget(1_000)) as model:
            await model.generate([text_msg("Bob", "hi")])
    assert SECRET not in "".join(record.getMessage() for record in caplog.records if "agentkit" in record.name)


def test_a_program_that_configures_no_logging_prints_nothing() -> None:
    script = """
from agentkit import Tool, ToolUseBlock, run_tool_call
import anyio
def fail() -> None: raise RuntimeError
print(anyio.run(run_tool_call, ToolUseBlock("1", "fail", {}), [fail]).is_error)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("True", "")
