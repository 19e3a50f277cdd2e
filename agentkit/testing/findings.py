"""Collects the findings of provider checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

__all__ = ["collect_findings", "describe_error"]


def collect_findings(place: str, findings: Iterable[str]) -> Iterator[str]:
    """Yields each finding as "PLACE: FINDING". Also yields an exception of the checked code as a finding."""
    try:
        for finding in findings:
            yield f"{place}: {finding}"
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        yield f"{place}: raises {describe_error(error)}"


def describe_error(error: BaseException) -> str:
    """Returns the class name and the text of an exception."""
    try:
        sentence = str(error)
    except Exception:
        sentence = "the method `__str__` of the exception raises an exception"
    return f"{type(error).__name__}: {sentence[:500]}"
