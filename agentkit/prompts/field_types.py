"""`Reasoning`, `Code`, `Citation` and `History`: types for the fields of a signature."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Final, Self, cast, overload

from pydantic import AliasChoices, ConfigDict, Field, GetCoreSchemaHandler
from pydantic.dataclasses import dataclass
from pydantic_core import CoreSchema, SchemaSerializer, core_schema

from agentkit.errors import OptionError
from agentkit.messages.blocks import TextBlock
from agentkit.messages.message import Msg
from agentkit.prompts.lenient_json import read_json, read_strict_json
from agentkit.reprs import describe_value, shorten_repr

__all__ = ["Citation", "Code", "History", "Reasoning", "read_citations"]


class Reasoning(str):
    """Text of the model's reasoning. Has all methods of a string.

    An output of this type can get its value from the thinking of a reply. pydantic accepts a string, or a dict
    `{"content": …}`.

    Args:
        content: The text.

    Example:
        >>> Reasoning("2 + 2 is 4").content
        '2 + 2 is 4'
    """

    __slots__ = ()

    def __new__(cls, content: str = "") -> Self:  # noqa: D102
        return str.__new__(cls, content)

    @property
    def content(self) -> str:
        """The text as a plain string."""
        return str(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _text_schema(cls._validate, str)

    @classmethod
    def _validate(cls, value: object) -> Self:
        return cls(_read_text(value, "content"))


def _read_text(value: object, key: str) -> str:
    """Returns a string unchanged. Returns the string in a dict whose only key is `key`.

    Raises:
        ValueError: The value is neither a string nor such a dict.
    """
    text = _unwrap(value, key)
    if not isinstance(text, str):
        raise ValueError(f'expected a string or {{"{key}": string}}')
    return text


def _unwrap(value: object, key: str) -> Any:
    """Returns the value of a dict whose only key is `key`. Returns any other value unchanged."""
    if not isinstance(value, Mapping):
        return value
    fields = cast("Mapping[object, Any]", value)
    return fields[key] if [*fields] == [key] else fields


def _text_schema(validate: Any, serialize: Any) -> CoreSchema:
    """Returns pydantic's schema of a string type that has its own functions for validation and serialization."""
    return core_schema.no_info_plain_validator_function(
        validate,
        json_schema_input_schema=core_schema.str_schema(),
        serialization=core_schema.plain_serializer_function_ser_schema(
            serialize, return_schema=core_schema.str_schema(), when_used="json"
        ),
    )


# -- code -----------------------------------------------------------------------------------------------------


class _CodeType(type):
    """Metaclass of `Code` that defines `Code["sql"]`, because type checkers ignore `__class_getitem__`."""

    def __getitem__(cls, language: str) -> type[Code]:
        if not isinstance(cast("object", language), str) or not _LANGUAGE.fullmatch(language):
            reason = f"expected the name of a programming language, got {shorten_repr(language, 60)}"
            raise OptionError("Code", reason, 'Pass a name without spaces or backticks, such as Code["sql"].')
        return _code_type(language)


