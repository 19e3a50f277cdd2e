"""Call ids and tool names of other providers: legal in the request, and restored in replies."""

from collections.abc import Iterator
from typing import Any, Final, cast

from agentkit import Tool
from tests.cases import each_case
from tests.providers import PROVIDERS, assistant, call, chat, problems, result, system, user

_LONG: Final = f"chatcmpl-tool-{'0123456789abcdef' * 3}"
IDS: Final = (
    "",
    "a b",
    "Bash:12",
    "functions.look:0",
    "call|1",
    "call:1",
    "张三",
    _LONG + "1",
    _LONG + "2",
    "y" * 130,
)
NAMES: Final = ("", "a.b", "a/b", "multi tool", "1look", "-x", "查找", "n" * 64, "n" * 100, "search")


def _calls(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the tool calls of a request, each as an object with a name and perhaps an id."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _calls(item)
    elif isinstance(value, dict):
        part = cast("dict[str, Any]", value)
        if part.get("type") in ("tool_use", "function_call"):
            yield {"id": part.get("call_id", part.get("id")), "name": part["name"]}
        elif "function_call" in part:
            yield part["function_call"]
        for call in part.get("tool_calls", ()):
            yield {"id": call["id"], "name": call["function"]["name"]}
        for key in ("messages", "contents", "input", "content", "parts"):
            yield from _calls(part.get(key))


@each_case("provider", PROVIDERS)
def test_an_illegal_call_id_is_replaced_in_call_and_result_and_restored_in_replies(provider: str) -> None:
    results = [result(call_id, f"{number}.") for number, call_id in enumerate(IDS)]
    plan = chat(provider).lower([user("Go."), assistant(*map(call, IDS)), system(*reversed(results))])
    assert problems(provider, plan.request) == []
    ids = [part["id"] for part in _calls(plan.request)]
    assert len({*ids}) == len(IDS)
    assert tuple(plan.call_ids.get(call_id, call_id) for call_id in ids) == IDS


@each_case("provider", PROVIDERS)
def test_an_illegal_tool_name_is_replaced_in_call_and_tool_and_restored_in_replies(provider: str) -> None:
    calls = [call(f"c{number}", name) for number, name in enumerate(NAMES)]
    results = [result(f"c{number}", "A", name=name) for number, name in enumerate(NAMES)]
    tools = [Tool(name) for name in NAMES if name]
    plan = chat(provider).lower([user("Go."), assistant(*calls), system(*results)], tools=tools)
    assert problems(provider, plan.request) == []
    names = [part["name"] for part in _calls(plan.request)]
    assert tuple(plan.tool_names.get(name, name) for name in names) == NAMES
    declared = plan.request.get("tools") or plan.request["config"]["tools"][0]["function_declarations"]
    assert [tool.get("function", tool)["name"] for tool in declared] == names[1:]
