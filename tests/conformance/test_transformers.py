"""Chat templates: the text and the spans equal those of transformers for each template of trl.

The environment variable AGENTKIT_TRAINING names the interpreter of an environment in which trl is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple

import pytest

from agentkit import TemplateError
from agentkit.chat_templates import ChatTemplate
from agentkit.chat_templates.builtin_templates import BUILTIN_NAMES
from agentkit.jinja_environments.chat_rendering import ChatVariables, render_chat
from tests.conformance.training_packages import find_package

TOKENS: Final = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather in <b>a</b> city, été.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "City."}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
CALL: Final[dict[str, Any]] = {
    "id": "abcdef123",
    "type": "function",
    "function": {"name": "get_weather", "arguments": {"city": "Paris"}},
}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def reply(content: Any, **others: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **others}


def result(content: str) -> dict[str, Any]:
    return {"role": "tool", "name": "get_weather", "tool_call_id": "abcdef123", "content": content}


CONVERSATIONS: Final[dict[str, list[dict[str, Any]]]] = {
    "plain": [user("hi"), reply("hello ")],
    "system": [{"role": "system", "content": " be nice "}, user("hi"), reply("hello"), user("again <&>")],
    "tools": [user("w?"), reply("", tool_calls=[CALL]), result("sunny"), reply("Sunny")],
    "two calls": [user("w?"), reply("Two.", tool_calls=[CALL, CALL]), result("sunny"), result("rain")],
    "thinking": [user("q"), reply("a", reasoning_content="hmm"), user("q2"), reply("b", reasoning="hmm2")],
    "parts": [
        user([{"type": "text", "text": "look"}, {"type": "image"}]),
        reply([{"type": "text", "text": "ok"}]),
    ],
    "null": [user("w"), reply(None, tool_calls=[CALL])],
    "two users": [user("a"), user("b")],
}


class Outcome(NamedTuple):
    """Text and spans of a rendering, or the name of the error."""

    text: str = ""
    spans: tuple[tuple[int, int], ...] = ()
    error: str = ""


@cache
def templates() -> dict[str, str]:
    folder = find_package("trl") / "chat_templates"
    found = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.jinja"))}
    assert len(found) >= 72
    return {**found, **{name: ChatTemplate.builtin(name).jinja or "" for name in BUILTIN_NAMES}}


def render_with_transformers(source: str, chat: ChatVariables) -> Outcome:
    from transformers.utils import chat_template_utils as utils

    tools: Any = utils
    normalized = tools._normalize_chat_messages(chat.messages)
    try:
        texts, spans = tools.render_jinja_template(
            [normalized],
            tools=chat.tools,
            chat_template=source,
            add_generation_prompt=chat.add_generation_prompt,
            return_assistant_tokens_mask=True,
            **chat.others,
        )
    except Exception as error:
        return Outcome(error=type(error).__name__)
    return Outcome(texts[0], tuple(spans[0]))


def render_with_agentkit(source: str, chat: ChatVariables) -> Outcome:
    try:
        rendering = render_chat(source, chat)
    except TemplateError as error:
        return Outcome(error=type(error.__cause__).__name__)
    return Outcome(rendering.text, rendering.spans)


def list_variables(name: str) -> Iterator[ChatVariables]:
    thinking = (None, True, False) if name == "thinking" else (None,)
    for tools, prompt, enabled in product((None, [TOOL]), (False, True), thinking):
        others = TOKENS if enabled is None else {**TOKENS, "enable_thinking": enabled}
        yield ChatVariables(CONVERSATIONS[name], tools, None, prompt, others)


_ERRORS: Final = {"TemplateRuntimeError": "TemplateError"}
"""Names of errors in agentkit, and in transformers: `raise_exception` raises another subclass of jinja's error."""


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_the_text_and_the_spans_are_those_of_transformers(name: str) -> None:
    different: list[tuple[str, ChatVariables, Outcome, Outcome]] = []
    count = 0
    for template, source in templates().items():
        for chat in list_variables(name):
            expected, actual = render_with_transformers(source, chat), render_with_agentkit(source, chat)
            count += 1
            if expected != actual._replace(error=_ERRORS.get(actual.error, actual.error)):
                different.append((template, chat, expected, actual))
    assert different == []
    assert count >= 300
