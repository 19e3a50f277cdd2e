"""Thinking that is bound to what precedes it: digests of prefixes, and which thinking has lost its own.

Some models accept their signed thinking back only behind the very prefix that produced it: system prompt,
tools, and every earlier turn. Cache markers, the choice of tool and the order of JSON keys do not count
(Anthropic, build-with-claude/preserved-thinking/prefix-checks).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

from agentkit.errors import check_option
from agentkit.json_values import mapping_of
from agentkit.ledger.ledger import BlockPath
from agentkit.messages.blocks import OpaqueState, ThinkingBlock
from agentkit.messages.features import Trait
from agentkit.repair.pairing import Draft, block_origins
from agentkit.tokens.request_parts import CACHE_MARKERS

__all__ = ["prefix_digest", "stale_thinking"]

_HEAD = ("system", "instructions", "system_instruction", "tools")
_TURNS = ("messages", "input", "contents")
_PROOFS = {"thinking": "signature", "redacted_thinking": "data", "reasoning": "encrypted_content"}
_OUTPUTS = frozenset(
    {"reasoning", "program", "program_output", "compaction", "mcp_list_tools", "mcp_approval_request"}
)
"""Items of a reply that has no roles (OpenAI's SDK: ResponseOutputItem), beside those that are called `…_call`."""
_LONG = 4_096


def prefix_digest(request: Mapping[str, Any]) -> str:
    """The digest of a request as the prefix of its reply: 32 hexadecimal digits.

    Keep it with the thinking of the reply, `OpaqueState("anthropic", signature=…, prefix=prefix_digest(request))`,
    and a formatter knows whether that thinking may still go back.
    """
    check_option("request", request, Mapping, "Pass the request of a plan: plan.request.")
    chain = _Chain(request)
    for turn in _turns(request):
        chain.add(turn)
    return chain.digest


def stale_thinking(
    request: Mapping[str, Any],
    turns: Draft,
    changed: int | None,
    needs_thinking: Callable[[Mapping[str, Any]], bool] | None = None,
) -> set[BlockPath]:
    """The thinking of a request that stands no longer behind the prefix it was issued for.

    Thinking with a digest goes by it. Thinking without one goes back unless this call changed something
    before it: the message `changed`, or earlier thinking that went. What remains is prefix-closed. An item that
    needs thinking goes with it (see `Capabilities.needs_thinking`).
    """
    issued = _issued(turns)
    stale: set[BlockPath] = set()
    chain, before, in_reply, is_orphan = _Chain(request), "", False, False
    for turn in _turns(request):
        was_reply, in_reply = in_reply, _is_reply(turn)
        if in_reply and not was_reply:
            before = chain.digest
        gone: set[str] = set()
        for part in _parts(turn):
            found = issued.get(_proof(part))
            if found and found.is_stale(before, changed, bool(stale)):
                gone.add(_proof(part))
                stale.update(found.paths)
            is_orphan = bool(gone) if found else is_orphan and in_reply
        if is_orphan and needs_thinking and needs_thinking(turn):
            continue
        kept = _without(turn, gone) if gone else turn
        if kept:
            chain.add(kept)
    return stale


@dataclass(slots=True)
class _Issued:
    """Thinking that a request carries: its state, where it comes from, and whether another reply stands right
    before it: between the two there was a turn once, which nobody said.
    """

    state: OpaqueState
    follows: bool
    paths: list[BlockPath] = field(default_factory=list[BlockPath])

    def is_stale(self, before: str, changed: int | None, broken: bool) -> bool:
        if self.state.prefix is not None:
            return self.state.prefix != before
        return broken or self.follows or (changed is not None and self.paths[0][0] > changed)


def _issued(turns: Draft) -> dict[str, _Issued]:
    """All thinking that the turns carry, by its proof."""
    found: dict[str, _Issued] = {}
    reply = -1  # the number of the message that the assistant's run of turns begins with
    for msg, whole in zip(turns.msgs, turns.origins, strict=True):
        if not msg.traits & Trait.ASSISTANT:
            reply = -1
            continue
        for block, origin in zip(msg.blocks, block_origins(msg, whole), strict=True):
            if isinstance(origin, str):
                continue
            reply = origin[0] if reply < 0 else reply
            if isinstance(block, ThinkingBlock) and block.state:
                state = block.state
                proof = state.signature or state.redacted_data or state.encrypted_content or ""
                found.setdefault(proof, _Issued(state, origin[0] != reply)).paths.append(origin)
    return found


# -- the wire, as far as prefixes go --------------------------------------------------------------------------


class _Chain:
    """The digest of a prefix that grows turn by turn: it begins with the prompt and the tools."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._sum = sha256()
        config: object = request.get("config")
        head = {**request, **(cast("dict[str, Any]", config) if isinstance(config, dict) else {})}  # Gemini's
        for name in _HEAD:
            found = head.get(name)
            if found:
                self.add({name: _as_parts(found) if name == "system" else found})

    def add(self, found: Any) -> None:
        for turn in _as_said(found):
            self._add(turn)

    def _add(self, found: Any) -> None:
        text = json.dumps(_plain(found), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        self._sum.update(text.encode("utf-8", "surrogatepass") + b"\n")

    @property
    def digest(self) -> str:
        return self._sum.hexdigest()[:32]


def _turns(request: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    return next((request[name] for name in _TURNS if isinstance(request.get(name), list)), ())


_STORED = frozenset({"message", "function_call", "custom_tool_call"})


def _as_said(turn: Any) -> Iterator[Any]:
    """Yields what a turn says to the model, without what ties it to stored items (OpenAI Responses).

    A message and a call say the same with the id of their item and without; a message says its texts one by one.
    """
    item = cast("dict[str, Any]", turn) if isinstance(turn, dict) else {}
    if item.get("type") not in _STORED:
        yield turn
        return
    kept = {key: value for key, value in item.items() if key not in ("id", "status")}
    if kept.pop("type") != "message":
        yield {**kept, "type": item["type"]}
    elif item.get("role") == "assistant" and isinstance(item.get("content"), list):
        for part in cast("list[dict[str, Any]]", item["content"]):
            is_text = mapping_of(part).get("type") == "output_text"
            yield {**kept, "content": part.get("text") if is_text else [part]}
    else:
        yield kept


def _is_reply(turn: Mapping[str, Any]) -> bool:
    kind = str(turn.get("type", ""))
    if kind == "tool_search_output":
        return turn.get("execution") == "server"
    return turn.get("role") in ("assistant", "model") or kind in _OUTPUTS or kind.endswith("_call")


def _parts(turn: dict[str, Any]) -> list[dict[str, Any]]:
    content = turn.get("content")
    return [turn, *cast("list[dict[str, Any]]", content)] if isinstance(content, list) else [turn]


def _proof(part: Any) -> str:
    kind: object = mapping_of(part).get("type")
    return str(part.get(_PROOFS.get(kind, ""), "")) if isinstance(kind, str) else ""


def _without(turn: dict[str, Any], gone: set[str]) -> dict[str, Any]:
    """The turn less some thinking; nothing if that was all of it."""
    if _proof(turn) in gone:
        return {}
    content = [part for part in turn["content"] if _proof(part) not in gone]
    return {**turn, "content": content} if content else {}


# -- values ---------------------------------------------------------------------------------------------------


def _plain(found: Any) -> Any:
    """A JSON value without cache markers, long texts as their digests."""
    if isinstance(found, str):
        return found if len(found) < _LONG else _digest(found)
    if isinstance(found, dict):
        pairs = cast("dict[str, Any]", found).items()
        return {key: _plain(item) for key, item in pairs if key not in CACHE_MARKERS}
    if isinstance(found, list):
        return [_plain(item) for item in cast("list[Any]", found)]
    return found


def _as_parts(system: Any) -> Any:
    """A prompt that is one text is the same as a list of that one text."""
    return [{"type": "text", "text": system}] if isinstance(system, str) else system


@lru_cache(64)
def _digest(text: str) -> str:
    """A long text's digest. A request shares its long texts with the one before: they are read once."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
