"""`AdapterEvent`: reports the start or end of `Adapter.format` or `Adapter.parse` to the function `observe`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import iscoroutinefunction, signature
from typing import Any, Literal, TypeAlias, TypeVar, cast
from uuid import uuid4

from agentkit.loggers import get_logger

__all__ = ["AdapterEvent", "Observer", "observe_step"]

_Step: TypeAlias = Literal["format", "parse"]


@dataclass(frozen=True)
class AdapterEvent:
    """Start or end of one step of an adapter: one call of `format` or `parse`.

    Attributes:
        step: `format`, which writes the messages of a request, or `parse`, which reads the outputs of a reply.
        phase: `start` or `end`.
        call_id: Id of the step. The start event and the end event of one step have the same id.
        inputs: Arguments of the step, by name.
        outputs: Result of the step. None in a start event, and if the step failed.
        error: Exception that the step raised. None in a start event, and if the step succeeded.
    """

    step: _Step
    phase: Literal["start", "end"]
    call_id: str
    inputs: Mapping[str, Any]
    outputs: Any = None
    error: BaseException | None = None


Observer: TypeAlias = Callable[[AdapterEvent], object]
"""Function that gets the events of an adapter. Its exceptions are logged, and the adapter continues."""

_ITERABLES = frozenset({"examples", "history", "tools"})
_Method = TypeVar("_Method", bound=Callable[..., Any])


def observe_step(step: _Step) -> Callable[[_Method], _Method]:
    """Returns a decorator that reports each call of an adapter method to the function `observe` of the adapter."""

    def decorate(method: _Method) -> _Method:
        parameters = signature(method)

        def read_arguments(*args: Any, **options: Any) -> dict[str, Any] | None:
            """Returns the arguments by name, or None if they do not fit the parameters. Iterators become lists."""
            try:
                arguments = parameters.bind(*args, **options).arguments
            except TypeError:
                return None
            return {
                name: [*value] if name in _ITERABLES and isinstance(value, Iterator) else value
                for name, value in arguments.items()
            }

        @wraps(method)
        def run(self: Any, *args: Any, **options: Any) -> Any:
            observe: Observer | None = self.observe
            inputs = None if observe is None else read_arguments(self, *args, **options)
            if observe is None or inputs is None:
                return method(self, *args, **options)
            with _report(observe, step, inputs) as outputs:
                outputs.append(method(**inputs))
            return outputs[0]

        @wraps(method)
        async def run_async(self: Any, *args: Any, **options: Any) -> Any:
            observe: Observer | None = self.observe
            inputs = None if observe is None else read_arguments(self, *args, **options)
            if observe is None or inputs is None:
                return await method(self, *args, **options)
            with _report(observe, step, inputs) as outputs:
                outputs.append(await method(**inputs))
            return outputs[0]

        return cast("_Method", run_async if iscoroutinefunction(method) else run)

    return decorate


@contextmanager
def _report(observe: Observer, step: _Step, inputs: Mapping[str, Any]) -> Generator[list[Any]]:
    """Reports the start and the end of a step. The `with` block appends the result to the yielded list."""
    call_id = uuid4().hex
    shown = {name: value for name, value in inputs.items() if name != "self"}
    outputs: list[Any] = []
    error: BaseException | None = None
    _send(observe, AdapterEvent(step, "start", call_id, shown))
    try:
        yield outputs
    except BaseException as raised:
        error = raised
        raise
    finally:
        result = outputs[0] if outputs else None
        _send(observe, AdapterEvent(step, "end", call_id, shown, result, error))


def _send(observe: Observer, event: AdapterEvent) -> None:
    try:
        observe(event)
    except Exception:
        get_logger("prompts").warning(
            "observe: the function raised an exception for %s %s", event.step, event.phase, exc_info=True
        )
