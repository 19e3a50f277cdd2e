"""A wrong type, from a caller's own function or for one of agentkit, is an AgentkitError, never foreign."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest

from agentkit import (
    Budget,
    CharacterTokenCounter,
    ChatModel,
    CutStrategy,
    HistoryPolicy,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OldestFirstInSteps,
    OptionError,
    Summarize,
    UsageAnchoredCounter,
    load_native,
    prefix_digest,
    strip_speaker_prefix,
)
from agentkit.provider_kit import FormatterBase, WireLayout
from tests.conftest import EchoFormatter

pytestmark = pytest.mark.anyio

MSGS: Final = [Msg("Bob", f"line {number} " * 20, "user") for number in range(40)]


def overriding(base: type[Any], method: str, result: object) -> type[Any]:
    """A subclass with a method that returns a value, whatever it is given."""

    def method_of(*_given: object, **_named: object) -> object:
        return result

    return type("Mine", (base,), {method: method_of})


def in_budget(strategy: CutStrategy | Sequence[CutStrategy]) -> FormatterBase:
    return EchoFormatter(budget=Budget(400, strategy=strategy))


def counted(counter: Any) -> FormatterBase:
    return EchoFormatter(budget=Budget(400, counter))


def summarized(result: object) -> FormatterBase:
    return in_budget(Summarize(overriding(object, "write", result)().write, max_tokens=200))


class Gridded(OldestFirst):
    """A strategy on a grid, with a method of its own."""

    step = 20


CASES: Final[dict[str, tuple[str, Callable[[Any], FormatterBase]]]] = {
    "history.view": ("history", lambda found: EchoFormatter(history=overriding(HistoryPolicy, "view", found)())),
    "history.render": (
        "history.render()",
        lambda found: EchoFormatter(history=overriding(HistoryPolicy, "render", found)()),
    ),
    "convert": ("convert()", lambda found: overriding(EchoFormatter, "convert", found)()),
    "convert in a budget": (
        "convert()",
        lambda found: overriding(EchoFormatter, "convert", found)(budget=Budget(400)),
    ),
    "strategy.order": ("budget.strategy", lambda found: in_budget(overriding(CutStrategy, "order", found)())),
    "strategy.edit": ("budget.strategy", lambda found: in_budget(overriding(CutStrategy, "edit", found)())),
    "strategy.recent": (
        "budget.strategy",
        lambda found: in_budget([overriding(Gridded, "recent", found)(step=20), OldestFirstInSteps()]),
    ),
    "write": ("strategy.summarizer", summarized),
    "counter.count": (
        "budget.counter",
        lambda found: counted(overriding(CharacterTokenCounter, "count", found)()),
    ),
    "counter.weigh": (
        "budget.counter",
        lambda found: counted(overriding(CharacterTokenCounter, "weigh", found)()),
    ),
    "counter.prepare": (
        "budget.counter",
        lambda found: counted(overriding(CharacterTokenCounter, "prepare", found)()),
    ),
    "local counter.prepare": (
        "budget.counter",
        lambda found: counted(UsageAnchoredCounter(overriding(CharacterTokenCounter, "prepare", found)())),
    ),
}


@pytest.mark.parametrize(
    "result", [None, 1.5, -1, "text", ["3"], object()], ids=["None", "float", "negative", "text", "list", "object"]
)
@pytest.mark.parametrize("case", CASES)
async def test_a_wrong_type_is_refused_by_the_name_of_its_function(case: str, result: object) -> None:
    place, make = CASES[case]
    with pytest.raises(OptionError) as caught:
        await make(result).plan(MSGS)
    assert caught.value.place == place


def test_a_function_that_hides_messages_is_synchronous() -> None:
    async def visible(msg: Msg) -> bool:
        return False

    with pytest.raises(OptionError, match=r"^visible: expected a synchronous function"):
        MultiAgentHistory(visible=visible)  # type: ignore[arg-type] # pyright: ignore


@pytest.mark.parametrize("name", ["model", 3])
def test_options_of_a_models_formatter_are_named_and_name_no_model(name: Any) -> None:
    with pytest.raises(OptionError, match=r"^formatter_options: "):
        ChatModel("openai:some-model", formatter_options={name: "other"})


WRONG: Final[dict[str, Callable[[Any], object]]] = {
    "load_native": lambda wrong: load_native(wrong, []),
    "prefix_digest": lambda wrong: prefix_digest(wrong, WireLayout()),
    "strip_echo": strip_speaker_prefix,
}


@pytest.mark.parametrize("wrong", [None, 3, ["text"], b"text"], ids=["None", "int", "list", "bytes"])
@pytest.mark.parametrize("name", WRONG)
def test_an_argument_of_a_wrong_type_is_refused(name: str, wrong: Any) -> None:
    with pytest.raises(OptionError, match=r": expected (Provider|Mapping|Msg), got "):
        WRONG[name](wrong)


async def test_a_parameter_is_named_by_a_string() -> None:
    with pytest.raises(OptionError, match=r"^parameters: expected str, got int"):
        ChatModel("openai:some-model", parameters={3: 1})  # type: ignore[dict-item] # pyright: ignore
