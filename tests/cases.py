"""Tests that call a function with each of many cases, and name all cases that fail."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeAlias, cast

import pytest

__all__ = ["each_case"]

_Test: TypeAlias = Callable[..., Any]
_FAILURES = (Exception, pytest.fail.Exception)


def each_case(names: str | Sequence[str], cases: Mapping[str, Any] | Iterable[Any]) -> Callable[[_Test], _Test]:
    """Returns a decorator for a test of a rule with many small cases: a single test that checks every case.

    It can decorate a test together with `pytest.mark.parametrize`. Use only `parametrize` for cases that need
    their own fixtures or that take long.

    Args:
        names: A parameter of the test, or several.
        cases: The values of the parameter, or a tuple of values for several parameters. The keys of a mapping are
            the names of the cases in the error; otherwise the values are.

    Raises:
        ExceptionGroup: From the decorated test, with the error of each case that failed.
    """
    keys = [names] if isinstance(names, str) else [*names]
    if isinstance(cases, Mapping):
        pairs = [*cast("Mapping[str, Any]", cases).items()]
    else:
        pairs = [(_shorten(case), case) for case in cases]
    rows = [(label, _zip(keys, (case,) if isinstance(names, str) else case)) for label, case in pairs]

    def decorate(test: _Test) -> _Test:
        signature = inspect.signature(test)
        remaining = [item for name, item in signature.parameters.items() if name not in keys]
        if not rows or len(remaining) != len(signature.parameters) - len(keys):
            raise TypeError(f"each_case: {test.__name__} needs at least one case and the parameters {keys}.")
        outer = signature.replace(parameters=remaining)

        @wraps(test)
        def run(*values: Any, **named: Any) -> None:
            arguments = outer.bind(*values, **named).arguments
            errors: list[Exception] = []
            for label, case in rows:
                try:
                    test(**arguments, **case)
                except _FAILURES as error:
                    errors.append(_add_label(error, label))
            _raise(errors)

        @wraps(test)
        async def run_async(*values: Any, **named: Any) -> None:
            arguments = outer.bind(*values, **named).arguments
            errors: list[Exception] = []
            for label, case in rows:
                try:
                    await test(**arguments, **case)
                except _FAILURES as error:
                    errors.append(_add_label(error, label))
            _raise(errors)

        chosen: Any = run_async if inspect.iscoroutinefunction(test) else run
        chosen.__signature__ = outer
        return cast("_Test", chosen)

    def _raise(errors: list[Exception]) -> None:
        if errors:
            failed = ", ".join(error.__notes__[-1] for error in errors)
            raise ExceptionGroup(f"{len(errors)} of {len(rows)} cases failed: {failed}", errors)

    return decorate


def _zip(keys: Sequence[str], case: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(keys, case, strict=True))


def _shorten(case: object) -> str:
    text = repr(case)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _add_label(error: BaseException, label: str) -> Exception:
    if not isinstance(error, Exception):  # the error of `pytest.fail` and `pytest.raises`
        error = AssertionError(str(error)).with_traceback(error.__traceback__)
    error.add_note(label)
    return error
