"""`Example`: inputs and outputs of a typed prompt, and functions that load and select examples."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from agentkit.argument_checks import check_int, check_option
from agentkit.errors import MessageError, MissingExtraError, OptionError
from agentkit.json_values import parse_json
from agentkit.messages.message import Msg
from agentkit.messages.validation import same_json
from agentkit.prompts.template_values import as_template_value, copy_values
from agentkit.reprs import as_one_line, bounded_repr, shorten_repr

__all__ = ["Completeness", "Example", "ReplyText", "load_examples", "select_examples"]

Completeness: TypeAlias = Literal["complete", "incomplete", "unusable"]
"""Degree to which an example has values for the fields of a signature (see `Example.classify`)."""


class ReplyText(str):
    """Complete text of a reply. An adapter writes the text unchanged.

    `load_examples` returns each text answer of Delphyne as a `ReplyText`. In contrast, an output of the class
    `str` is the value of one field.
    """

    __slots__ = ()


@dataclass(frozen=True, repr=False)
class Example:
    """Inputs of a typed prompt, and the outputs that the model should return for them.

    Attributes:
        inputs: Values of input fields, by name.
        outputs: Values of output fields, by name.
        mode: Mode of the outputs: a key of `PromptAdapter.modes`. None means that the outputs have no mode.
        tags: Words by which `select_examples` selects examples.
        note: Justification of the outputs. An adapter may write the note after the outputs.
    """

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    mode: str | None = None
    tags: tuple[str, ...] = ()
    note: str | None = None
    _messages: dict[object, tuple[Msg, ...]] = field(
        default_factory=dict[object, "tuple[Msg, ...]"], init=False, repr=False, compare=False
    )

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs"):
            values = getattr(self, name)
            check_option(f"Example.{name}", values, Mapping, "Pass a dict of values by field name.")
            for key in cast("Mapping[object, object]", values):
                check_option(f"Example.{name}", key, str, "Pass field names as strings.")
            object.__setattr__(self, name, copy_values(values, f"Example.{name}"))
        check_option("Example.mode", self.mode, str | None)
        check_option("Example.note", self.note, str | None)
        object.__setattr__(self, "tags", _check_names("Example.tags", self.tags))

    def cache_messages(self, key: object, create: Callable[[], Iterable[Msg]]) -> tuple[Msg, ...]:
        """Calls `create` and returns its messages. Another call with the same key returns the same `Msg` objects.

        A message caches results such as its token count, which are then not computed again. An example keeps the
        messages of at most 16 keys.
        """
        messages = self._messages.get(key)
        if messages is None:
            if len(self._messages) >= _MAX_MESSAGES:
                self._messages.clear()
            messages = self._messages[key] = tuple(create())
        return messages

    def classify(self, input_names: Collection[str], output_names: Collection[str]) -> Completeness:
        """Compares the example with the field names of a signature, by the rules of DSPy.

        Returns `complete` if the example has a value other than None for each field. Otherwise, returns
        `incomplete` if the example has at least one of the inputs and at least one of the outputs. Here, None
        counts as a value. In all other cases, returns `unusable`.
        """
        inputs, outputs = self.inputs, self.outputs
        if all(inputs.get(name) is not None for name in input_names) and all(
            outputs.get(name) is not None for name in output_names
        ):
            return "complete"
        has_both = any(name in inputs for name in input_names) and any(name in outputs for name in output_names)
        return "incomplete" if has_both else "unusable"


_MAX_MESSAGES: Final = 16


def _check_names(option: str, names: object) -> tuple[str, ...]:
    """Returns a name, or a collection of names, as a tuple of names."""
    if isinstance(names, str):
        return (names,)
    check_option(option, names, list | tuple | set | frozenset, "Pass a list of strings.")
    checked = tuple(cast("Iterable[str]", names))
    for name in checked:
        check_option(option, name, str, "Pass a list of strings.")
    return checked


# -- selection ------------------------------------------------------------------------------------------------


def select_examples(
    examples: Iterable[Example],
    *,
    tags: str | Collection[str] = (),
    count: int | None = None,
    seed: int | None = None,
    exclude: Mapping[str, Any] | Example | None = None,
) -> list[Example]:
    """Returns some of the examples, in their original order.

    Args:
        examples: Examples to select from.
        tags: Only examples with at least one of these tags are selected. If empty, all examples are selected.
        count: Maximum number of examples. None means that there is no maximum.
        seed: Seed of the random selection of `count` examples. The same seed selects the same examples. None means
            that the first examples are selected.
        exclude: Dict of inputs, or an `Example`. Examples with equal inputs are not selected.

    Raises:
        OptionError: An option is invalid, or an item of `examples` is not an Example.
    """
    candidates = list(examples)
    for index, example in enumerate(candidates):
        check_option(f"examples[{index}]", example, Example)
    tag_set = frozenset(_check_names("tags", tags))
    selected = [example for example in candidates if not tag_set or not tag_set.isdisjoint(example.tags)]
    if exclude is not None:
        selected = _exclude_equal(selected, exclude)
    if count is None:
        return selected
    check_int("count", count, 0)
    check_option("seed", seed, int | None)
    if seed is None or count >= len(selected):
        return selected[:count]
    indexes = random.Random(seed).sample(range(len(selected)), count)
    return [selected[index] for index in sorted(indexes)]


def _exclude_equal(examples: Iterable[Example], exclude: Mapping[str, Any] | Example) -> list[Example]:
    inputs = exclude.inputs if isinstance(exclude, Example) else exclude
    check_option("exclude", inputs, Mapping, "Pass an Example, or a dict of inputs.")
    # Values are compared as JSON: a pydantic model then equals the dict of its fields, and a tuple equals a list.
    excluded = as_template_value(inputs, "exclude")
    return [
        example for example in examples if not same_json(as_template_value(example.inputs, "examples"), excluded)
    ]


# -- loading --------------------------------------------------------------------------------------------------


def load_examples(
    path: str | Path, *, input_names: Collection[str] = (), query: str | None = None
) -> list[Example]:
    """Loads examples from a file of Delphyne or DSPy. The suffix of the file determines the format.

    - `.yaml` or `.yml`: demonstrations of Delphyne. The first answer of each query becomes an example, unless the
      answer has `example: false`. The output `answer` is a `ReplyText` for a text answer, and a JSON value for a
      structured answer. Tool calls become the output `tool_calls`, a list of dicts with the keys `name` and
      `args`. The justification becomes the note. Queries inside strategy demonstrations are included. The tests of
      a demonstration are ignored.
    - `.json`: a list of demos (examples of DSPy), or the saved state of a DSPy predictor or of a DSPy program with
      one predictor.
    - `.jsonl` or `.ndjson`: one demo of DSPy per line. Empty lines are ignored.

    Args:
        path: Path of the file.
        input_names: Names of the input fields. The other fields of a DSPy demo are outputs, except fields that
            DSPy adds to its demos.
        query: Name of the queries to load from a file of Delphyne. None means all queries.

    Raises:
        OptionError: The file cannot be read, its suffix is unknown, or `input_names` is empty for a file of DSPy.
        MessageError: The text is not YAML or JSON, or a row is invalid. For an invalid row, the error names the
            file and the index or line of the row.
        MissingExtraError: The file is YAML, and the package pyyaml is not installed.
    """
    check_option("path", path, str | Path, "Pass the path of a file.")
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return list(_read_demonstrations(_parse_yaml(_read_file(file), file.name), file.name, query))
    if suffix not in (".json", ".jsonl", ".ndjson"):
        reason = f"the suffix of {file.name!r} is unknown"
        raise OptionError("path", reason, "Pass a file with the suffix .yaml, .json or .jsonl.")
    names = _check_names("input_names", input_names)
    if not names:
        reason = "expected at least one name, got none; a demo of DSPy does not say which fields are inputs"
        raise OptionError("input_names", reason, "Pass the names of the input fields.")
    read = _read_json_rows if suffix == ".json" else _read_json_lines
    return [_read_row(row, place, names) for place, row in read(_read_file(file), file.name)]


def _read_file(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot read {str(file)!r} ({error})"
        raise OptionError("path", reason, "Pass the path of a file with UTF-8 text.") from None


# -- files of DSPy --------------------------------------------------------------------------------------------

_BOOKKEEPING: Final = "dspy_"  # prefix of the fields that DSPy adds to the rows of a data set


def _read_json_rows(text: str, file: str) -> Iterator[tuple[str, object]]:
    """Yields the place and the content of each row of a JSON file."""
    content = _parse_json_text(text, file)
    place = file
    if isinstance(content, dict):
        place, content = _find_demos(cast("dict[str, Any]", content), file)
    if not isinstance(content, list):
        raise _row_error(place, "expected a list of demos", content)
    for index, row in enumerate(cast("list[object]", content)):
        yield f"{place}[{index}]", row


def _find_demos(state: dict[str, Any], file: str) -> tuple[str, object]:
    """Returns the place and the demos in the saved state of a predictor or of a program with one predictor."""
    if "demos" in state:
        return f"{file}.demos", state["demos"]
    items = [(name, cast("dict[str, Any]", item)) for name, item in state.items() if isinstance(item, dict)]
    predictors = [(name, item["demos"]) for name, item in items if "demos" in item]
    if len(predictors) != 1:
        reason = f"expected the demos of one predictor, got {len(predictors)} predictors"
        raise MessageError(file, reason, "Save the demos of one predictor as a list.")
    name, demos = predictors[0]
    return f"{file}.{name}.demos", demos


def _read_json_lines(text: str, file: str) -> Iterator[tuple[str, object]]:
    """Yields the place and the content of each row of a file with one JSON value per line."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{file}, line {number}"
            yield place, _parse_json_text(line, place)


