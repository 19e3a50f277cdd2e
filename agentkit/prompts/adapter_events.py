"""`AdapterEvent`: reports the start or end of `Adapter.format` or `Adapter.parse` to the function `observe`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import iscoroutinefunction, isfunction
from typing import Any, Final, Literal, TypeAlias
from uuid import uuid4

from agentkit.loggers import get_logger

__all__ = ["AdapterEvent", "ObservedSteps", "Observer"]

_Step: TypeAlias = Literal["format", "parse"]


@dataclass(frozen=True)
class AdapterEvent:
    """Start or end of one step of an adapter: one call of `format`, `parse` or `extract`.

    Attributes:
        step: `format`, which writes the messages of a request, or `parse`, which reads the outputs of a reply. A
            call of `TwoStepAdapter.extract` is also a `parse` step.
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
"""Function that receives the events of an adapter. The adapter logs exceptions of the function, and continues."""


class ObservedSteps:
    """Base class of adapters. Reports the calls of `format`, `parse` and `extract` to the function `observe`.

    Each call has one start event and one end event, even if a subclass overrides the method. If the method of the
    subclass calls the method of its base class, the inner call has no events.

    Attributes:
        observe: See `Adapter`.
    """

    observe: Observer | None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, step in _STEPS.items():
            owner = next((base for base in cls.__mro__ if name in vars(base)), None)
            # A method that another adapter class defines already reports its calls.
            # A mixin need not be an adapter class. A method of such a mixin does not report its calls yet.
            if owner is cls or not (owner is None or issubclass(owner, ObservedSteps)):
                method = vars(owner)[name]
                if isfunction(method):
                    setattr(cls, name, _observe(method, name, step))


_STEPS: Final[Mapping[str, _Step]] = {"format": "format", "parse": "parse", "extract": "parse"}
"""Mapping from the name of each observed method to the step that its calls report."""

_POSITIONAL: Final = {"format": ("signature", "inputs"), "parse": ("signature", "reply")}
"""Names of the positional arguments of each step."""


def _observe(method: Callable[..., Any], name: str, step: _Step) -> Callable[..., Any]:
    """Returns an adapter method that reports its calls. A call through `super()` is part of the outer call."""

    @wraps(method)
    def run(self: ObservedSteps, *args: Any, **options: Any) -> Any:
        if self.observe is None or getattr(type(self), name) is not run:
            return method(self, *args, **options)
        options = {option: [*value] if isinstance(value, Iterator) else value for option, value in options.items()}
        with _report(self.observe, step, args, options) as outputs:
            outputs.append(method(self, *args, **options))
        return outputs[0]

    @wraps(method)
    async def run_async(self: ObservedSteps, *args: Any, **options: Any) -> Any:
        if self.observe is None or getattr(type(self), name) is not run_async:
            return await method(self, *args, **options)
        with _report(self.observe, step, args, options) as outputs:
            outputs.append(await method(self, *args, **options))
        return outputs[0]

    return run_async if iscoroutinefunction(method) else run


@contextmanager
def _report(
    observe: Observer, step: _Step, args: tuple[Any, ...], options: Mapping[str, Any]
) -> Generator[list[Any]]:
    """Reports the start and the end of a step. The `with` block appends the result to the yielded list."""
    call_id = uuid4().hex
    inputs = {**dict(zip(_POSITIONAL[step], args, strict=False)), **options}
    outputs: list[Any] = []
    error: BaseException | None = None
    _send(observe, AdapterEvent(step, "start", call_id, inputs))
    try:
        yield outputs
    except BaseException as raised:
        error = raised
        raise
    finally:
        result = outputs[0] if outputs else None
        _send(observe, AdapterEvent(step, "end", call_id, inputs, result, error))


def _send(observe: Observer, event: AdapterEvent) -> None:
    try:
        observe(event)
    except Exception:
        get_logger("prompts").warning(
            "observe: the function raised an exception at the %s of %s", event.phase, event.step, exc_info=True
        )
