"""Choices among several tools, in the requests and the logs of each provider."""

from typing import Any, Final, Literal

import pytest

from agentkit import (
    MessageError,
    OpaqueState,
    OptionError,
    ThinkingBlock,
    Tool,
    ToolChoice,
    load_provider,
    load_request_options,
    prefix_digest,
)
from tests.cases import each_case
from tests.providers import PROVIDERS, assistant, call, problems, result, system, user

A: Final = Tool("a", "First.")
B: Final = Tool("b", "Second.")
C: Final = Tool("files.read", "Third.")  # a name that most APIs refuse
TOOLS: Final = [A, B, C]
BOTH: Final = ("a", "b")
Mode = Literal["auto", "required"]

NATIVE: Final[dict[tuple[str, Mode], dict[str, Any]]] = {
    ("openai", "required"): {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "required",
            "tools": [{"type": "function", "function": {"name": name}} for name in BOTH],
        },
    },
    ("openai", "auto"): {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "auto",
            "tools": [{"type": "function", "function": {"name": name}} for name in BOTH],
        },
    },
    ("openai-responses", "required"): {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": name} for name in BOTH],
    },
    ("openai-responses", "auto"): {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": name} for name in BOTH],
    },
    ("gemini", "required"): {"mode": "ANY", "allowed_function_names": ["a", "b"]},
    ("gemini", "auto"): {"mode": "VALIDATED", "allowed_function_names": ["a", "b"]},
}

# Provider, model, and the tool choice of a request that forces a call of an offered tool.
REDUCED: Final[list[tuple[str, str | None, object]]] = [
    ("anthropic", "claude-sonnet-4-5", {"type": "any"}),
    ("anthropic", None, None),
    ("ollama", None, None),
    ("dashscope", "qwen-plus", None),
    ("dashscope", None, None),
    ("dashscope-compatible", None, None),
    ("deepseek", None, None),
    ("deepseek", "deepseek-chat", "required"),
    ("vllm", None, "required"),
]


def _get_choice(request: dict[str, Any]) -> Any:
    config = request.get("config", {}).get("tool_config", {})
    return config.get("function_calling_config", request.get("tool_choice"))


def _list_names(request: dict[str, Any]) -> list[str]:
    declared = request.get("tools") or request["config"]["tools"][0]["function_declarations"]
    return [tool.get("function", tool)["name"] for tool in declared]


def _last_text(request: dict[str, Any]) -> str:
    return str(request["messages"][-1]["content"])


@each_case(("target", "choice"), NATIVE.items())
def test_a_choice_among_several_tools_is_sent_if_the_api_has_a_field_for_it(
    target: tuple[str, Mode], choice: dict[str, Any]
) -> None:
    provider, mode = target
    formatter = load_provider(provider).chat_formatter()
    plan = formatter.lower([user("Go.")], tools=TOOLS, tool_choice=ToolChoice(mode, names=BOTH))
    assert problems(provider, plan.request) == []
    assert _get_choice(plan.request) == choice
    assert len(_list_names(plan.request)) == 3
    assert plan.ledger.syntheses == []
    if mode == "required":
        listed = formatter.lower([user("Go.")], tools=TOOLS, tool_choice=["a", "b"])
        assert listed.request == plan.request


@each_case("choice", ["auto", "none", "required", "a"])
@each_case("provider", PROVIDERS)
def test_the_ledger_lists_each_choice_that_the_request_omits(provider: str, choice: str) -> None:
    plan = load_provider(provider).chat_formatter().lower([user("Go.")], tools=TOOLS, tool_choice=choice)
    is_sent = choice == "auto" or _get_choice(plan.request) is not None
    assert [synthesis.name for synthesis in plan.ledger.syntheses] == ([] if is_sent else ["tool choice"])


@each_case(("provider", "model", "forced"), REDUCED)
def test_without_a_field_only_the_chosen_tools_are_offered(
    provider: str, model: str | None, forced: object
) -> None:
    plan = load_provider(provider).chat_formatter(model).lower([user("Go.")], tools=TOOLS, tool_choice=["b", "a"])
    off: dict[str, Any] = {"extra_body": {"thinking": {"type": "disabled"}}}  # as that model is
    assert problems(provider, plan.request | (off if model == "deepseek-chat" else {})) == []
    assert _list_names(plan.request) == ["a", "b"]
    assert _get_choice(plan.request) == forced
    assert ("one of the tools b, a.)" in _last_text(plan.request)) is (forced is None)
    reasons = [synthesis.reason for synthesis in plan.ledger.syntheses if synthesis.name == "tool choice"]
    assert "cannot limit the choice to some of the tools, so the request declares only 'b', 'a'" in reasons[0]
    assert len(reasons) == (2 if forced is None else 1)


