"""Which block a provider means when it refuses a request: a best guess from what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, cast

from agentkit.capabilities.wire_layout import WireLayout
from agentkit.ledger.places import BlockPath, format_place
from agentkit.messages.blocks import MediaBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.messages.sources import Base64Source

__all__ = ["locate_block"]

_STEP = re.compile(r"\d+|[A-Za-z_]+")


@lru_cache(64)
def _paths_pattern(names: frozenset[str]) -> re.Pattern[str]:
    """Returns the pattern of paths such as messages.3.content.1, messages[3].content[1] or input[2].call_id."""
    lists = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.compile(rf"\b(?:{lists})((?:\.?\[\d+\]|\.\d+|\.[A-Za-z_]+)*)")


_READ = 4_000  # characters of a refusal that are searched: a server may send any number of paths
_MOST_PATHS = 20
_MOST_STEPS = 20
_MOST_DIGITS = 9  # of an index
_SHORT = 3  # an id, or a text, of fewer characters may stand anywhere by chance


def locate_block(
    said: str,
    request: Mapping[str, Any],
    layout: WireLayout,
    msgs: Sequence[Msg],
    *,
    call_ids: Mapping[str, str] | None = None,
) -> str:
    """The place in `msgs` that the text of a refusal is about, as `msgs[3].content[1]`; "" if there is no telling.

    request   what was sent: `plan.request`
    layout    the keys of the request
    call_ids  `plan.call_ids`: what calls are named in `msgs`, where the wire has another spelling

    Paths in the text are looked up in the request, and what stands there is looked for in the messages. Then the
    ids of calls that the text quotes.
    """
    ids, said = call_ids or {}, said[:_READ]
    for fragment, behind in _fragments(said, request, layout):
        found = _block_like(fragment, behind, msgs, ids, layout)
        if found:
            return format_place(found)
    return _quoted(said, msgs, ids)


def _fragments(said: str, request: Mapping[str, Any], layout: WireLayout) -> Iterator[tuple[Any, list[Any]]]:
    """What the paths in a text lead to, the nearest part first, then the turn that it stands in; and the turns
    behind that one.
    """
    turns = layout.read_turns(request)
    if not turns:
        return
    pattern = _paths_pattern(layout.error_paths | {layout.turns})
    for match in islice(pattern.finditer(said), _MOST_PATHS):
        held, steps = cast("Any", turns), _STEP.findall(match[1])[:_MOST_STEPS]
        trail: list[Any] = []
        texts: list[str] = []
        for step in steps:
            held = _step(held, step)
            if held is None or step in layout.result_keys:
                break  # the part itself says that it is a result; what it holds does not
            if isinstance(held, str):
                texts.append(held)
            trail.append(held)
        behind = turns[int(steps[0]) + 1 :] if trail else []
        said_itself = bool(
            layout.texts.intersection(steps[-1:])
        )  # the very words; an id or a name says whose they are
        yield from ((text, behind) for text in texts if said_itself)
        yield from ((part, behind) for part in reversed(trail) if isinstance(part, dict))
        yield from ((text, behind) for text in texts if not said_itself)


def _step(held: Any, step: str) -> Any:
    if isinstance(held, list):
        parts = cast("list[Any]", held)
        is_index = step.isdigit() and len(step) <= _MOST_DIGITS and int(step) < len(parts)
        return parts[int(step)] if is_index else None
    return cast("dict[str, Any]", held).get(step) if isinstance(held, dict) else None


def _quoted(said: str, msgs: Sequence[Msg], ids: Mapping[str, str]) -> str:
    """The last call, or result, whose id the text quotes."""
    told = {theirs: ours for theirs, ours in ids.items() if theirs in said}
    for path, block in reversed(list(_paths(msgs))):
        if not isinstance(block, ToolUseBlock | ToolResultBlock) or len(block.id) < _SHORT:
            continue
        if _is_word(block.id, said) or block.id in told.values():
            return format_place(path)
    return ""


def _is_word(word: str, said: str) -> bool:
    return word in said and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", said) is not None


# -- what stands in a request, as a block ----------------------------------------------------------------------


def _block_like(
    fragment: Any, behind: list[Any], msgs: Sequence[Msg], ids: Mapping[str, str], layout: WireLayout
) -> BlockPath | None:
    """The block that says what a part of the request says. Of several that say the same, it is the one with as
    many behind it as the request has: a cut takes from the front.
    """
    wanted = {text.strip() for text in _leaves(fragment, layout.labels)} - {
        ""
    }  # a wire may join texts by line breaks
    wanted |= {ids[text] for text in wanted if text in ids}
    is_result = isinstance(fragment, dict) and layout.is_result(cast("dict[str, Any]", fragment))
    scored = [(_score(block, wanted, is_result), path, block) for path, block in _paths(msgs)] if wanted else []
    best = max((score for score, _, _ in scored), default=0)
    if not best:
        return None
    places = [(path, block) for score, path, block in scored if score == best]
    texts = {block.text.strip() for _, block in places if isinstance(block, TextBlock)}
    later = (
        sum(1 for turn in behind if texts & set(map(str.strip, _leaves(turn, layout.labels))))
        if len(places) > 1
        else 0
    )
    return places[max(0, len(places) - 1 - later)][0]


def _score(block: Any, wanted: set[str], is_result: bool) -> int:
    """How surely a block is meant: an id says more than a text, which says more than a name."""
    if isinstance(block, ToolUseBlock | ToolResultBlock):
        own = isinstance(block, ToolResultBlock) == is_result
        if block.id in wanted:
            return 5 if own else 4
        if isinstance(block, ToolResultBlock):
            return 2 if is_result and block.listing.strip() in wanted else 0
        return 1 if not is_result and block.name in wanted else 0
    if isinstance(block, MediaBlock):
        source = block.source
        held = source.data if isinstance(source, Base64Source) else source.url
        return 3 if any(held == text or text.endswith(held) for text in wanted) else 0
    if isinstance(block, ThinkingBlock):
        state = block.state
        proofs = (state.signature, state.redacted_data, state.encrypted_content) if state else ()
        return 3 if block.thinking.strip() in wanted or wanted.intersection(filter(None, proofs)) else 0
    if isinstance(block, TextBlock):
        if block.text.strip() in wanted:
            return 3
        return 2 if len(block.text) > _SHORT and any(block.text in text for text in wanted) else 0
    return 0


def _leaves(found: Any, labels: frozenset[str]) -> Iterator[str]:
    """The strings of a part of the request that its speaker said; the wire's own words are no matter."""
    if isinstance(found, str):
        yield found
    elif isinstance(found, dict):
        for key, item in cast("dict[str, Any]", found).items():
            if key not in labels:
                yield from _leaves(item, labels)
    elif isinstance(found, list):
        for item in cast("list[Any]", found):
            yield from _leaves(item, labels)


def _paths(msgs: Sequence[Msg]) -> Iterator[tuple[BlockPath, Any]]:
    for number, msg in enumerate(msgs):
        for at, block in enumerate(msg.blocks):
            yield (number, at), block
