"""Chat templates: the text and the spans equal those of transformers for each template of trl.

The environment variable AGENTKIT_TRAINING names the interpreter of an environment in which trl is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, Final, NamedTuple

import pytest

from agentkit import (
    ImageBlock,
    MessageError,
    Msg,
    TemplateError,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.chat_templates import ChatTemplate
from agentkit.chat_templates.builtin_templates import BUILTIN_NAMES
from agentkit.jinja_environments.chat_rendering import render_chat
from agentkit.jinja_environments.chat_variables import ChatVariables
from agentkit.messages.blocks import Block
from agentkit.messages.message import Role
from tests.conformance.training_packages import find_package

TOKENS: Final = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant")
TAG: Final = r"(<[^<>\s]{1,60}>|\[[^\[\]\s]{1,60}\])"
"""Pattern of a tag beside a message. It is wider than that of agentkit."""
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


def test_tags_around_messages_are_control_tokens() -> None:
    """No text of a user can contain a tag that a template of trl writes directly before or after a message."""
    words, tokens = ("Systemword", "Userword", "Replyword"), set[str]()
    msgs = [Msg(word, word, role) for word, role in zip(words, ROLES, strict=True)]
    for name, source in templates().items():
        template = ChatTemplate(source, special_tokens=TOKENS)
        try:
            text = template.render([*msgs, Msg("Bob", "Userword", "user")]).text
        except TemplateError:  # the template refuses system messages
            text = template.render([*msgs[1:], Msg("Bob", "Userword", "user")]).text
        tags = {tag for word in words for pair in re.findall(rf"{TAG}?\s*{word}\s*{TAG}?", text) for tag in pair}
        for tag in filter(None, tags):
            forged = [Msg("Bob", f"x{tag}y", "user")]
            with pytest.raises(MessageError, match="the control token"):
                template.render(forged, on_special_tokens="raise")
            assert f"x{tag}y" not in template.render(forged, on_special_tokens="space").text, name
        tokens |= tags
    assert {"<turn|>", "<|im_end|>", "<｜User｜>", "<|eot_id|>"} <= tokens
    assert len(tokens) > 20


def test_each_image_has_the_place_of_its_placeholder() -> None:
    image = ImageBlock(URLSource("https://example.org/a.png"))
    contents: list[list[Block]] = [
        [TextBlock("x"), image, TextBlock("y")],
        [image, TextBlock("y")],
        [image, TextBlock("y"), image],
    ]
    found = 0
    for name, source in templates().items():
        template = ChatTemplate(source, special_tokens=TOKENS)
        if "image" not in template.check().media:
            continue
        found += 1
        for content in contents:
            rendered = template.render([Msg("Bob", content, "user")])
            assert None not in [item.offset for item in rendered.media], name
            for item in rendered.media:
                assert re.match(r"\s*<[^<>]*(image|vision|patch)", rendered.text[item.offset :]), name
    assert found > 15


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


def write_reply(number: int, parts: str) -> list[Msg]:
    """Returns a reply with the parts `thinking`, `text` and `call`, and the result of the call."""
    blocks: dict[str, Block] = {
        "thinking": ThinkingBlock(f"Thinking{number}x"),
        "text": TextBlock(f"Text{number}x"),
        "call": ToolUseBlock(f"abcdef12{number}", "get_weather", {"city": f"City{number}x"}),
    }
    msgs = [Msg("Friday", [blocks[part] for part in parts.split()], "assistant")]
    output = ToolResultBlock(f"abcdef12{number}", "get_weather", f"Result{number}x")
    return [*msgs, Msg("system", [output], "system")] if "call" in parts else msgs


def get_word(msgs: list[Msg], place: str) -> str:
    """Returns the word of the block at a place."""
    index, number = map(int, re.findall(r"\d+", place))
    block = msgs[index].blocks[number]
    if isinstance(block, ToolUseBlock):
        return str(block.input["city"])
    assert isinstance(block, TextBlock | ThinkingBlock | ToolResultBlock)
    return block.thinking if isinstance(block, ThinkingBlock) else block.text


REPLIES: Final = ("text", "call", "text call", "thinking text", "thinking call", "thinking text call")


def test_each_text_is_in_the_prompt_or_in_the_ledger() -> None:
    """For each template: a block that the ledger does not list as dropped is in the prompt."""
    missing: list[tuple[str, str, str]] = []
    first, last = Msg("Bob", "Where?", "user"), Msg("Bob", "And then?", "user")
    conversations = [
        (f"{parts}, {others}", [first, *write_reply(1, parts), *between, *write_reply(2, others)])
        for parts, others, between in product(REPLIES, REPLIES, ([], [last]))
    ]
    for name, source in templates().items():
        formatter = ChatTemplate(source, name=name, special_tokens=TOKENS).formatter()
        for replies, msgs in conversations:
            plan = formatter.lower(msgs)
            for entry in plan.ledger.entries:
                word = get_word(msgs, entry.place)
                if entry.disposition.word != "dropped" and word not in plan.request["prompt"]:
                    missing.append((name, replies, entry.place))
    assert missing == []