@each_case(("provider", "model"), [row[:2] for row in REDUCED])
def test_an_automatic_choice_among_some_tools_offers_only_these_tools(provider: str, model: str | None) -> None:
    choice = ToolChoice("auto", names=("a",))
    plan = load_provider(provider).chat_formatter(model).lower([user("Go.")], tools=TOOLS, tool_choice=choice)
    assert problems(provider, plan.request) == []
    assert _list_names(plan.request) == ["a"]
    assert _get_choice(plan.request) in ("auto", {"type": "auto"}, None)
    assert "(Answer by" not in _last_text(plan.request)
    assert [synthesis.name for synthesis in plan.ledger.syntheses] == ["tool choice"]


@each_case("names", [["a", "b", "files.read"], ("files.read", "b", "a")])
@each_case(("provider", "model"), [row[:2] for row in REDUCED])
def test_a_choice_among_all_tools_has_no_names(provider: str, model: str | None, names: list[str]) -> None:
    formatter = load_provider(provider).chat_formatter(model)
    plan = formatter.lower([user("Go.")], tools=TOOLS, tool_choice=names)
    assert plan.request == formatter.lower([user("Go.")], tools=TOOLS, tool_choice="required").request


@each_case(("provider", "model"), [row[:2] for row in REDUCED])
def test_a_list_with_a_single_name_is_a_forced_tool(provider: str, model: str | None) -> None:
    formatter = load_provider(provider).chat_formatter(model)
    plan = formatter.lower([user("Go.")], tools=TOOLS, tool_choice=["a"])
    assert plan.request == formatter.lower([user("Go.")], tools=TOOLS, tool_choice="a").request


@each_case(
    "provider", ["openai", "openai-responses", "gemini", "anthropic", "dashscope", "deepseek", "vllm", "ollama"]
)
def test_the_names_of_a_choice_are_rewritten_like_the_tool_names(provider: str) -> None:
    plan = (
        load_provider(provider).chat_formatter().lower([user("Go.")], tools=TOOLS, tool_choice=["files.read", "a"])
    )
    assert problems(provider, plan.request) == []
    sent = next((new for new, old in plan.tool_names.items() if old == "files.read"), "files.read")
    assert (
        sent in str(_get_choice(plan.request))
        or sent in _last_text(plan.request)
        or sent in _list_names(plan.request)
    )
    assert {sent, "a"} <= {*_list_names(plan.request)}


def test_thinking_that_is_bound_to_the_tools_is_not_sent_with_other_tools() -> None:
    formatter = load_provider("anthropic").chat_formatter("claude-opus-5-5")
    first = formatter.lower([user("Go.")], tools=TOOLS).request
    state = OpaqueState("anthropic", signature="c2ln", prefix=prefix_digest(first, formatter))
    msgs = [user("Go."), assistant(ThinkingBlock("Hm.", state), call("c1", "a")), system(result("c1", "A"))]
    plan = formatter.lower(msgs, tools=TOOLS)
    assert "signature" in str(plan.request)
    limited = formatter.lower(msgs, tools=TOOLS, tool_choice=ToolChoice("auto", names=("a",)))
    assert "signature" not in str(limited.request)
    assert (
        limited.ledger.entries[1].reason
        == "the API refuses this thinking because the tools or earlier messages changed"
    )


# -- choices of callers and logs ---------------------------------------------------------------------


@each_case(
    ("native", "expected"),
    [
        (["a", "b"], ToolChoice("required", names=BOTH)),
        (("a", "b", "a"), ToolChoice("required", names=BOTH)),
        ({"mode": "auto", "names": ["a"]}, ToolChoice("auto", names=("a",))),
        ({"names": ["a", "b"]}, ToolChoice("required", names=BOTH)),
        (NATIVE["openai", "auto"], ToolChoice("auto", names=BOTH)),
        (NATIVE["openai-responses", "required"], ToolChoice("required", names=BOTH)),
    ],
)
def test_several_names_are_loaded_from_every_api(native: Any, expected: ToolChoice) -> None:
    formatter = load_provider("openai").chat_formatter()
    named = formatter.lower([user("Go.")], tools=TOOLS, tool_choice=expected).request
    assert formatter.lower([user("Go.")], tools=TOOLS, tool_choice=native).request == named


