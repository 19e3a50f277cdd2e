"""Execution of tools: arguments are checked, results are blocks, and only a cancellation is raised."""

import asyncio
import functools
import inspect
import json
import logging
import re
import threading
import time
import types
from collections.abc import AsyncIterator, Generator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial
from typing import Annotated, Any, cast

import anyio
import pytest
from pydantic import BaseModel, Field

from agentkit import (
    Base64Source,
    ImageBlock,
    Msg,
    OptionError,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    load_provider,
    run_tool_call,
)
from tests.cases import each_case
from tests.providers import MESSAGE_PROVIDERS

pytestmark = pytest.mark.anyio


def _call(tool: Tool, **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock("call_1", tool.name, arguments)


async def _run(function: Any, **arguments: Any) -> ToolResultBlock:
    tool = Tool.from_function(function)
    result = await tool.run(_call(tool, **arguments))
    assert (result.id, result.name) == ("call_1", tool.name)
    return result


async def _async_list(text: str) -> list[str]:
    return [text]


class Colour(Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    y: int = 0


async def test_arguments_are_converted_to_the_types_of_the_function() -> None:
    arguments: list[Any] = []

    def paint(at: Point, colour: Colour, when: date, times: Annotated[int, Field(ge=1)] = 1) -> str:
        arguments.extend([at, colour, when, times])
        return "done"

    result = await _run(paint, at={"x": "3"}, colour="red", when="2026-11-21")
    assert result.output == "done"
    assert not result.is_error
    assert arguments == [Point(x=3), Colour.RED, date(2026, 11, 21), 1]


@each_case(
    ("arguments", "text"),
    [
        ({"at": {"y": 1}}, "at.x: Field required"),
        ({"at": {"x": 1}, "times": 0}, "times: Input should be greater than or equal to 1"),
        ({"at": {"x": 1}, "colour": "red"}, "colour: Unexpected keyword argument"),
        ({}, "at: Missing required argument"),
    ],
)
async def test_the_result_of_invalid_arguments_lists_the_faults(arguments: dict[str, Any], text: str) -> None:
    def paint(at: Point, times: Annotated[int, Field(ge=1)] = 1) -> str:
        raise AssertionError("it must not run")

    result = await _run(paint, **arguments)
    assert result.is_error
    assert text in result.text
    assert "http" not in result.text


async def test_a_plain_function_runs_in_a_thread_with_the_tasks_context() -> None:
    user = ContextVar("user", default="nobody")
    user.set("Bob")
    threads: list[threading.Thread] = []

    def whoami() -> str:
        threads.append(threading.current_thread())
        return user.get()

    assert (await _run(whoami)).output == "Bob"
    assert threads != [threading.current_thread()]


async def test_an_async_function_is_awaited_on_the_loop() -> None:
    threads: list[threading.Thread] = []

    async def wait(seconds: float) -> str:
        threads.append(threading.current_thread())
        await anyio.sleep(seconds)
        return "waited"

    assert (await _run(wait, seconds=0)).output == "waited"
    assert threads == [threading.current_thread()]


class Adder:
    """Callable object."""

    async def __call__(self, a: int, b: int) -> int:
        return a + b

    def plain(self, a: int) -> int:
        return a


async def test_any_callable_is_a_function() -> None:
    tool = Tool("add", function=Adder())
    assert (await tool.run(_call(tool, a=1, b=2))).output == "3"
    assert (await _run(Adder().plain, a=1)).output == "1"

    def add(a: int, b: int) -> int:
        return a + b

    half = Tool("half", function=partial(add, 1))
    assert (await half.run(_call(half, b=2))).output == "3"

    later = Tool("later", function=lambda: Adder()(1, 2))
    assert (await later.run(_call(later))).output == "3"


@dataclass
class Weather:
    place: str
    degrees: float


PICTURE = ImageBlock(Base64Source("image/png", "iVBORw0KGgo="))


@each_case(
    ("value", "output"),
    [
        ("as it is", "as it is"),
        ("a lone \ud83d half", "a lone \N{REPLACEMENT CHARACTER} half"),
        (None, "null"),
        (3, "3"),
        ({"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}'),
        (Weather("sea", 12.5), '{"place":"sea","degrees":12.5}'),
        (Point(x=1), '{"x":1,"y":0}'),
        ([Point(x=1)], '[{"x":1,"y":0}]'),
        (date(2026, 11, 21), '"2026-11-21"'),
        ([], "[]"),
        ([TextBlock("a"), 3, "b"], (TextBlock("a"), TextBlock("3"), TextBlock("b"))),
        (TextBlock("a"), (TextBlock("a"),)),
        ([TextBlock("a"), PICTURE], (TextBlock("a"), PICTURE)),
        (PICTURE, (PICTURE,)),
    ],
)
async def test_a_result_is_text_blocks_or_json(value: Any, output: Any) -> None:
    def give() -> Any:
        return value

    result = await _run(give)
    assert not result.is_error
    if isinstance(output, str) and output.startswith('[{"text"'):
        assert result.output.startswith('[{"')  # type: ignore[union-attr]
    else:
        assert result.output == output


async def test_a_result_that_is_a_block_already_gets_the_calls_name() -> None:
    def give() -> ToolResultBlock:
        return ToolResultBlock("other", "other", "no luck", is_error=True)

    assert await _run(give) == ToolResultBlock("call_1", "give", "no luck", is_error=True)


async def test_a_result_that_json_cannot_express_is_an_error() -> None:
    def give() -> object:
        return object()

    result = await _run(give)
    assert result.is_error
    assert "object" in result.text


class OddError(Exception):
    """Error of a tool."""


@each_case(
    ("error", "text"),
    [
        (OddError("the sea is closed"), "OddError: the sea is closed"),
        (KeyError("sea"), "KeyError: 'sea'"),
        (TimeoutError(), "TimeoutError"),
        (StopIteration("over"), "StopIteration"),
        (AssertionError("no"), "AssertionError: no"),
    ],
)
@each_case("is_async", [False, True])
async def test_an_error_is_a_result(error: Exception, text: str, is_async: bool) -> None:
    def fail() -> str:
        raise error

    async def fail_later() -> str:
        raise error

    result = await _run(fail_later if is_async else fail)
    assert result.is_error
    assert text in result.text


def _some(place: str) -> str:
    return place


@each_case(
    ("block", "text"),
    [
        (ToolUseBlock("call_1", "search", {"q": "sea"}), "'search'"),
        (ToolUseBlock("call_1", "look", {}, '{"place": "the far si'), "cut off"),
        (ToolUseBlock("call_1", "look", {}, metadata={"incomplete": True}), "cut off"),
        (ToolUseBlock("call_1", "look", {"place": "sea"}, '["sea"]'), "cut off"),
    ],
)
async def test_a_call_that_cannot_be_run_is_a_result_too(block: ToolUseBlock, text: str) -> None:
    result = await Tool("look", function=_some).run(block)
    assert (result.id, result.name, result.is_error) == ("call_1", block.name, True)
    assert text in result.text


async def test_a_validation_error_inside_the_function_is_an_error_of_the_function() -> None:
    def read(text: str) -> int:
        return Point.model_validate_json(text).x

    result = await _run(read, text="{}")
    assert result.is_error
    assert result.text.startswith("ValidationError: 1 validation error for Point")


async def test_a_parameter_that_the_schema_of_the_tool_omits_may_have_any_type() -> None:
    def look(place: str, meter: threading.Event | None = None) -> str:
        return f"{place}, {meter}"

    result = await Tool("look", function=look).run(ToolUseBlock("c", "look", {"place": "Rome"}))
    assert (result.output, result.is_error) == ("Rome, None", False)


async def test_the_result_of_a_tool_without_a_function_states_the_reason() -> None:
    tool = Tool("look")
    result = await tool.run(_call(tool))
    assert result.is_error
    assert "no function" in result.text


async def test_a_value_that_is_not_a_call_is_refused() -> None:
    with pytest.raises(OptionError, match="block"):
        await Tool("look", function=_some).run(Msg("Bob", "hi", "user"))  # type: ignore[arg-type]  # pyright: ignore


@pytest.fixture
async def stuck() -> AsyncIterator[threading.Event]:
    """An event that a thread waits for. The fixture sets it at the end."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_cancellation_passes_through(stuck: threading.Event) -> None:
    async def forever() -> str:
        await anyio.sleep_forever()
        return "never"

    def blocked() -> str:
        stuck.wait()
        return "too late"

    for function in (forever, blocked):
        with anyio.move_on_after(0.05) as scope:
            await _run(function)
        assert scope.cancelled_caught


async def test_the_input_of_a_call_does_not_change() -> None:
    def change(places: list[str]) -> str:
        places.append("more")
        return "changed"

    tool = Tool.from_function(change)
    block = _call(tool, places=["sea"])
    await tool.run(block)
    assert block.input == {"places": ["sea"]}


async def test_many_calls_run_concurrently() -> None:
    waiting = threading.Barrier(3, timeout=10)

    def meet(number: int) -> int:
        waiting.wait()
        return number

    tool = Tool.from_function(meet)
    results: dict[int, str] = {}

    async def run(number: int) -> None:
        results[number] = (await tool.run(_call(tool, number=number))).text

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(run, number)
    assert results == {0: "0", 1: "1", 2: "2"}


# -- odd functions and odd results ------------------------------------------------------------------------------


async def test_a_generator_runs_off_the_loop_and_its_items_are_the_result() -> None:
    def count(stop: int) -> Iterator[str]:
        for number in range(stop):
            yield f"{number} {threading.current_thread() is threading.main_thread()}"

    async def count_slowly(stop: int) -> AsyncIterator[int]:
        for number in range(stop):
            yield number

    assert (await _run(count, stop=2)).output == '["0 False","1 False"]'
    assert (await _run(count_slowly, stop=2)).output == "[0,1]"


async def test_texts_among_blocks_are_texts_and_a_block_within_json_is_refused() -> None:
    picture = ImageBlock.from_bytes(b"\x89PNG", "image/png")

    def mixed() -> list[Any]:
        return ["Look:", picture, {"size": 3}]

    def hidden() -> dict[str, Any]:
        return {"picture": picture}

    def message() -> Msg:
        return Msg("a", "b", "user")

    assert (await _run(mixed)).output == (TextBlock("Look:"), picture, TextBlock('{"size":3}'))

    def inner() -> list[Any]:
        return [1, [picture]]

    for function in (hidden, message, inner):
        result = await _run(function)
        assert result.is_error
        assert "Return a JSON value, a text block, a media block, or a list of such blocks" in result.text
        assert "iVBOR" not in result.text


async def test_values_that_json_cannot_express_are_sent_as_similar_values() -> None:
    def odd() -> list[Any]:
        return [float("nan"), float("inf")]

    def half() -> dict[str, Any]:
        return {"half": "\ud800", "number": 1, "list": ["\ud800", (2, float("nan"))]}

    assert json.loads((await _run(odd)).text) == ["NaN", "Infinity"]
    assert json.loads((await _run(half)).text) == {
        "half": "\N{REPLACEMENT CHARACTER}",
        "number": 1,
        "list": ["\N{REPLACEMENT CHARACTER}", [2, "NaN"]],
    }


async def test_an_error_without_a_text_and_a_system_exit_are_results() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def mute() -> None:
        raise MuteError

    def leave() -> None:
        raise SystemExit(3)

    async def leave_slowly() -> None:
        raise SystemExit(3)

    assert (await _run(mute)).text == "MuteError"
    for function in (leave, leave_slowly):
        result = await _run(function)
        assert (result.is_error, result.text) == (True, "SystemExit: 3")


async def test_an_object_and_a_cached_function_are_tools_too() -> None:
    class Adder:
        """Add one."""

        def __call__(self, number: int) -> int:
            return number + 1

    @functools.lru_cache
    def cached(number: int) -> int:
        return number + 1

    for function, name in ((Adder(), "Adder"), (cached, "cached")):
        tool = Tool.from_function(function)
        assert tool.name == name
        assert tool.parameters["required"] == ["number"]
        result = await tool.run(ToolUseBlock("c", name, {"number": "41"}))
        assert (result.is_error, result.text) == (False, "42")


def test_the_signature_that_a_decorator_sets_describes_the_parameters() -> None:
    def find(place: str, token: str) -> str:
        return place + token

    @functools.wraps(find)
    def with_token(place: str) -> str:
        return find(place, "secret")

    with_token.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # pyright: ignore
        [inspect.Parameter("place", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str)]
    )
    assert [*Tool.from_function(with_token).parameters["properties"]] == ["place"]


# -- one tool among several -----------------------------------------------------------------------------------


def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is calm"


def count(to: int) -> int:
    """Count."""
    return to


async def test_a_call_is_run_by_the_tool_of_its_name() -> None:
    tools: list[Any] = [look, Tool.from_function(count)]
    assert (
        await run_tool_call(ToolUseBlock("1", "look", {"place": "the sea"}), tools)
    ).output == "the sea is calm"
    assert (await run_tool_call(ToolUseBlock("2", "count", {"to": "3"}), tools)).output == "3"


async def test_a_call_of_an_unknown_tool_returns_the_names_of_the_tools() -> None:
    uses = [
        {"recipient_name": "functions.look", "parameters": {"place": "the sea"}},
        {"recipient_name": "functions.count", "parameters": {"to": 3}},
    ]
    block = ToolUseBlock("call_1", "multi_tool_use.parallel", {"tool_uses": uses})
    result = await run_tool_call(block, [look, count])
    assert (result.id, result.name, result.is_error) == ("call_1", "multi_tool_use.parallel", True)
    assert result.text == (
        "There is no tool 'multi_tool_use.parallel'. The tools are: 'look', 'count'. "
        "Call each tool separately, by its name."
    )
    direct = await Tool.from_function(look).run(block)  # a loop with one tool
    assert direct.is_error
    assert direct.text == "This call is for the tool 'multi_tool_use.parallel', not for 'look'."
    assert (
        await run_tool_call(block, [])
    ).text == "There is no tool 'multi_tool_use.parallel'. There are no tools."


async def test_a_value_that_is_not_a_call_is_refused_before_tools_are_checked() -> None:
    with pytest.raises(OptionError, match="block"):
        await run_tool_call("look", [look])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# -- errors of tools: for the log, for the developer, for the model -----------------------------------------------


class NonExceptionError(BaseException):
    """Error that does not derive from Exception."""


async def test_an_exception_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    def fail(secret: str) -> str:
        raise OddError("the sea is closed")

    caplog.set_level(logging.DEBUG, "agentkit")
    result = await _run(fail, secret="s3cret")
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.WARNING, "agentkit.tools")
    assert record.getMessage() == "tool 'fail': raised OddError"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], OddError)
    assert "s3cret" not in caplog.text
    traceback = (result.metadata or {})["traceback"]
    assert "in fail" in traceback
    assert traceback.rstrip().endswith("OddError: the sea is closed")


@each_case("provider", MESSAGE_PROVIDERS)
async def test_a_traceback_never_reaches_a_provider(provider: str) -> None:
    def fail() -> str:
        raise OddError("the sea is closed")

    result = await _run(fail)
    msgs = [Msg("Bob", "go", "user"), Msg("a", [ToolUseBlock("call_1", "fail", {})], "assistant")]
    request = load_provider(provider).chat_formatter().lower([*msgs, Msg("tools", [result], "user")]).request
    assert "the sea is closed" in json.dumps(request)
    assert "raceback" not in json.dumps(request)


async def test_successful_calls_and_mistakes_of_the_model_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "agentkit")
    await _run(_some, place="the sea")
    assert (await _run(_some)).is_error
    assert caplog.records == []


async def test_a_result_that_cannot_be_sent_is_logged_with_its_type(caplog: pytest.LogCaptureFixture) -> None:
    def give() -> Any:
        return {"s3cret": object()}

    await _run(give)
    expected = "tool 'give': result of type dict cannot be sent (PydanticSerializationError)"
    assert [(record.levelname, record.message) for record in caplog.records] == [("WARNING", expected)]


async def test_a_result_that_loses_its_surrogates_is_logged_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def half() -> Any:
        return {"s3cret\ud800": [Weather("s3cret\udc00", 1.0), float("nan")]}

    caplog.set_level(logging.INFO, "agentkit")
    replaced = "s3cret\N{REPLACEMENT CHARACTER}"
    assert json.loads((await _run(half)).text)[replaced][0]["place"] == replaced
    assert "U+FFFD" in caplog.text
    assert "s3cret" not in caplog.text


async def test_an_error_text_has_a_bound() -> None:
    def fail() -> str:
        raise ValueError("head" + "x" * 1_000_000 + "tail")

    def many(numbers: list[int]) -> int:
        return sum(numbers)

    result = await _run(fail)
    assert len(result.text) < 5_000
    assert result.text.startswith("ValueError: head")
    assert result.text.endswith("tail")
    assert "characters) …" in result.text
    assert len((result.metadata or {})["traceback"]) < 25_000
    assert len((await _run(many, numbers=["x"] * 10_000)).text) < 5_000


async def test_a_long_error_text_has_4_000_of_its_characters_and_a_long_traceback_20_000() -> None:
    def fail() -> str:
        raise ValueError("x" * 100_000)

    result = await _run(fail)
    texts = result.text, (result.metadata or {})["traceback"]
    assert [len(re.sub(r" … \([0-9,]+ characters\) … ", "", text)) for text in texts] == [4_000, 20_000]


@each_case("is_async", [False, True])
async def test_the_text_of_an_exception_group_has_its_errors(is_async: bool) -> None:
    inner = ExceptionGroup("inner", [ValueError("one"), KeyError("two")])
    group = BaseExceptionGroup("outer", [inner, NonExceptionError("three")])

    def fail() -> str:
        raise group

    async def fail_later() -> str:
        raise group

    result = await _run(fail_later if is_async else fail)
    first, *lines = result.text.splitlines()
    assert first.startswith("BaseExceptionGroup: outer")
    assert lines == ["- ValueError: one", "- KeyError: 'two'", "- NonExceptionError: three"]


async def test_the_text_of_an_exception_group_has_at_most_20_of_its_errors() -> None:
    def fail(count: int) -> str:
        raise ExceptionGroup("many", [ValueError(number) for number in range(count)])

    for count in (19, 20, 21):
        _, *lines = (await _run(fail, count=count)).text.splitlines()
        assert lines == [f"- ValueError: {number}" for number in range(min(count, 20))]


@each_case("error", [NonExceptionError("x"), GeneratorExit(), SystemExit("x")])
@each_case("is_async", [False, True])
async def test_errors_that_are_no_exceptions_are_results(error: BaseException, is_async: bool) -> None:
    def fail() -> str:
        raise error

    async def fail_later() -> str:
        raise error

    result = await _run(fail_later if is_async else fail)
    assert result.is_error
    assert result.text.startswith(type(error).__name__)


@each_case("error", [KeyboardInterrupt(), BaseExceptionGroup("g", [KeyboardInterrupt()])])
@each_case("is_async", [False, True])
async def test_a_keyboard_interrupt_is_raised(error: BaseException, is_async: bool) -> None:
    def fail() -> str:
        raise error

    async def fail_later() -> str:
        raise error

    with pytest.raises(type(error)):
        await _run(fail_later if is_async else fail)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_cancellation_of_another_task_is_an_error_of_the_tools() -> None:
    async def wait() -> str:
        task = asyncio.ensure_future(asyncio.sleep(10))
        await asyncio.sleep(0)
        task.cancel()
        await task
        return "never"

    def raise_in_thread() -> str:
        raise asyncio.CancelledError

    for function in (wait, raise_in_thread):
        result = await _run(function)
        assert (result.is_error, result.text) == (True, "CancelledError")


def test_the_end_of_a_call_that_is_closed_without_an_event_loop_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @types.coroutine
    def pause() -> Generator[None, None, None]:
        yield

    async def wait() -> None:
        await pause()

    tool = Tool.from_function(wait)
    running = tool.run(_call(tool))
    running.send(None)
    running.close()
    assert caplog.records == []


async def test_an_error_whose_text_raises_system_exit_is_a_result() -> None:
    class WorstError(Exception):
        def __str__(self) -> str:
            raise SystemExit

    def fail() -> str:
        raise WorstError

    assert (await _run(fail)).text == "WorstError"


async def test_a_generator_without_end_is_an_error() -> None:
    def forever() -> Iterator[int]:
        while True:
            yield 1

    async def forever_later() -> AsyncIterator[int]:
        while True:
            yield 1

    for function in (forever, forever_later):
        result = await _run(function)
        assert result.is_error
        assert "more than 100000 items" in result.text


@each_case("is_async", [False, True])
@each_case(("count", "is_error"), [(3, False), (4, True)])
async def test_a_generator_has_no_more_items_than_the_limit(
    count: int, is_async: bool, *, is_error: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentkit.tools.execution.MAX_ITEMS", 3)

    def some() -> Iterator[int]:
        yield from range(count)

    async def some_later() -> AsyncIterator[int]:
        for number in range(count):
            yield number

    result = await _run(some_later if is_async else some)
    assert result.is_error is is_error
    assert is_error or result.output == "[0,1,2]"


class Later:
    """A callable object whose method is async."""

    async def __call__(self, text: str) -> list[str]:
        return [text]


@each_case("function", {"function": _async_list, "object": Later(), "partial": partial(_async_list)})
async def test_an_async_tool_does_not_wait_for_the_threads_of_other_tools(function: Any) -> None:
    threads = anyio.to_thread.current_default_thread_limiter()
    others = [object() for _ in range(int(threads.total_tokens))]
    for other in others:
        threads.acquire_on_behalf_of_nowait(other)
    try:
        with anyio.fail_after(5):
            result = await Tool("give", function=function).run(ToolUseBlock("c", "give", {"text": "a"}))
    finally:
        for other in others:
            threads.release_on_behalf_of(other)
    assert result.output == '["a"]'


class Cache:
    """A cache of a function that is an object, as in the package async_lru."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function)

    def cache_info(self) -> None:
        """Marks the object as a cache."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return cast("Any", self).__wrapped__(*args, **kwargs)


async def test_the_function_of_a_cache_object_describes_the_parameters() -> None:
    def double(number: int) -> int:
        return 2 * number

    assert (await _run(Cache(double), number="3")).output == "6"


async def test_a_generator_stops_when_its_call_is_canceled() -> None:
    started, stopped = threading.Event(), threading.Event()

    def forever() -> Iterator[int]:
        try:
            while True:
                started.set()
                yield 1
                time.sleep(0.001)
        finally:
            stopped.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_run, forever)
        assert await anyio.to_thread.run_sync(started.wait, 10)
        tasks.cancel_scope.cancel()
    assert tasks.cancel_scope.cancelled_caught
    assert await anyio.to_thread.run_sync(stopped.wait, 10)


async def test_odd_values_are_results_or_errors_of_their_call() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)

    def recurse() -> Any:
        return recurse()

    async def nested() -> Any:
        return _async_some("deep")

    for value in (cyclic, b"\xff", object, lambda: 1, threading.Lock(), Base64Source, Msg("a", "b", "user")):
        result = await Tool("give", function=partial(_identity, value)).run(ToolUseBlock("c", "give", {}))
        assert result.is_error, value
    assert (await _run(recurse)).text.startswith("RecursionError")
    assert (await _run(nested)).output == "deep"


def _identity(value: Any) -> Any:
    return value


async def _async_some(text: str) -> str:
    return text