def _parse_json_text(text: str, place: str) -> object:
    try:
        return parse_json(text)
    except MessageError as error:
        raise MessageError(place, error.reason, "Fix the file.") from None


def _read_row(row: object, place: str, input_names: Collection[str]) -> Example:
    if not isinstance(row, dict):
        raise _row_error(place, "expected a JSON object", row)
    fields = {
        name: value
        for name, value in cast("dict[str, Any]", row).items()
        # DSPy's optimizers add the field `augmented` to the demos that they create.
        if not name.startswith(_BOOKKEEPING) and not (name == "augmented" and value is True)
    }
    inputs = {name: value for name, value in fields.items() if name in input_names}
    return Example(inputs, {name: value for name, value in fields.items() if name not in input_names})


def _row_error(place: str, expected: str, value: object) -> MessageError:
    return MessageError(place, f"{expected}, got {shorten_repr(value, 60)}", "Fix the file.")


# -- files of Delphyne ----------------------------------------------------------------------------------------


def _parse_yaml(text: str, file: str) -> object:
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("pyyaml", "prompts", "Loading examples") from None
    try:
        return as_template_value(yaml.safe_load(text), file)  # dates in the YAML become strings
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise MessageError(file, f"invalid YAML ({as_one_line(str(error))})", "Fix the file.") from None