@each_case(
    ("native", "reason"),
    [
        ([], "expected tool names"),
        (["a", 3], r"expected tool names \(str\), got \['a', 3\]"),
        (["a", "z"], "no tool has the name 'z'"),
        ({"mode": "none", "names": ["a"]}, "'none' cannot have a list of names"),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "x"}]},
            "expected tool names",
        ),
        ({"a", "b"}, "expected a tool choice"),
        (3, "expected a tool choice"),
    ],
)
def test_a_choice_among_no_tools_raises_an_error(native: Any, reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as caught:
        load_provider("openai").chat_formatter().lower([user("Go.")], tools=TOOLS, tool_choice=native)
    assert caught.value.place == "tool_choice"


@pytest.mark.parametrize("mode", ["none", "tool"])
def test_a_list_of_names_is_accepted_with_two_modes(mode: Any) -> None:
    with pytest.raises(MessageError, match="cannot have a list of names"):
        ToolChoice(mode, "a" if mode == "tool" else None, ("a",))


def _create_log(provider: str, choice: dict[str, Any]) -> dict[str, Any]:
    request = load_provider(provider).chat_formatter().lower([user("Go.")], tools=TOOLS[:2]).request
    if provider != "gemini":
        return {**request, "tool_choice": choice}
    return {**request, "config": {**request["config"], "tool_config": {"function_calling_config": choice}}}


@each_case(("target", "choice"), NATIVE.items())
def test_a_logged_choice_among_several_tools_is_restored_unchanged(
    target: tuple[str, Mode], choice: dict[str, Any]
) -> None:
    provider, mode = target
    asked = load_request_options(provider, _create_log(provider, choice))
    assert asked.get("tool_choice") == ToolChoice(mode, names=BOTH)
    again = load_provider(provider).chat_formatter().lower([user("Go.")], **asked).request
    assert _get_choice(again) == choice


@pytest.mark.parametrize(
    ("provider", "choice"),
    [
        ("gemini", {"mode": "ANY", "allowed_function_names": ["a"]}),
        ("gemini", {"mode": "VALIDATED", "allowed_function_names": ["b"]}),
        (
            "openai-responses",
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "b"}]},
        ),
        ("openai-responses", {"type": "function", "name": "a"}),
    ],
)
def test_a_logged_choice_of_a_single_tool_is_restored_unchanged(provider: str, choice: dict[str, Any]) -> None:
    again = (
        load_provider(provider)
        .chat_formatter()
        .lower([user("Go.")], **load_request_options(provider, _create_log(provider, choice)))
        .request
    )
    assert _get_choice(again) == choice


def _declare_tools(provider: str, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"functionDeclarations": tools}] if provider == "gemini" else tools


@pytest.mark.parametrize(
    ("provider", "choice", "expected"),
    [
        (
            "gemini",
            {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}}},
            BOTH,
        ),
        (
            "gemini",
            {"tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["a", "z"]}}},
            ("a",),
        ),
        (
            "openai-responses",
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "required",
                    "tools": [{"type": "function", "name": "b"}, {"type": "mcp", "server_label": "x"}],
                }
            },
            ("b",),
        ),
    ],
)
def test_a_logged_choice_contains_only_the_tools_that_can_be_loaded(
    provider: str, choice: dict[str, Any], expected: tuple[str, ...]
) -> None:
    tools = [{"name": "a", "parameters": {"type": "object"}}, {"name": "b", "parameters": {"type": "object"}}]
    asked = load_request_options(provider, {"tools": _declare_tools(provider, tools), **choice})
    assert asked.get("tool_choice") == ToolChoice("required", names=expected)


def test_a_logged_choice_of_missing_tools_is_none() -> None:
    tools = [{"name": "a", "parameters": {"type": "object"}}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "z"}]}
    assert "tool_choice" not in load_request_options("openai-responses", {"tools": tools, "tool_choice": choice})