class Code(str, metaclass=_CodeType):
    """Source code. Has all methods of a string.

    `Code["sql"]` is the type of SQL code. The name of this type is `Code_sql`. Type checkers do not accept
    `Code["sql"]` as an annotation. For type checkers, define a subclass: `class Sql(Code): language = "sql"`.

    pydantic accepts a string, or a dict `{"code": …}`. If the string contains a code block between two fences of
    backticks, the value is the content of the first block. Between fences of three backticks, white space around
    the code is removed, because models add it. Between longer fences, the code is not changed. The string may also
    be the JSON text of a string or of such a dict.

    Args:
        code: The code, without a fence.

    Attributes:
        language: Name of the language.

    Raises:
        OptionError: The language in `Code[…]` is not a string, is empty, or contains white space or a backtick.

    Example:
        >>> Code["sql"]("SELECT 1").language
        'sql'
    """

    language: ClassVar[str] = "python"
    __pydantic_serializer__: ClassVar[SchemaSerializer]

    def __new__(cls, code: str = "") -> Self:  # noqa: D102
        return str.__new__(cls, code)

    def __reduce__(self) -> tuple[object, ...]:
        """Returns the language and the code for pickle, which cannot import the type `Code["sql"]` by its name."""
        return (_restore_code, (None if type(self) is Code else self.language, str(self)))

    @property
    def code(self) -> str:
        """The code as a plain string."""
        return str(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _text_schema(cls._validate, _write_code)

    @classmethod
    def _validate(cls, value: object) -> Self:
        if isinstance(value, Code):
            return cls(value)
        text = _read_text(value, "code")
        return cls(_read_code(text) if isinstance(value, str) else text)


_LANGUAGE: Final = re.compile(r"[^\s`]+")
_FENCE: Final = re.compile("`{3,}")


@lru_cache(1_024)
def _code_type(language: str) -> type[Code]:
    return cast(
        "type[Code]", _CodeType(f"Code_{language}", (Code,), {"language": language, "__doc__": Code.__doc__})
    )


def _restore_code(language: str | None, code: str) -> Code:
    return Code(code) if language is None else _code_type(language)(code)


def _read_code(text: str) -> str:
    """Returns the code in a text: the first code block, the code in `{"code": …}`, or the complete text."""
    opening = _FENCE.search(text)
    closing = text.find(opening[0], opening.end()) if opening else -1
    if opening and closing >= 0:
        inside = text[opening.end() : closing]
        _, line_break, body = inside.partition("\n")
        if len(opening[0]) > 3:
            return body.removesuffix("\n") if line_break else inside
        text = (body if line_break else inside).strip()
    start = text.lstrip()[:1]
    value = read_json(text, text) if start == "{" else read_strict_json(text, text) if start == '"' else text
    try:
        return _read_text(value, "code")
    except ValueError:
        return text


def _write_code(code: str) -> str:
    """Returns the code unchanged, or between long fences if `_read_code` would otherwise change the code."""
    if code == code.strip() and _read_code(code) == code:
        return str(code)
    fence = "`" * max([4, *(len(run) + 1 for run in _FENCE.findall(code))])
    return f"{fence}{getattr(code, 'language', '')}\n{code}\n{fence}"


Code.__pydantic_serializer__ = SchemaSerializer(_text_schema(Code._validate, _write_code))  # pyright: ignore[reportPrivateUsage]


# -- citations ------------------------------------------------------------------------------------------------

_OPTIONS: Final = ConfigDict(extra="ignore", defer_build=True, populate_by_name=True)


def _aliases(*names: str) -> Any:
    return Field(default=None, validation_alias=AliasChoices(*names))


@dataclass(frozen=True, config=_OPTIONS)
class Citation:
    """Citation in a reply of any provider: a source that supports a part of the reply.

    Attributes:
        type: Kind of the citation, as the provider names it. Empty if unknown.
        cited_text: Quoted text of the source.
        supported_text: Part of the reply that the source supports.
        title: Title of the source.
        url: Address of the source.
        document_index: Index of the source among the documents of the request.
        start: Index of the first character of the citation. The provider decides whether the index refers to the
            source or to the reply.
        end: Index after the last character of the citation, in the same text.
    """

    type: str = ""
    cited_text: str = ""
    supported_text: str | None = None
    title: str | None = _aliases("title", "document_title")
    url: str | None = _aliases("url", "uri")
    document_index: int | None = None
    start: int | None = _aliases("start", "start_char_index", "start_index", "startIndex")
    end: int | None = _aliases("end", "end_char_index", "end_index", "endIndex")


def read_citations(msg: Msg) -> tuple[Citation, ...]:
    """Returns the citations of a reply in order. Invalid citations are omitted."""
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(Citation)
    citations: list[Citation] = []
    for block in msg.blocks:
        listed = (block.metadata or {}).get("citations") if isinstance(block, TextBlock) else None
        for item in cast("list[object]", listed) if isinstance(listed, list) else []:
            try:
                citations.append(adapter.validate_python(item))
            except ValidationError:
                continue
    return tuple(citations)


# -- history --------------------------------------------------------------------------------------------------


class History(Sequence[Mapping[str, Any]]):
    """Earlier turns of the same task, as DSPy stores them: one dict of field values (a row) for each turn.

    The object stores the rows unchanged. A pydantic field of this type also accepts an iterable of rows, or a dict
    `{"messages": …}`.

    Args:
        messages: The rows.

    Raises:
        OptionError: `messages` is not an iterable of dicts with field names.

    Example:
        >>> len(History([{"question": "2 + 2?", "answer": "4"}]))
        1
    """

    __slots__ = ("messages",)

    messages: tuple[Mapping[str, Any], ...]
    """The rows in order."""

    def __init__(self, messages: Iterable[Mapping[str, Any]] = ()) -> None:
        rows: object = messages
        if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
            reason = f"expected a list of dicts, got {describe_value(messages)}"
            raise OptionError("history", reason, "Pass one dict of field values for each earlier turn.")
        self.messages = tuple(messages)
        for index, row in enumerate(self.messages):
            if not _is_row(row):
                reason = f"expected a dict with field names, got {shorten_repr(row, 60)}"
                raise OptionError(f"history[{index}]", reason, "Pass a dict of field values.")

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> History: ...

    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | History:
        return History(self.messages[index]) if isinstance(index, slice) else self.messages[index]

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.messages)

    def __eq__(self, other: object) -> bool:
        return self.messages == other.messages if isinstance(other, History) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # a history is not hashable, because its rows are dicts

    def __repr__(self) -> str:
        return f"History({shorten_repr(list(self.messages))})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        rows = core_schema.list_schema(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            json_schema_input_schema=rows,
            serialization=core_schema.plain_serializer_function_ser_schema(lambda value: list(value.messages)),
        )

    @classmethod
    def _validate(cls, value: Any) -> History:
        rows = _unwrap(value, "messages")
        return rows if isinstance(rows, History) else cls(rows)


def _is_row(row: object) -> bool:
    return isinstance(row, Mapping) and all(isinstance(key, str) for key in cast("Mapping[object, object]", row))