def _read_demonstrations(content: object, place: str, query: str | None) -> Iterator[Example]:
    """Yields the example of each query demonstration, including those inside strategy demonstrations."""
    for index, item in enumerate(_check_list(content, place)):
        item_place = f"{place}[{index}]"
        demonstration = _check_dict(item, item_place)
        if "strategy" in demonstration:
            yield from _read_demonstrations(demonstration.get("queries"), f"{item_place}.queries", query)
        elif query is None or demonstration.get("query") == query:
            yield from _read_query(demonstration, item_place)


def _read_query(demonstration: dict[str, Any], place: str) -> Iterator[Example]:
    if not isinstance(demonstration.get("query"), str):
        raise _row_error(f"{place}.query", "expected the name of a query", demonstration.get("query"))
    inputs = _check_dict(demonstration.get("args"), f"{place}.args")
    answers = _check_list(demonstration.get("answers"), f"{place}.answers")
    if answers:
        answer = _check_dict(answers[0], f"{place}.answers[0]")
        if answer.get("example") is not False:
            yield _read_answer(inputs, answer, f"{place}.answers[0]")


def _read_answer(inputs: dict[str, Any], answer: dict[str, Any], place: str) -> Example:
    outputs: dict[str, Any] = {}
    if "answer" in answer:
        value = answer["answer"]
        is_text = isinstance(value, str) and answer.get("structured") is not True
        outputs["answer"] = ReplyText(value) if is_text else value
    calls = _check_list(answer.get("call") or [], f"{place}.call")
    if calls:
        outputs["tool_calls"] = [_read_call(call, f"{place}.call[{index}]") for index, call in enumerate(calls)]
    if not outputs:
        raise _row_error(f"{place}.answer", "expected an answer or a tool call", None)
    try:
        tags = _check_names("Example.tags", answer.get("tags") or ())
        return Example(inputs, outputs, answer.get("mode"), tags, answer.get("justification"))
    except OptionError as error:
        raise MessageError(place, f"invalid {error.place} ({error.reason})", "Fix the file.") from None


def _read_call(value: object, place: str) -> dict[str, Any]:
    call = _check_dict(value, place)
    if not isinstance(call.get("tool"), str):
        raise _row_error(f"{place}.tool", "expected the name of a tool", call.get("tool"))
    return {"name": call["tool"], "args": _check_dict(call.get("args") or {}, f"{place}.args")}


def _check_list(value: object, place: str) -> list[object]:
    if not isinstance(value, list):
        raise _row_error(place, "expected a list", value)
    return cast("list[object]", value)


def _check_dict(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _row_error(place, "expected a mapping", value)
    return cast("dict[str, Any]", value)
