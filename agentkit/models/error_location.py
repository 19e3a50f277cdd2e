"""`locate_block`, which estimates which message block caused a provider's error.

Error texts quote paths of the request, such as `messages[2].content`, or ids of tool calls. The module follows a
quoted path in the request, and reads the texts and ids in the values on the path. Then the module searches the
messages for a block with the same texts or ids. The provider's `WireLayout` names the keys of the request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from agentkit.capabilities.wire_layout import WireLayout
from agentkit.json_values import as_object
from agentkit.ledger.places import BlockPath, format_place
from agentkit.messages.blocks import MediaBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.messages.sources import Base64Source

__all__ = ["locate_block"]

_STEP = re.compile(r"\d+|[A-Za-z_]+")


@lru_cache(64)
def _paths_pattern(names: frozenset[str]) -> re.Pattern[str]:
    """Returns a pattern for paths such as messages.3.content.1, messages[3].content[1] or input[2].call_id."""
    lists = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"\b(?:{lists})((?:\.?\[\d+\]|\.\d+|\.[A-Za-z_]+)*)")


_MAX_SEARCHED = 4_000  # maximum number of characters to search; a longer text can contain very many paths
_MAX_PATHS = 20  # maximum number of paths to follow in one error text
_MAX_STEPS = 20  # maximum number of keys and indexes to follow in one path
_MAX_DIGITS = 9  # maximum number of digits of a list index in a path
_MIN_LENGTH = 3  # minimum length of an id; a part of a text must be longer, because short strings match by chance


def locate_block(
    text: str,
    request: Mapping[str, Any],
    layout: WireLayout,
    msgs: Sequence[Msg],
    *,
    call_ids: Mapping[str, str] | None = None,
) -> str:
    """Returns the place of the block that probably caused an error, such as `msgs[3].content[1]`.

    Returns an empty string if no block matches.

    Args:
        text: Error text of the provider.
        request: Request that was sent.
        layout: Names of the keys in the provider's requests.
        msgs: Messages from which the request was built.
        call_ids: Map from call ids in the request to call ids in the messages (`plan.call_ids`). None if the ids
            in the request and in the messages are the same.

    """
    ids, text = call_ids or {}, text[:_MAX_SEARCHED]
    for fragment, later_turns in _find_fragments(text, request, layout):
        path = _find_block(fragment, later_turns, msgs, ids, layout)
        if path:
            return format_place(path)
    return _find_quoted_call(text, msgs, ids)


def _find_fragments(text: str, request: Mapping[str, Any], layout: WireLayout) -> Iterator[tuple[Any, list[Any]]]:
    """Yields the parts of the request to which the paths in an error text refer.

    A path begins at a turn of the request. Each result is a tuple of a part and the turns after this turn. A
    path can refer to several parts: the JSON objects on the path, from the innermost object to the turn. If the
    path leads into a list in the turn, the turn is not a part. If the path ends at a string, the string is a part,
    too. A string under a key for message text comes before the objects. Any other string comes after the objects.
    """
    turns = layout.read_turns(request)
    if not turns:
        return
    pattern = _paths_pattern(layout.error_paths | {layout.turns})
    for match in islice(pattern.finditer(text), _MAX_PATHS):
        steps = _STEP.findall(match[1])[:_MAX_STEPS]
        trail = _follow_path(turns, steps, layout)
        later_turns = turns[int(steps[0]) + 1 :] if trail else []
        strings = [value for value in trail if isinstance(value, str)]
        has_part = any(isinstance(value, list) for value in trail[:-1])
        objects = trail[1:] if has_part else trail
        # A text comes first, because a text identifies a block. Any other string, such as a name, comes last,
        # because it is less reliable.
        is_text = bool(layout.texts.intersection(steps[-1:]))
        yield from ((string, later_turns) for string in strings if is_text)
        yield from ((part, later_turns) for part in reversed(objects) if isinstance(part, dict))
        yield from ((string, later_turns) for string in strings if not is_text)


def _follow_path(turns: list[Any], steps: Sequence[str], layout: WireLayout) -> list[Any]:
    """Returns the values on a path: the turn, then each nested value to which the path refers.

    An unknown key ends the path. If an index is out of range, the result is empty, because the provider probably
    counts the parts differently.
    """
    trail: list[Any] = []
    value: Any = turns
    for step in steps:
        container, value = value, _step(value, step)
        if value is None and isinstance(container, list) and step.isdigit():
            return []
        if value is None or step in layout.result_keys:
            break  # stop at the object with this key, because the key marks the object as a tool result
        trail.append(value)
    return trail


def _step(value: Any, step: str) -> Any:
    """Returns the list item or field that an index or key of a path selects, or None if there is no such value."""
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        is_index = step.isdigit() and len(step) <= _MAX_DIGITS and int(step) < len(parts)
        return parts[int(step)] if is_index else None
    return cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None


def _find_quoted_call(text: str, msgs: Sequence[Msg], ids: Mapping[str, str]) -> str:
    """Returns the place of the last tool call or result whose id is in the error text, or an empty string."""
    quoted = {msg_id for request_id, msg_id in ids.items() if request_id in text}
    for path, block in reversed(list(_paths(msgs))):
        if not isinstance(block, ToolUseBlock | ToolResultBlock) or len(block.id) < _MIN_LENGTH:
            continue
        if _is_word(block.id, text) or block.id in quoted:
            return format_place(path)
    return ""


def _is_word(word: str, text: str) -> bool:
    return word in text and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def _find_block(
    fragment: Any, later_turns: list[Any], msgs: Sequence[Msg], ids: Mapping[str, str], layout: WireLayout
) -> BlockPath | None:
    """Returns the path of the message block from which a part of the request was written, or None.

    If several blocks match equally well, the function counts the later turns of the request that contain the same
    text. With no such turn, the last of these blocks is selected; with one such turn, the second to last. The
    function counts from the end, because the request may not contain the start of the conversation.
    """
    # White space around a text is ignored, because a converter may join texts with line breaks.
    labels = layout.labels | layout.cache_markers
    wanted = {text.strip() for text in _leaves(fragment, labels)} - {""}
    wanted |= {ids[text] for text in wanted if text in ids}
    is_result = isinstance(fragment, dict) and _has_result(cast("dict[str, Any]", fragment), layout)
    scored = [(_score(block, wanted, is_result), path, block) for path, block in _paths(msgs)] if wanted else []
    best = max((score for score, _, _ in scored), default=0)
    if not best:
        return None
    places = [(path, block) for score, path, block in scored if score == best]
    texts = {block.text.strip() for _, block in places if isinstance(block, TextBlock)}
    later = (
        sum(1 for turn in later_turns if texts & set(map(str.strip, _leaves(turn, labels))))
        if len(places) > 1
        else 0
    )
    return places[max(0, len(places) - 1 - later)][0]


def _has_result(part: Mapping[str, Any], layout: WireLayout) -> bool:
    """Returns True if a part is a tool result, or if it is a turn with tool results."""
    return layout.is_result(part) or any(map(layout.is_result, map(as_object, layout.read_parts(part))))


def _score(block: Any, wanted: set[str], is_result: bool) -> int:
    """Returns a match score for a block, or 0 if nothing matches.

    A matching id scores highest, then a text, then a tool name.
    """
    if isinstance(block, ToolUseBlock | ToolResultBlock):
        own = isinstance(block, ToolResultBlock) == is_result
        if block.id in wanted:
            return 5 if own else 4
        if isinstance(block, ToolResultBlock):
            return 2 if is_result and block.listing.strip() in wanted else 0
        return 1 if not is_result and block.name in wanted else 0
    if isinstance(block, MediaBlock):
        source = block.source
        data = source.data if isinstance(source, Base64Source) else source.url
        return 3 if any(data == text or text.endswith(data) for text in wanted) else 0
    if isinstance(block, ThinkingBlock):
        state = block.state
        proofs = (state.signature, state.redacted_data, state.encrypted_content) if state else ()
        return 3 if block.thinking.strip() in wanted or wanted.intersection(filter(None, proofs)) else 0
    if isinstance(block, TextBlock):
        if block.text.strip() in wanted:
            return 3
        return 2 if len(block.text) > _MIN_LENGTH and any(block.text in text for text in wanted) else 0
    return 0


def _leaves(value: Any, labels: frozenset[str]) -> Iterator[str]:
    """Yields all strings in a part of the request, except labels such as types and roles."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key not in labels:
                yield from _leaves(item, labels)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _leaves(item, labels)


def _paths(msgs: Sequence[Msg]) -> Iterator[tuple[BlockPath, Any]]:
    for msg_index, msg in enumerate(msgs):
        for index, block in enumerate(msg.blocks):
            yield (msg_index, index), block
