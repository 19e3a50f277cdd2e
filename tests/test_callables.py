"""Values of a wrong type, returned by functions of the caller or passed to agentkit, raise an OptionError."""

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
from tests.cases import each_case
from tests.conftest import EchoFormatter

pytestmark = pytest.mark.anyio

MSGS: Final = [Msg("Bob", f"line {number} " * 20, "user") for number in range(40)]


def override_method(base: type[Any], method: str, result: object) -> type[Any]:
    """Returns a subclass with a method that accepts any arguments and returns `result`."""

    def overriding_method(*_args: object, **_options: object) -> object:
        return result

    return type("Mine", (base,), {method: overriding_method})


def with_strategy(strategy: CutStrategy | Sequence[CutStrategy]) -> FormatterBase:
    return EchoFormatter(budget=Budget(400, strategy=strategy))


def with_counter(counter: Any) -> FormatterBase:
    return EchoFormatter(budget=Budget(400, counter))


def with_summary_of(result: object) -> FormatterBase:
    return with_strategy(Summarize(override_method(object, "write", result)().write, max_tokens=200))


class SteppedStrategy(OldestFirst):
    """Strategy with a step, whose method `recent` the tests override."""

    step = 20


CASES: Final[dict[str, tuple[str, Callable[[Any], FormatterBase]]]] = {
    "history.view": (
        "history",
        lambda result: EchoFormatter(history=override_method(HistoryPolicy, "view", result)()),
    ),
    "history.render": (
        "history.render()",
        lambda result: EchoFormatter(history=override_method(HistoryPolicy, "render", result)()),
    ),
    "convert": ("convert()", lambda result: override_method(EchoFormatter, "convert", result)()),
    "convert in a budget": (
        "convert()",
        lambda result: override_method(EchoFormatter, "convert", result)(budget=Budget(400)),
    ),
    "strategy.order": (
        "budget.strategy",
        lambda result: with_strategy(override_method(CutStrategy, "order", result)()),
    ),
    "strategy.edit": (
        "budget.strategy",
        lambda result: with_strategy(override_method(CutStrategy, "edit", result)()),
    ),
    "strategy.recent": (
        "budget.strategy",
        lambda result: with_strategy(
            [override_method(SteppedStrategy, "recent", result)(step=20), OldestFirstInSteps()]
        ),
    ),
    "write": ("strategy.summarizer", with_summary_of),
    "counter.count": (
        "budget.counter",
        lambda result: with_counter(override_method(CharacterTokenCounter, "count", result)()),
    ),
    "counter.weigh": (
        "budget.counter",
        lambda result: with_counter(override_method(CharacterTokenCounter, "weigh", result)()),
    ),
    "counter.prepare": (
        "budget.counter",
        lambda result: with_counter(override_method(CharacterTokenCounter, "prepare", result)()),
    ),
    "local counter.prepare": (
        "budget.counter",
        lambda result: with_counter(
            UsageAnchoredCounter(override_method(CharacterTokenCounter, "prepare", result)())
        ),
    ),
}


@each_case(
    "result", {"None": None, "float": 1.5, "negative": -1, "text": "text", "list": ["3"], "object": object()}
)
@each_case("case", [*CASES])
async def test_the_error_for_a_result_of_a_wrong_type_names_the_function(case: str, result: object) -> None:
    place, create = CASES[case]
    with pytest.raises(OptionError) as caught:
        await create(result).plan(MSGS)
    assert caught.value.place == place


def test_an_asynchronous_function_for_visible_is_refused() -> None:
    async def visible(msg: Msg) -> bool:
        return False

    with pytest.raises(OptionError, match=r"^visible: expected a synchronous function"):
        MultiAgentHistory(visible=visible)  # type: ignore[arg-type] # pyright: ignore


@pytest.mark.parametrize("name", ["model", 3])
def test_a_model_among_the_formatter_options_is_refused(name: Any) -> None:
    with pytest.raises(OptionError, match=r"^formatter_options: "):
        ChatModel("openai:some-model", formatter_options={name: "other"})


FUNCTIONS: Final[dict[str, Callable[[Any], object]]] = {
    "load_native": lambda value: load_native(value, []),
    "prefix_digest": lambda value: prefix_digest(value, WireLayout()),
    "strip_speaker_prefix": strip_speaker_prefix,
}


@each_case("value", {"None": None, "int": 3, "list": ["text"], "bytes": b"text"})
@each_case("name", [*FUNCTIONS])
def test_an_argument_of_a_wrong_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=r": expected (Provider|Mapping|Msg), got "):
        FUNCTIONS[name](value)


async def test_the_name_of_a_parameter_must_be_a_string() -> None:
    with pytest.raises(OptionError, match=r"^parameters: expected str, got int"):
        ChatModel("openai:some-model", parameters={3: 1})  # type: ignore[dict-item] # pyright: ignore
