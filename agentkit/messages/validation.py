"""How a value class is made: a frozen, slotted pydantic dataclass that refuses bad input by name and place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, field
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, cast, dataclass_transform

from pydantic import AfterValidator, ConfigDict, JsonValue, Strict, ValidationError
from pydantic.dataclasses import dataclass
from pydantic_core import ErrorDetails, to_json

from agentkit.errors import MessageError
from agentkit.reprs import bounded_repr, shorten

__all__ = [
    "Checked",
    "Json",
    "JsonObject",
    "Text",
    "Unwritten",
    "same_json",
    "to_message_error",
    "validated_dataclass",
]

_Class = TypeVar("_Class", bound=type[Any])

# A schema is built when a class is first used: importing all of them and using few should cost few.
_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)


def _encodable(text: str) -> str:
    """Refuse lone surrogates: no wire can carry them, and they surface as an encoding error in the SDK."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"has a lone surrogate at character {error.start}") from None
    return text


Text = Annotated[str, Strict(), AfterValidator(_encodable)]
"""A string that UTF-8 can carry."""


def _writable(found: Any) -> Any:
    """Refuse what JSON text cannot say: a lone surrogate somewhere inside."""
    try:
        to_json(found)
    except ValueError as error:
        raise ValueError(f"cannot be written as JSON: {error}") from None
    return found


if TYPE_CHECKING:
    Json: TypeAlias = Any
    JsonObject: TypeAlias = dict[str, Any]
    Unwritten: TypeAlias = dict[str, Any]
else:
    Json = Annotated[JsonValue, AfterValidator(_writable)]
    JsonObject = Annotated[dict[str, JsonValue], AfterValidator(_writable)]
    Unwritten = dict[str, JsonValue]
"""Any JSON value, a JSON object, and one whose class writes it out by itself and so sees to its strings.

Checking one copies its containers: a value shares none with its caller.
"""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def validated_dataclass(cls: _Class) -> _Class:
    """Make `cls` a frozen, slotted pydantic dataclass whose repr is bounded."""
    cast("Any", cls).__repr__ = bounded_repr
    return dataclass(frozen=True, slots=True, repr=False, config=_CONFIG)(cls)  # type: ignore[return-value]


if TYPE_CHECKING:
    Checked = type
else:

    class Checked(type):
        """The metaclass of value classes: what pydantic refuses is a MessageError that names the place.

        Not a wrapper around `__init__`: pydantic sets that anew when it builds the schema.
        """

        @property
        def __signature__(cls) -> Signature:
            """What the constructor takes, without the slots that it fills by itself."""
            fields = [one for one in cls.__dataclass_fields__.values() if one.init]
            return Signature([_parameter(one) for one in sorted(fields, key=lambda one: one.kw_only)])

        @__signature__.setter
        def __signature__(cls, made: Signature) -> None:
            """Pydantic's own is passed over."""

        def __call__(cls, *args: object, **kwargs: object) -> object:  # noqa: D102
            try:
                return type.__call__(cls, *args, **kwargs)
            except ValidationError as error:
                known = cls.__dataclass_fields__.items()
                positional = [name for name, one in known if one.init and not one.kw_only]
                convert = getattr(cls, "_convert_refused", None)  # costs nothing where nothing is refused
                values = convert and convert({**dict(zip(positional, args, strict=False)), **kwargs})
                if values:
                    return cls(**values)
                raise to_message_error(cls.__name__, error, positional) from None


def _parameter(known: Field[Any]) -> Parameter:
    kind = Parameter.KEYWORD_ONLY if known.kw_only else Parameter.POSITIONAL_OR_KEYWORD
    given = known.default if known.default is not MISSING else ... if callable(known.default_factory) else None
    required = known.default is MISSING and not callable(known.default_factory)
    return Parameter(known.name, kind, default=Parameter.empty if required else given)


def to_message_error(name: str, error: ValidationError, positional: list[str]) -> MessageError:
    """The fault that pydantic found, said in our words: `Msg.content[1].text`."""
    # A union reports every branch. The branch that got furthest is the one the caller meant.
    fault = max(error.errors(include_url=False), key=lambda detail: len(detail["loc"]))
    path = shorten(name + "".join(_steps(fault["loc"], positional)), _LONGEST_PLACE)
    cause = fault.get("ctx", {}).get("error")
    if isinstance(cause, MessageError):
        return cause.within(path)
    return MessageError(path, _reason(fault), "Correct the value there.")


def _reason(fault: ErrorDetails) -> str:
    given = fault["input"]
    try:
        shown = repr(given)
    except (RecursionError, ValueError):  # nested too deeply, or a number of too many digits
        shown = "too large to show"
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    shown = "nothing" if fault["type"] == "missing" else f"{type(given).__name__} {shown}"
    return f"{shorten(fault['msg'].removeprefix('Value error, '), _LONGEST_REASON)} (got {shown})"


_LONGEST_PLACE, _LONGEST_REASON = 200, 400  # characters: both may have names and values of the caller's data


def _steps(loc: tuple[int | str, ...], positional: list[str]) -> Iterator[str]:
    """The location without pydantic's own labels for union branches; a leading index is an argument."""
    before: int | str = ""
    for depth, step in enumerate(loc):
        if isinstance(step, int):
            yield f".{positional[step]}" if depth == 0 and step < len(positional) else f"[{step}]"
        elif step.isidentifier() and not _is_label(before, step):
            yield f".{step}"
        before = step


def _is_label(before: int | str, step: str) -> bool:
    """Whether `step` is a union's tag (behind an item or a source), or a branch's type."""
    tagged = isinstance(before, int) or before == "source"
    return step in _BRANCHES or (tagged and step in _TAGS)


_BRANCHES = frozenset({"str", "float", "int", "bool", "list", "dict", "nullable"})
_TAGS = frozenset(
    [
        "text",
        "thinking",
        "tool_use",
        "tool_result",
        "image",
        "audio",
        "video",
        "document",
        "invalid",
        "opaque",
        "url",
        "base64",
    ]
)


def same_json(found: Any, expected: Any) -> bool:
    """Returns True if two JSON values differ at most in the order of keys: `1` is neither `1.0` nor `true`."""
    if isinstance(found, dict):
        pairs = cast("dict[str, Any]", found).items()
        if not isinstance(expected, dict) or found.keys() != cast("dict[str, Any]", expected).keys():
            return False
        return all(same_json(item, expected[key]) for key, item in pairs)
    if isinstance(found, list):
        items = cast("list[Any]", found)
        if not isinstance(expected, list) or len(items) != len(cast("list[Any]", expected)):
            return False
        return all(same_json(*pair) for pair in zip(items, cast("list[Any]", expected), strict=True))
    return bool(found == expected) and _number_type(found) is _number_type(expected)


def _number_type(found: Any) -> type | None:
    return next((kind for kind in (bool, int, float) if isinstance(found, kind)), None)
