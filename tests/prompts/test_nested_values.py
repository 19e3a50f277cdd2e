"""Values and replies that are nested too deeply are errors of agentkit, and never a RecursionError."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from agentkit import OptionError, ParseError
from agentkit.prompts import (
    ChatAdapter,
    Example,
    Feedback,
    InputField,
    JSONAdapter,
    OutputField,
    PromptAdapter,
    Signature,
    XMLAdapter,
    parsers,
)
from agentkit.prompts.adapter import Adapter
from agentkit.prompts.xml_values import write_tags
from tests.cases import each_case


class Sort(Signature):
    """Sort the tree."""

    tree: Any = InputField()
    sorted_tree: dict[str, Any] = OutputField()


class SortList(Signature):
    """Sort the list."""

    tree: Any = InputField()
    sorted_tree: list[Any] = OutputField()


DEPTHS: Final = [300, 600, 20_000]


def nest(depth: int, key: str | None = None) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if key is None else {key: value}
    return value


CREATE: Final[dict[str, Callable[[Any], object]]] = {
    "Example.inputs.tree": lambda value: Example({"tree": value}, {}),
    "Example.outputs.sorted_tree": lambda value: Example({}, {"sorted_tree": value}),
    "Feedback.meta.tree": lambda value: Feedback("error", meta={"tree": value}),
    "params.tree": lambda value: PromptAdapter(params={"tree": value}),
}


@pytest.mark.parametrize("place", CREATE)
@each_case("key", [None, "a"])
@each_case("depth", [2_000, 20_000])
def test_a_value_that_is_nested_too_deeply_is_refused_with_its_place(
    place: str, key: str | None, depth: int
) -> None:
    with pytest.raises(OptionError, match="nested too deeply") as caught:
        CREATE[place](nest(depth, key))
    assert caught.value.place == place


def test_a_value_that_contains_itself_is_refused_with_its_place() -> None:
    tree: list[Any] = []
    tree.append(tree)
    with pytest.raises(OptionError, match="Pass a value with fewer levels and without references to itself"):
        Example({"tree": tree}, {})


@each_case("is_bound", [False, True])
@each_case("key", [None, "a"])
@each_case("depth", DEPTHS)
def test_an_input_of_a_template_that_is_nested_too_deeply_is_refused_with_its_place(
    depth: int, key: str | None, is_bound: bool
) -> None:
    value = nest(depth, key)
    inputs = Sort(tree=value) if is_bound else {"tree": value}
    with pytest.raises(OptionError, match="nested more than 100 levels deep") as caught:
        PromptAdapter().format(Sort, inputs)
    assert caught.value.place.startswith("variables.query.tree")
    assert len(caught.value.place) < 250


REPLIES: Final[list[tuple[Adapter, str]]] = [
    (ChatAdapter(), "[[ ## sorted_tree ## ]]\n{}\n\n[[ ## completed ## ]]"),
    (JSONAdapter(), '{{"sorted_tree": {}}}'),
    (XMLAdapter(), "<sorted_tree>\n{}\n</sorted_tree>"),
    (PromptAdapter(), "{}"),
    (PromptAdapter(parser=parsers.last_code_block), "```\n{}\n```"),
]


@pytest.mark.parametrize(("adapter", "reply"), REPLIES)
@each_case(("signature", "brackets"), [(SortList, "[]"), (Sort, '{"a":}')])
@each_case("depth", DEPTHS)
def test_json_in_a_reply_that_is_nested_too_deeply_is_a_parse_error(
    adapter: Adapter, reply: str, signature: type[Signature], brackets: str, depth: int
) -> None:
    text = f"{brackets[:-1] * depth}1{brackets[-1] * depth}"
    with pytest.raises(ParseError):
        adapter.parse(signature, reply.format(text))


@each_case("depth", [600, 20_000])
def test_yaml_in_a_reply_that_is_nested_too_deeply_is_a_parse_error(depth: int) -> None:
    with pytest.raises(ParseError, match="nested too deeply"):
        parsers.yaml.as_type(list[Any]).parse("[\n" * depth + "1" + "]" * depth)


@each_case("key", ["a", "a b"])
@each_case("depth", [99, 100, 101, 190])
def test_an_output_in_an_example_for_xml_is_written_so_that_it_is_read_again(depth: int, key: str) -> None:
    value = nest(depth, key)
    reply = XMLAdapter().format(Sort, {"tree": 1}, examples=[Example({"tree": 1}, {"sorted_tree": value})])[2]
    assert XMLAdapter().parse(Sort, reply)["sorted_tree"] == value


def test_tags_inside_of_100_other_tags_are_not_written() -> None:
    tags = write_tags(nest(250, "a"), "tree")
    assert tags.count("<a>") == 100
    assert json.dumps(nest(150, "a")).replace('"', "'") in tags


@pytest.mark.parametrize("adapter", [ChatAdapter(), JSONAdapter(), XMLAdapter()])
@each_case("key", [None, "a"])
@each_case("depth", DEPTHS)
def test_an_input_that_is_nested_too_deeply_is_refused(adapter: Adapter, depth: int, key: str | None) -> None:
    value = nest(depth, key)
    for inputs in ({"tree": value}, Sort(tree=value)):
        with pytest.raises(OptionError, match="nested too deeply"):
            adapter.format(Sort, inputs)


@each_case("adapter", [ChatAdapter(), JSONAdapter(), XMLAdapter(), PromptAdapter()])
@each_case("key", [None, "a"])
def test_an_output_in_an_example_that_is_nested_too_deeply_is_refused(adapter: Adapter, key: str | None) -> None:
    example = Example({"tree": 1}, {"sorted_tree": nest(300, key)})
    with pytest.raises(OptionError, match="nested too deeply"):
        adapter.format(Sort, {"tree": 1}, examples=[example])
