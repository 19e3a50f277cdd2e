"""Checks that a provider's `WireLayout` matches the requests that the provider's formatter builds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from agentkit.capabilities.prefix_digest import prefix_digest
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.ledger.plan import Plan
from agentkit.logs.request_options import load_request_options
from agentkit.media.message_media import get_media
from agentkit.messages.blocks import DocumentBlock, ImageBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.messages.sources import Base64Source
from agentkit.models.error_location import locate_block
from agentkit.models.registry import Provider
from agentkit.testing.conversations import CONVERSATIONS
from agentkit.testing.findings import collect_findings
from agentkit.testing.option_probes import OUTPUT_SCHEMA, make_tools
from agentkit.testing.request_marks import iterate_scalars, json_text, walk_json
from agentkit.tokens.request_parts import RequestParts
from agentkit.tokens.text_counters import CharacterTokenCounter
from agentkit.tools.choices import ToolChoice
from agentkit.tools.tool import Tool

__all__ = ["layout_faults"]

_SYSTEM, _QUESTION, _REPLY, _RESULT = "markSystem", "markQuestion", "markReply", "resultText"
_MARKS: Final = re.compile("mark[A-Z]|callPlace|resultText")
_IMAGE_DATA: Final = "iVBORw0KGgo" + "A" * 400_001
_MOST_IMAGE_TOKENS: Final = 20_000
_CALL: Final = ToolUseBlock("call_1a2b", "look", {"placeName": "callPlace"})


def layout_faults(provider: Provider, model: str | None) -> Iterator[str]:
    """Yields a sentence for each fault of a provider's `WireLayout`. The sentence names the faulty field."""
    layout = provider.layout
    if provider.parser is not None and provider.parser.layout is not layout:
        formatter = provider.chat_formatter.__name__
        yield f"{provider.parser.__name__}.layout: not the layout of {formatter}. Use {formatter}.base.layout"
    if layout.is_rendered:
        for check_text in (_check_text, _check_digest):
            yield from collect_findings("WireLayout", check_text(provider, layout, model))
        return
    faults = [*collect_findings("WireLayout", _check_turns(provider, layout, model))]
    yield from faults
    if faults:
        return  # the other checks also read the turns, so the same mistake would cause more faults
    for check in _CHECKS:
        yield from collect_findings("WireLayout", check(provider, layout, model))


def _lower(provider: Provider, model: str | None, msgs: list[Msg]) -> Plan:
    return provider.chat_formatter(model).lower(msgs, tools=make_tools())


def _plan(
    provider: Provider,
    model: str | None,
    *,
    system: str = _SYSTEM,
    question: str = _QUESTION,
    failed: bool = False,
) -> Plan:
    msgs = [
        Msg("system", system, "system"),
        Msg("Ann", question, "user"),
        Msg("Friday", [TextBlock(_REPLY), _CALL], "assistant"),
        Msg("tools", [ToolResultBlock(_CALL.id, _CALL.name, _RESULT, is_error=failed)], "user"),
    ]
    return _lower(provider, model, msgs)


