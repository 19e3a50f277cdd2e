"""Tests of `FormatterBase`: the pipeline, the options, and the behavior that all providers share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from agentkit import (
    Budget,
    CharacterTokenCounter,
    ChatHistory,
    EmptyConversationError,
    ImageBlock,
    InputError,
    LossError,
    MessageError,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OptionError,
    TextBlock,
    ThinkingBlock,
    TokenCounterBase,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    load_messages,
    load_provider,
)
from agentkit.legalize.prompt_instructions import CALL_A_TOOL, CALL_TOOL
from agentkit.provider_kit import (
    Capabilities,
    FormatterBase,
    LegalConversation,
    ModelFact,
    Request,
    RequestSpec,
    TurnCapabilities,
)
from tests.cases import each_case
from tests.conftest import EchoFormatter, call, get_turns, result, target, text_msg, turn_lines
from tests.providers import MESSAGE_PROVIDERS

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"
SYSTEM, BOB, FRIDAY = (
    text_msg("system", "Be brief.", "system"),
    text_msg("Bob", "hi"),
    text_msg("Friday", "yes?", "assistant"),
)
EVERY_PROVIDER = each_case("name", MESSAGE_PROVIDERS)

# -- the options -----------------------------------------------------------------------------------------


def test_a_formatter_has_its_options_as_attributes() -> None:
    policy, budget = MultiAgentHistory(viewer="Friday"), Budget(100)
    formatter = EchoFormatter("m", history=policy, budget=budget, on_loss="drop")
    assert (formatter.model, formatter.history, formatter.budget, formatter.on_loss) == (
        "m",
        policy,
        budget,
        "drop",
    )
    assert EchoFormatter(model="m").model == "m"
    assert isinstance(EchoFormatter().history, ChatHistory)
    assert (EchoFormatter().model, EchoFormatter().budget, EchoFormatter().on_loss) == (None, None, "describe")


@each_case(
    ("options", "place"),
    [
        ({"on_loss": "ignore"}, "on_loss"),
        ({"on_loss": None}, "on_loss"),
        ({"history": "multi"}, "history"),
        ({"history": MultiAgentHistory}, "history"),
        ({"budget": 1000}, "budget"),
        ({"media_roots": "folder"}, "media_roots"),
        ({"model": 5}, "model"),
    ],
)
@EVERY_PROVIDER
def test_invalid_options_are_errors_of_the_constructor(name: str, options: dict[str, Any], place: str) -> None:
    with pytest.raises(OptionError) as caught:
        load_provider(name).chat_formatter(**options)
    assert caught.value.place == place
    assert caught.value.advice.endswith(".")


def test_a_formatter_without_convert_cannot_be_created() -> None:
    with pytest.raises(TypeError, match="abstract"):
        FormatterBase()  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]


# -- the input ---------------------------------------------------------------------------------------------


@each_case(
    ("msgs", "place"),
    {
        "a string": ("hi", "msgs"),
        "a bare message": (BOB, "msgs"),
        "nothing": (None, "msgs"),
        "a number": (5, "msgs"),
        "a string in it": ([BOB, "hi"], "msgs[1]"),
        "a dict in it": ([BOB, {"name": "Bob", "content": "hi", "role": "user"}], "msgs[1]"),
        "null in it": ([None], "msgs[0]"),
    },
)
async def test_a_value_that_is_not_a_list_of_messages_is_an_error(msgs: Any, place: str) -> None:
    formatter = EchoFormatter()
    with pytest.raises(MessageError) as caught:
        await formatter.format(msgs)
    assert caught.value.place == place
    with pytest.raises(MessageError):
        formatter.lower(msgs)


@pytest.mark.parametrize("msgs", [[], ()])
async def test_an_empty_conversation_is_an_error(msgs: Sequence[Msg]) -> None:
    with pytest.raises(EmptyConversationError):
        await EchoFormatter().format(msgs)
    with pytest.raises(EmptyConversationError):
        EchoFormatter(budget=Budget(10)).lower(msgs)


async def test_any_sequence_of_messages_can_be_formatted() -> None:
    expected = await EchoFormatter().format([BOB, FRIDAY])
    assert await EchoFormatter().format((BOB, FRIDAY)) == expected


class SpecialMsg(Msg):
    """Subclass of `Msg`."""


async def test_a_subclass_of_msg_can_be_formatted() -> None:
    assert turn_lines(await EchoFormatter().plan([SpecialMsg("Bob", "hi", "user"), BOB])) == [
        "user Bob: hi",
        "user Bob: hi",
    ]


# -- the pipeline ------------------------------------------------------------------------------------------

CONVERSATIONS: list[tuple[str, Sequence[Msg]]] = [
    ("talk", [SYSTEM, BOB, text_msg("Alice", "a\nb"), FRIDAY]),
    ("tools", [BOB, call("a", "b"), result("b"), result("a"), FRIDAY]),
    ("broken", [result("x"), call("a"), BOB, result("a"), call("b"), text_msg("clock", "noon", "system")]),
    ("media", [Msg("Bob", (TextBlock("look"), ImageBlock(URLSource("https://example.com/a.png"))), "user")]),
    ("thinking", [BOB, Msg("Friday", (ThinkingBlock("hm"), TextBlock("yes")), "assistant")]),
    *[(path.stem, load_messages(path.read_bytes())) for path in sorted(EXAMPLES.glob("*.json"))],
]
EVERY_CONVERSATION = each_case("msgs", {row[0]: row[1] for row in CONVERSATIONS})


def _names_file(msgs: Sequence[Msg]) -> bool:
    sources = [medium.source for msg in msgs for medium in msg.media]
    return any(isinstance(source, URLSource) and source.scheme == "file" for source in sources)


NO_IO = [row for row in CONVERSATIONS if not _names_file(row[1])]


@each_case("msgs", {row[0]: row[1] for row in NO_IO})
@EVERY_PROVIDER
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_lower_returns_the_same_request_as_format_without_io(
    name: str, msgs: Sequence[Msg], anyio_backend: str
) -> None:
    provider = load_provider(name)
    for formatter in (provider.chat_formatter(), provider.multi_agent_formatter()):
        plan, lowered = await formatter.plan(msgs), formatter.lower(msgs)
        assert plan.request == lowered.request == await formatter.format(msgs)
        assert plan.ledger.to_dict() == lowered.ledger.to_dict()
        assert (plan.history, plan.tokens, plan.cut) == (tuple(msgs), None, None)


@EVERY_CONVERSATION
@EVERY_PROVIDER
def test_the_same_input_gives_the_same_bytes_and_is_unchanged(name: str, msgs: Sequence[Msg]) -> None:
    before = [msg.to_dict() for msg in msgs]
    cold = [Msg.from_dict(msg.to_dict()) for msg in msgs]
    for kind in (load_provider(name).chat_formatter, load_provider(name).multi_agent_formatter):
        warm = [json.dumps(kind().lower(msgs).request, allow_nan=False) for _ in range(2)]
        assert warm[0] == warm[1] == json.dumps(kind().lower(cold).request)
    assert [msg.to_dict() for msg in msgs] == before


@EVERY_CONVERSATION
@EVERY_PROVIDER
def test_a_change_of_a_request_does_not_affect_the_next_request(name: str, msgs: Sequence[Msg]) -> None:
    formatter = load_provider(name).chat_formatter()
    tool = Tool("search", "Search.", {"type": "object", "properties": {"q": {"enum": ["a"]}}})
    first = formatter.lower(
        msgs, tools=[tool], response_format={"type": "object", "properties": {"a": {}}}
    ).request
    expected = json.dumps(first)
    _change_containers(first)
    again = formatter.lower(
        msgs, tools=[tool], response_format={"type": "object", "properties": {"a": {}}}
    ).request
    assert json.dumps(again) == expected


def _change_containers(value: Any) -> None:
    """Changes every list and dict in a value."""
    if isinstance(value, dict):
        for item in list(cast("dict[str, Any]", value).values()):
            _change_containers(item)
        value["spoiled"] = True
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            _change_containers(item)
        cast("list[Any]", value).append("spoiled")


@EVERY_PROVIDER
def test_every_input_block_has_exactly_one_entry(name: str) -> None:
    for _, msgs in CONVERSATIONS:
        entries = load_provider(name).multi_agent_formatter().lower(msgs).ledger.entries
        places = [entry.place for entry in entries]
        assert len(set(places)) == len(places)
        assert [place for place in places if ".output" not in place] == [
            f"msgs[{number}].content[{index}]"
            for number, msg in enumerate(msgs)
            for index in range(len(msg.blocks))
        ]


async def test_format_can_be_canceled_even_without_io() -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await EchoFormatter().format([BOB])
    assert scope.cancelled_caught


# -- model, loss -------------------------------------------------------------------------------------------

FACT = ModelFact("blind", {"media.image": None}, "sheet", "2026-11-20")
PICTURE = Msg("Bob", (ImageBlock(URLSource("https://example.com/a.png")),), "user")


@each_case(
    ("own", "call_model", "sees"),
    [(None, None, True), ("blind-1", None, False), ("blind-1", "x", True), ("x", "blind-1", False)],
)
async def test_the_model_of_the_call_replaces_the_model_of_the_formatter(
    own: str | None, call_model: str | None, sees: bool
) -> None:
    formatter = target(FACT)(own)
    for plan in (await formatter.plan([PICTURE], model=call_model), formatter.lower([PICTURE], model=call_model)):
        assert (get_turns(plan)[0]["content"][0]["type"] == "image") is sees
    assert formatter.model == own


async def test_a_loss_raises_before_the_request_is_counted() -> None:
    formatter = target(FACT)("blind-1", on_loss="raise", budget=Budget(10_000))
    with pytest.raises(LossError) as caught:
        await formatter.format([BOB, PICTURE, PICTURE])
    assert [place for place, _ in caught.value.losses] == ["msgs[1].content[0]", "msgs[2].content[0]"]


class RemoteCounterWithoutWeights(TokenCounterBase):
    """Remote counter without weights."""

    async def count(self, request: Mapping[str, Any]) -> int:
        return len(str(request)) // 4


@pytest.mark.parametrize(
    "counter", [CharacterTokenCounter(10), RemoteCounterWithoutWeights()], ids=["local", "remote"]
)
async def test_a_block_that_a_cut_drops_is_not_a_loss(counter: TokenCounterBase) -> None:
    msgs = [PICTURE, *(text_msg("Bob", "word " * 20) for _ in range(10))]
    formatter = target(FACT)("blind-1", on_loss="raise", budget=Budget(200, counter, strategy=OldestFirst()))
    plan = await formatter.plan(msgs)
    assert plan.cut is not None
    assert plan.cut.dropped[0] == "msgs[0]"
    assert plan.ledger.losses == []
    with pytest.raises(LossError, match=r"msgs\[10\]"):
        await formatter.plan([*msgs[1:], PICTURE])


async def test_a_cut_is_not_a_loss() -> None:
    formatter = EchoFormatter(on_loss="raise", budget=Budget(40, strategy=OldestFirst()))
    plan = await formatter.plan([text_msg("Bob", "word " * 20) for _ in range(10)])
    assert plan.cut is not None


# -- choice and output in the target's terms -----------------------------------------------------------------


@each_case(
    ("choice", "accepted", "expected"),
    [
        ("search", {"auto", "none", "required", "tool"}, "search"),
        ("search", {"auto"}, None),
        ("required", {"auto", "tool"}, None),
        ("auto", {"auto"}, "auto"),
    ],
)
def test_a_tool_choice_that_the_target_refuses_becomes_a_text(
    choice: str, accepted: set[str], expected: str | None
) -> None:
    plan = target(tools__choices=frozenset(accepted))().lower([BOB], tools=[Tool("search")], tool_choice=choice)
    assert plan.request.get("tool_choice") == expected
    assert [synthesis.name for synthesis in plan.ledger.syntheses] == ([] if expected else ["tool choice"])
    assert [tool["name"] for tool in plan.request["tools"]] == ["search"]
    words = CALL_TOOL.format("search") if choice == "search" else CALL_A_TOOL
    assert (words in json.dumps(plan.request["messages"][-1])) == (expected is None)


def test_tool_choice_none_omits_the_tools_if_the_target_cannot_forbid_calls() -> None:
    plan = target(tools__choices=frozenset({"auto"}))().lower([BOB], tools=[Tool("search")], tool_choice="none")
    assert "tools" not in plan.request


def test_tools_of_calls_in_the_history_are_declared_if_the_target_requires_it() -> None:
    formatter = target(tools__needs_declarations=True)()
    plan = formatter.lower([BOB, call("a"), result("a"), call("b", tool="fetch"), result("b")])
    assert [tool["name"] for tool in plan.request["tools"]] == ["search", "fetch"]
    assert plan.request["tool_choice"] == "none"
    assert "tools" not in formatter.lower([BOB]).request


@pytest.mark.parametrize("output", ["object", "prompt"])
def test_a_schema_that_the_target_cannot_enforce_is_stated_in_the_prompt(output: str) -> None:
    plan = target(output=output)().lower([SYSTEM, BOB], response_format={"type": "object", "title": "é"})
    assert turn_lines(plan)[1] == (
        "system system: Answer in json, with one object that matches this JSON schema:\n"
        '{"type":"object","title":"é"}'
    )
    assert [synthesis.name for synthesis in plan.ledger.syntheses] == ["output instruction"]


@EVERY_PROVIDER
@each_case(
    "options",
    [
        {"tools": ["search"]},
        {"tools": [Tool("a"), Tool("a")]},
        {"tools": [Tool("a")], "tool_choice": "b"},
        {"tool_choice": "required"},
        {"response_format": 5},
        {"model": 5},
    ],
)
def test_every_provider_raises_the_same_errors_for_invalid_input(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        load_provider(name).chat_formatter().lower([BOB], **options)
    assert caught.value.place
    assert caught.value.advice


# -- a convert of one's own ------------------------------------------------------------------------------------


class Transcript(FormatterBase):
    """Custom formatter for a model that accepts one text."""

    base = Capabilities(name="Transcript", turns=TurnCapabilities(text_joining="string", late_system="line"))

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        lines = [f"{msg.name}: {self.line(msg)}" for msg in (*legal.system.msgs, *legal.turns.msgs)]
        return {"prompt": "\n".join(lines)}

    def line(self, msg: Msg) -> str:
        calls = [f"{use.name}({use.arguments})" for use in msg.tool_uses]
        return " ".join([msg.text, *calls, *(value.text for value in msg.tool_results)]).strip()


async def test_a_custom_formatter_needs_only_capabilities_and_convert() -> None:
    shot = Msg("tool", (ToolResultBlock("c", "search", (TextBlock("one"), PICTURE.media[0])),), "system")
    use = Msg("Friday", (ToolUseBlock("c", "search", {"q": 1}),), "assistant")
    assert await Transcript().format([SYSTEM, BOB, use, shot]) == {
        "prompt": 'system: Be brief.\nBob: hi\nFriday: search({"q":1})\n'
        "tool: one\n[image left out because Transcript does not accept images; it is at https://example.com/a.png]"
    }
    many = await Transcript(history=MultiAgentHistory(), budget=Budget(60)).plan([BOB, text_msg("Al", "yes")])
    assert MultiAgentHistory().read(many.request["prompt"]) == [("Bob", "hi"), ("Al", "yes")]
