"""A provider of another distribution is listed like any other and needs no extra code for common features."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from agentkit import (
    Budget,
    BudgetError,
    ImageBlock,
    LossError,
    Msg,
    MultiAgentHistory,
    OptionError,
    Plan,
    ProviderError,
    TextBlock,
    URLSource,
    available_providers,
    load_provider,
    read_history,
)
from agentkit.legalize.alternating_turns import BEGIN_TURN, CONTINUE_TURN
from agentkit.provider_kit import Provider
from agentkit.repair.pairing import INTERRUPTED_RESULT
from agentkit.testing import LoopbackError, LoopbackServer
from tests.conftest import call, dispositions, result, text_msg

pytestmark = pytest.mark.anyio

SYSTEM = text_msg("system", "Be loud.", "system")
BOB, ALICE, POLLY = text_msg("Bob", "hi"), text_msg("Alice", "hello"), text_msg("Polly", "yes?", "assistant")


def _forget() -> None:
    """Removes the loaded modules and cached providers of the process."""
    sys.modules.pop("agentkit_parrot", None)
    sys.modules.pop("agentkit_parrot.testing", None)
    getattr(load_provider, "cache_clear", list)()


@pytest.fixture
def parrot(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """The provider, installed for the length of a test."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(Path(__file__).with_name("third_party")))  # pyright: ignore[reportUnknownMemberType]
    _forget()
    yield load_provider("parrot")
    _forget()


def squawks(plan: Plan) -> list[dict[str, Any]]:
    return list(plan.request["squawks"])


def test_an_installed_provider_is_listed_until_it_is_uninstalled(parrot: Provider) -> None:
    assert parrot.name == "parrot"
    assert {"parrot", "openai", "anthropic"} <= set(available_providers())
    assert available_providers() == sorted(available_providers())


def test_a_provider_that_is_not_installed_is_unknown() -> None:
    with pytest.raises(ProviderError) as caught:
        load_provider("parrot")
    assert caught.value.name == "parrot"
    assert "openai" in caught.value.available
    assert "parrot" not in caught.value.available


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("parrot-broken", "cannot be imported"),
        ("parrot-missing", "cannot be imported"),
        ("parrot-wrong", "must be a Provider"),
    ],
)
@pytest.mark.usefixtures("parrot")
def test_the_error_names_a_package_that_does_not_load(name: str, reason: str) -> None:
    with pytest.raises(ProviderError, match=reason) as caught:
        load_provider(name)
    assert caught.value.name == name
    assert "parrot" in caught.value.available


async def test_the_provider_converts_a_conversation(parrot: Provider) -> None:
    request = await parrot.chat_formatter().format([SYSTEM, BOB, call("c"), result("c"), POLLY])
    assert request == {
        "rules": ["Be loud."],
        "squawks": [
            {"who": "keeper", "text": "hi"},
            {"who": "bird", "text": "", "calls": {"c": {"trick": "search", "arguments": '{"q":"c"}'}}},
            {"who": "keeper", "results": {"c": "found"}},
            {"who": "bird", "text": "yes?"},
        ],
    }


async def test_multi_agent_history_works_without_extra_code(parrot: Provider) -> None:
    plan = await parrot.multi_agent_formatter(history=MultiAgentHistory(viewer="Polly")).plan(
        [SYSTEM, BOB, ALICE, POLLY, BOB]
    )
    assert [squawk["who"] for squawk in squawks(plan)] == ["keeper", "bird", "keeper"]
    assert "You are Polly." in squawks(plan)[0]["text"]
    texts = [squawk["text"] for squawk in squawks(plan) if squawk["who"] == "keeper"]
    assert read_history(texts) == [("Bob", "hi"), ("Alice", "hello"), ("Bob", "hi")]


async def test_repair_works_without_extra_code(parrot: Provider) -> None:
    plan = await parrot.chat_formatter().plan([BOB, call("c"), ALICE, result("c"), result("x"), call("d")])
    assert [squawk.get("results") for squawk in squawks(plan) if "results" in squawk] == [
        {"c": "found"},
        {"d": INTERRUPTED_RESULT},
    ]
    assert dispositions(plan)["msgs[4].content[0]"] == "described"
    assert dispositions(plan)["msgs[2].content[0]"] == "moved"


async def test_the_order_of_turns_is_fixed_without_extra_code(parrot: Provider) -> None:
    plan = await parrot.chat_formatter().plan([POLLY, BOB, ALICE])
    assert [squawk["text"] for squawk in squawks(plan)] == [BEGIN_TURN, "yes?", "hi\nhello"]