def _check_text(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that the text of a prompt contains the conversation, the system prompt and the tools."""
    text: object = _plan(provider, model).request.get(layout.turns)
    for mark in (_SYSTEM, _QUESTION, _REPLY, _RESULT, "toolLook"):
        if not isinstance(text, str) or mark not in text:
            yield f"`turns` is {layout.turns!r}, but the text under this key does not contain {mark!r}"


def _check_turns(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that the turns contain the conversation, and that the layout recognizes replies and results."""
    request = _plan(provider, model).request
    turns: list[dict[str, Any]] = layout.read_turns(request)
    if not turns:
        lists = ", ".join(repr(key) for key, value in request.items() if isinstance(value, list))
        yield f"`turns` is {layout.turns!r}, but the request has lists only under these keys: {lists or 'none'}"
        return
    for mark in (_QUESTION, _REPLY, _RESULT):
        if mark not in json_text(turns):
            yield f"`turns` is {layout.turns!r}, but the list under this key does not contain the text {mark!r}"
    replies = [turn for turn in turns if layout.is_reply(turn)]
    if _REPLY not in json_text(replies) or _QUESTION in json_text(replies):
        roles = [turn.get(layout.role) for turn in turns]
        yield (
            f"`role` ({layout.role!r}) and `reply_roles` ({sorted(layout.reply_roles)}) must select the reply and "
            f"no other turn. The roles of the turns are {roles}"
        )
    objects = (cast("dict[str, Any]", part) for _, _, part in walk_json(turns) if type(part) is dict)
    if not any(_RESULT in json_text(part) and layout.is_result(part) for part in objects):
        yield "`result_keys` and `result_labels` do not select the tool result in the request"


def _check_prompt_and_tools(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that the system prompt and the tools are under the keys that the layout declares.

    The system prompt may also be in a turn.
    """
    request = _plan(provider, model).request
    items = dict(layout.read_items(request))
    prompt = [layout.read_turns(request), items.get(layout.prompt)]
    for field, subject, mark, part in (
        ("prompt", "the system prompt is", _SYSTEM, prompt),
        ("tools", "the tools are", "toolLook", items.get(layout.tools)),
    ):
        if mark not in json_text(part):
            keys = sorted(key for key, value in items.items() if mark in json_text(value))
            names = ", ".join(map(repr, keys)) or "no key"
            yield (
                f"`{field}` is {getattr(layout, field)!r}, but {subject} under {names}. If the request nests its "
                "keys, check `containers`"
            )


def _check_keys(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that the token count of a request does not include ids, roles or other fixed values of the API."""
    request = _plan(provider, model, failed=True).request
    counted = {*RequestParts.of(request, layout).texts} - {"", "look", "system", "Ann", "Friday", "tools"}
    prompt = dict(layout.read_items(request)).get(layout.prompt)
    for key, value in dict.fromkeys(iterate_scalars([layout.read_turns(request), prompt])):
        if value in counted and not _MARKS.search(value):
            yield f"{value!r} under the key {key!r} is counted as text. Add the key to `labels` or `silent`"


def _check_options(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that `load_request_options` returns the tools, the tool choice and the schema of a request."""
    formatter, msgs = provider.chat_formatter(model), [Msg("Ann", _QUESTION, "user")]
    target = formatter.capabilities()
    for mode in sorted(target.tools.choices | {"auto"}):
        choice = ToolChoice("tool", "look") if mode == "tool" else ToolChoice(cast("Any", mode))
        request = formatter.lower(msgs, tools=make_tools(), tool_choice=choice).request
        loaded = load_request_options(layout, request)
        tools = cast("list[Tool]", loaded.get("tools") or [])
        if mode == "auto" and [tool.name for tool in tools] != [tool.name for tool in make_tools()]:
            yield f"the tools are loaded as {[tool.name for tool in tools]}. Check `tools` and `tool_wrapper`"
        elif not all("placeName" in json_text(tool.parameters.get("properties")) for tool in tools[:1]):
            yield "the parameters of a tool are not loaded. Check `tool_schemas` and `options.read_schemas`"
        elif mode != "auto" and loaded.get("tool_choice") != choice:  # a request may omit the default, "auto"
            yield f"the tool choice {choice} is loaded as {loaded.get('tool_choice')}. Check `options.choices`"
    if target.output == "schema":
        request = formatter.lower(msgs, response_format=OUTPUT_SCHEMA).request
        output = load_request_options(layout, request).get("response_format")
        if "verdictText" not in str(output):
            yield f"the response format is loaded as {output}. Check `options.outputs`"


def _check_places(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that an API error with the path of a part is assigned to the message that contains this part."""
    plan = _plan(provider, model)
    places = {_QUESTION: "msgs[1]", _REPLY: "msgs[2]", _RESULT: "msgs[3]"}
    for text, expected in places.items():
        for path, _, value in walk_json(layout.read_turns(plan.request)):
            if value != text and not (isinstance(value, dict) and text in value.values()):
                continue
            message = f"{layout.turns}{path}: invalid value"
            place = locate_block(message, plan.request, layout, plan.ledger.msgs, call_ids=plan.call_ids)
            if place.partition(".")[0] != expected:
                yield f"the error {message!r} is assigned to {place or 'no block'}, expected {expected}"


def _check_digest(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that the prefix digest (a hash of a prefix) changes if the system prompt or a turn changes."""
    digest = prefix_digest(_plan(provider, model).request, layout)
    if prefix_digest(_plan(provider, model, system="Another prompt").request, layout) == digest:
        yield "the prefix digest of a request does not depend on the system prompt. Check `prompt` and `turns`"
    if prefix_digest(_plan(provider, model, question="Another question").request, layout) == digest:
        yield "the prefix digest of a request does not depend on the turns. Check `turns` and `digest_turn`"


def _check_media(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that the token count of a request does not include the base64 data of an image as text."""
    image = ImageBlock(Base64Source("image/png", _IMAGE_DATA))
    request = _lower(provider, model, [Msg("Ann", [TextBlock(_QUESTION), image], "user")]).request
    if _IMAGE_DATA not in json_text(request):
        return
    tokens = CharacterTokenCounter().measure(request, layout)
    if tokens > _MOST_IMAGE_TOKENS:
        yield f"the base64 data of an image is counted as {tokens:,} text tokens. Add the key of images to `media`"


def _check_text_documents(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that the token count of a request includes the text of a text document that has base64 data."""
    document = DocumentBlock.from_bytes(b"documentText " * 10, "text/plain")
    request = _lower(provider, model, [Msg("Ann", [TextBlock(_QUESTION), document], "user")]).request
    data = cast("Base64Source", document.source).data
    if any(data in media.data for media in RequestParts.of(request, layout).media):
        yield "the text of a text document is not counted. Check `media_types`"


def _check_media_data(provider: Provider, layout: WireLayout, model: str | None) -> Iterator[str]:
    """Checks that the layout names the keys for the data or the URL of each media item in a request."""
    for msgs in CONVERSATIONS.values():
        request = _lower(provider, model, msgs).request
        parts = RequestParts.of(request, layout)
        known = {*(media.data for media in parts.media), *parts.sealed}
        texts = [text for _, text in iterate_scalars(request) if isinstance(text, str)]
        unknown = [text for text in texts if text not in known and text.rpartition(",")[2] not in known]
        for block in (block for msg in msgs for block in get_media(msg).blocks):
            data = block.source.data if isinstance(block.source, Base64Source) else block.source.url
            if any(text == data or text.endswith(f",{data}") for text in unknown):  # the data can be in a data URL
                yield f"`media` and `media_data` do not select the {block.type} in the request"


_CHECKS: Final = (
    _check_prompt_and_tools,
    _check_keys,
    _check_options,
    _check_places,
    _check_digest,
    _check_media,
    _check_text_documents,
    _check_media_data,
)
