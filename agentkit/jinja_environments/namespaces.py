"""`Namespace` and `RecordedNamespace`: classes for the function `namespace` of templates."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from jinja2.exceptions import SecurityError
from jinja2.utils import Namespace as JinjaNamespace

if TYPE_CHECKING:
    from agentkit.jinja_environments.trace_recorder import TraceRecorder

__all__ = ["MISSING", "Namespace", "RecordedNamespace", "current_recorder", "get_index", "list_attributes"]

MISSING: Final = object()
"""Value that stands for a missing attribute of a namespace or another object."""

current_recorder: Final[ContextVar[TraceRecorder]] = ContextVar("agentkit_trace_recorder")
"""Recorder of the current rendering."""

_get: Final[Any] = object.__getattribute__


class Namespace(JinjaNamespace):
    """Object whose attributes a template can set. As in transformers, no attribute name can start with `_`."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        # The first argument has no name, so that a template can set an attribute `self`.
        JinjaNamespace.__init__(args[0])
        for name, value in dict(*args[1:], **kwargs).items():
            Namespace.__setitem__(args[0], name, value)

    def __getattribute__(self, name: str) -> Any:
        try:
            return _get(self, "_Namespace__attrs")[name]
        except KeyError:
            return JinjaNamespace.__getattribute__(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise SecurityError(f"a namespace cannot have the attribute {name!r}, because the name starts with _")
        _get(self, "_Namespace__attrs")[name] = value

    def __repr__(self) -> str:
        return "<Namespace>"  # without the values, whose text could be long


class RecordedNamespace(Namespace):
    """Namespace of a recorded rendering. The recorder records each attribute that a template reads or sets."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        Namespace.__init__(*args, **kwargs)
        recorder = current_recorder.get()
        object.__setattr__(args[0], "_recorder", recorder)
        object.__setattr__(args[0], "_index", recorder.add_namespace(args[0]))

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            value = list_attributes(self).get(name, MISSING)
            _get(self, "_recorder").read_attribute(get_index(self), name, value)
            if value is not MISSING:
                return value
        return Namespace.__getattribute__(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        old = list_attributes(self).get(name, MISSING)
        Namespace.__setitem__(self, name, value)
        _get(self, "_recorder").write_attribute(get_index(self), name, old, value)


def list_attributes(namespace: JinjaNamespace) -> dict[str, Any]:
    """Returns the attributes of a namespace, without recording a read."""
    attributes: dict[str, Any] = _get(namespace, "_Namespace__attrs")
    return attributes


def get_index(namespace: RecordedNamespace) -> int | None:
    """Returns the index of a namespace in the list of its recorder. None if an iteration created the namespace."""
    index: int | None = _get(namespace, "_index")
    return index