async def test_the_ledger_and_on_loss_work_without_extra_code(parrot: Provider) -> None:
    msgs = [Msg("Bob", (TextBlock("look"), ImageBlock(URLSource("https://a/b.png"))), "user")]
    plan = await parrot.chat_formatter().plan(msgs)
    assert "[image left out because Parrot does not accept images" in squawks(plan)[0]["text"]
    assert plan.ledger.losses == [("msgs[0].content[1]", "Parrot does not accept images")]
    assert squawks(await parrot.chat_formatter(on_loss="drop").plan(msgs)) == [{"who": "keeper", "text": "look"}]
    with pytest.raises(LossError, match="Parrot"):
        await parrot.chat_formatter(on_loss="raise").plan(msgs)


async def test_a_budget_works_without_extra_code(parrot: Provider) -> None:
    formatter = parrot.chat_formatter(budget=Budget(100))
    msgs = [SYSTEM, *(text_msg("Bob" if n % 2 else "Al", f"{n} " + "word " * 12) for n in range(40))]
    plan = await formatter.plan(msgs)
    assert plan.tokens is not None
    assert plan.tokens <= 100
    assert plan.cut is not None
    assert plan.request["rules"] == ["Be loud."]
    assert "39 word" in squawks(plan)[-1]["text"]
    with pytest.raises(BudgetError):
        await parrot.chat_formatter(budget=Budget(10)).plan(msgs)


async def test_names_tools_and_output_schemas_are_adapted_without_extra_code(parrot: Provider) -> None:
    plan = await parrot.chat_formatter().plan(
        [BOB, call("an id"), result("an id")],
        tools=[{"name": "sing"}],
        tool_choice="sing",
        response_format={"type": "object", "properties": {}},
    )
    (sent_id,) = plan.call_ids
    assert squawks(plan)[1]["calls"] == {sent_id: {"trick": "search", "arguments": '{"q":"an id"}'}}
    assert squawks(plan)[2]["results"] == {sent_id: "found"}
    assert [trick["name"] for trick in plan.request["tricks"]] == ["sing"]
    assert "JSON schema" in plan.request["rules"][-1]
    assert {synthesis.name for synthesis in plan.ledger.syntheses} == {"tool choice", "output instruction"}


async def test_capabilities_per_model_work_without_extra_code(parrot: Provider) -> None:
    formatter = parrot.chat_formatter("green")
    assert squawks(await formatter.plan([BOB, POLLY]))[-1]["text"] == "yes?"
    assert squawks(await formatter.plan([BOB, POLLY], model="mute-1"))[-1]["text"] == CONTINUE_TURN


# -- its fake service -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("parrot")
async def test_the_loopback_server_serves_complete_and_streamed_replies_of_its_api() -> None:
    body = {"squawks": [{"who": "keeper", "text": "hi"}]}
    with LoopbackServer("Pretty Polly.") as server:
        async with httpx2.AsyncClient(verify=False, base_url=server.url("parrot")) as client:
            reply = await client.post("/squawk", json=body)
            stream = await client.post("/squawk", json=body, headers={"x-parrot": "chatty"})
            count = await client.post("/squawk/count", json=body)
    assert reply.json() == {"squawk": "Pretty Polly.", "crackers": 4}
    events = [json.loads(line.removeprefix("data: ")) for line in stream.text.split("\n\n") if line]
    assert "".join(event.get("squawk", "") for event in events) == "Pretty Polly."
    assert count.json() == {"crackers": 12}
    assert [(request.provider, request.streamed) for request in server.requests] == [
        ("parrot", False),
        ("parrot", True),
        ("parrot", False),
    ]
    assert server.client_options("parrot")["base_url"].endswith("/parrot")


@pytest.mark.usefixtures("parrot")
async def test_the_loopback_server_writes_its_errors() -> None:
    slow = LoopbackError(429, "Too many crackers.", retry_after=2)
    with LoopbackServer([slow]) as server:
        async with httpx2.AsyncClient(verify=False, base_url=server.url("parrot")) as client:
            error = await client.post("/squawk", json={"squawks": ["hi"]})
            refused = await client.post("/squawk", json={})
    assert (error.status_code, error.headers["retry-after"]) == (429, "2")
    assert error.json() == {"screech": "Too many crackers."}
    assert (refused.status_code, refused.json()) == (400, {"screech": "The parrot has heard nothing."})


def test_a_provider_without_a_testing_module_has_no_fake_service() -> None:
    with LoopbackServer() as server, pytest.raises(OptionError, match="no fake service is named 'parrot'"):
        server.url("parrot")


def test_the_public_function_and_the_provider_give_the_same_result(parrot: Provider) -> None:
    formatter = parrot.multi_agent_formatter()
    assert anyio.run(formatter.format, [BOB, ALICE]) == formatter.lower([BOB, ALICE]).request
