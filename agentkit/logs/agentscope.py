"""Messages as AgentScope dumps them: of 1.x and 2.x, by themselves or in the state of an agent or its memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text, make_json_safe
from agentkit.messages.blocks import InvalidBlock
from agentkit.messages.log_formats import (
    check_log_format,
    check_log_message,
    check_log_request,
    describe_log_format,
)
from agentkit.messages.message import Msg
from agentkit.messages.serialization import load_message
from agentkit.models.registry import load_provider

__all__ = ["load_agentscope"]


def load_agentscope(found: object) -> list[Msg]:
    """A conversation from AgentScope's message dicts, its Msg objects, or a state that holds them.

    States are those of an agent (`{"memory": …}`; 2.x: `{"context": […]}`), of a memory (`{"content": […]}`, each
    item a message or a message with its marks), and a session's with one agent: where several hold messages, give
    the state of one. A compressed summary comes first, as AgentScope puts it before the conversation. Of 2.x, a
    `tool_call` is a call, `data` a medium by its media type, and a `hint` a user message of its own; calls and
    results that one message holds are parted. What Anthropic, Gemini and OpenAI bind their thinking to is kept,
    for them alone. Keys without a field are metadata. Raises MessageError for what is no dump.
    """
    state = make_json_safe(found, "log", _dumped)
    messages, summary = _messages(state)
    loaded = list(_summary(summary))
    for at, one in enumerate(messages):
        message, marks = _marked(one)
        if not isinstance(message, dict):
            raise MessageError(f"messages[{at}]", "it is no message", "Give AgentScope's message dicts.")
        check_log_message(cast("dict[str, Any]", message), f"messages[{at}]", ("content",), (), _FORMS, "type")
        msgs = list(_load(cast("dict[str, Any]", message), marks, f"messages[{at}]"))
        if all(isinstance(block, InvalidBlock) for msg in msgs for block in msg.blocks):
            check_log_format(cast("dict[str, Any]", message), f"messages[{at}]", "agentscope anthropic")
        loaded += msgs
    return loaded


def _dumped(found: Any) -> Any:
    """Messages of 1.x are no pydantic models: they have `to_dict`, memories and agents `state_dict`."""
    dump = getattr(found, "model_dump", None)
    if callable(dump):
        try:
            return dump(mode="json", warnings=False)  # unset fields as well: `type` is a default
        except ValueError:  # a lone surrogate
            return dump(warnings=False)
    plain = getattr(found, "to_dict", None) or getattr(found, "state_dict", None)
    return plain() if callable(plain) else found


def _messages(state: object) -> tuple[list[Any], object]:
    """The messages in a state, and the summary of those that are gone."""
    if isinstance(state, list):
        return cast("list[Any]", state), None
    held = _holder(as_object(state))
    if held is None:
        raise MessageError("messages", "there is no list of messages", describe_log_format(state))
    if "role" in held:
        return [held], None
    if isinstance(held.get("messages"), list):
        check_log_request(held, ("messages",))
    messages = next(as_list(held[key]) for key in _LISTS if isinstance(held.get(key), list))
    return messages, held.get("_compressed_summary") or held.get("summary")


_FORMS = "agentscope anthropic langchain openai openai-responses"
"""Forms whose content blocks are read, or kept as InvalidBlock with their data."""

_LISTS = ("content", "context", "messages", "observed_context")
"""Under which a memory, an agent of 2.x, and an agent of another service have their messages."""
_AROUND = ("memory", "state", "agent")


_DEPTH = 5
"""How deep in a session's state an agent's messages are: `{agent: {"memory": {"content": …}}}`, and some more."""


def _holder(held: dict[str, Any], depth: int = _DEPTH) -> dict[str, Any] | None:
    """The object in a state that holds the messages, or is the only one."""
    if not held or not depth:
        return None
    if ("role" in held and "name" in held) or any(isinstance(held.get(key), list) for key in _LISTS):
        return held
    for key in _AROUND:
        inner = _holder(as_object(held.get(key)), depth - 1)
        if inner is not None:
            return inner
    others = ((key, _holder(as_object(item), depth - 1)) for key, item in held.items())
    found = {key: inner for key, inner in others if inner is not None}
    if len(found) > 1:
        reason = f"several hold messages: {', '.join(map(repr, found))}"
        raise MessageError("messages", reason, "Give the state of one of them.")
    return next(iter(found.values()), None)


def _summary(found: object) -> Iterator[Msg]:
    """The summary as the user message that AgentScope makes of it."""
    content = found if isinstance(found, str) else [_block(as_object(one)) for one in as_list(found)]
    if content:
        stored = {"name": "user", "role": "user", "content": content, "metadata": {"compressed_summary": True}}
        yield load_message(stored, "summary")


def _marked(found: Any) -> tuple[Any, list[Any]]:
    """A message and its marks: memories keep them as a pair."""
    pair = as_list(found)
    if len(pair) == 2 and isinstance(pair[0], dict):
        return cast("Any", pair[0]), as_list(pair[1])
    return found, []


def _load(message: dict[str, Any], marks: list[Any], place: str) -> Iterator[Msg]:
    """A message as one or several of ours."""
    stored = {
        key: item for key, item in message.items() if item is not None and key not in ("usage", "created_at")
    }
    stored.setdefault("name", as_text(message.get("role")))
    stored.setdefault("content", message.get("content"))
    if not stored.get("metadata"):
        stored.pop("metadata", None)
    if as_text(message.get("created_at")):
        stored.setdefault("timestamp", message["created_at"])
    if marks:
        stored["marks"] = marks
    usage = _usage(as_object(message.get("usage")))
    if usage:
        stored["metadata"] = {**as_object(stored.get("metadata")), "reply": {"usage": usage}}
    if not isinstance(stored["content"], list):
        yield load_message(stored, place)
        return
    content = _once(cast("list[Any]", stored["content"]))
    blocks = [_block(one) if isinstance(one, dict) else one for one in content]
    for number, (kind, run) in enumerate(_runs(blocks) or [("said", [])]):
        yield _part_of(stored, kind, run, number, place)


def _once(content: list[Any]) -> list[Any]:
    """The blocks of a message; of those that a reasoning item of OpenAI's was parted into, the first: each of them
    has the whole item.
    """
    seen: set[str] = set()
    kept: list[Any] = []
    for block in content:
        item = as_text(as_object(as_object(block).get(_ITEM)).get("id"))
        if not item or item not in seen:
            kept.append(block)
        seen.add(item)
    return kept


def _usage(found: dict[str, Any]) -> dict[str, Any]:
    """The tokens of a message of 2.x, in our words (agentscope: `Usage`)."""
    if not found:
        return {}
    names = {"cache_read_tokens": "cache_input_tokens", "cache_write_tokens": "cache_creation_input_tokens"}
    return {name: found.get(names.get(name, name), 0) for name in ("input_tokens", "output_tokens", *names)}


def _runs(blocks: list[Any]) -> list[tuple[str, list[Any]]]:
    """The blocks in their order, parted where results or hints begin or end, each hint by itself."""
    runs: list[tuple[str, list[Any]]] = []
    for block in blocks:
        kind = {"tool_result": "results", "hint": "hint"}.get(as_text(as_object(block).get("type")), "said")
        if not runs or runs[-1][0] != kind or kind == "hint":
            runs.append((kind, []))
        runs[-1][1].append(block)
    return runs


def _part_of(stored: dict[str, Any], kind: str, run: list[Any], number: int, place: str) -> Msg:
    """One run as a message: the first has the message's id and all else that it says."""
    own = stored if not number else {"name": stored["name"], "role": stored.get("role")}
    if kind == "said":
        return load_message({**own, "content": run}, place)
    if kind == "hint":
        hint = as_object(run[0])
        content = hint.get("hint")
        content = content if isinstance(content, str) else [_block(as_object(one)) for one in as_list(content)]
        name = as_text(hint.get("source")) or "user"
        return load_message({**own, "name": name, "role": "user", "content": content}, place)
    role = "system" if number or stored.get("role") == "assistant" else stored.get("role")
    return load_message({**own, "name": "system" if number else own["name"], "role": role, "content": run}, place)


# -- blocks of 2.x --------------------------------------------------------------------------------------------

_FAILED = frozenset({"error", "interrupted", "denied"})


_ITEM = "reasoning_item_raw"
_GEMINI = "gemini_ts:"
"""Before the signature of a call of Gemini's, which AgentScope 2.x keeps as the call's id."""


def _block(block: Any) -> Any:
    """A block of 2.x in the form of 1.x; those of 1.x as they are."""
    found = as_object(block)
    kind = found.get("type")
    if kind == "tool_call":
        return _call(found)
    if kind == "data":
        return _medium(found)
    if kind == "thinking":
        return _thinking(found)
    if kind == "tool_result":
        return _result(found)
    return found or block


def _call(found: dict[str, Any]) -> dict[str, Any]:
    made = {key: item for key, item in found.items() if key != "state"}
    made |= {"type": "tool_use", "input": found.get("input") or {}, "call_state": found.get("state")}
    signature = as_text(found.get("id"))
    if signature.startswith(_GEMINI):
        made["state"] = {"issuer": "gemini", "thought_signature": signature.removeprefix(_GEMINI)}
    return made


_PROOFS = ("signature", "redacted_thinking_data", "reasoning_item_id", _ITEM)


def _thinking(found: dict[str, Any]) -> Any:
    """Thinking with what its issuer binds it to, of which AgentScope keeps Anthropic's and OpenAI's."""
    rest = {key: item for key, item in found.items() if key not in _PROOFS}
    if as_text(as_object(found.get(_ITEM)).get("type")) == "reasoning":
        return _reasoning(found[_ITEM]) or rest
    if as_text(found.get("reasoning_item_id")):
        return {**rest, "state": {"issuer": "openai", "item_id": found["reasoning_item_id"]}}
    if as_text(found.get("redacted_thinking_data")):
        return {**rest, "state": {"issuer": "anthropic", "redacted_data": found["redacted_thinking_data"]}}
    signature = as_text(found.get("signature"))  # empty where there was none
    return {**rest, "signature": signature} if signature else rest


def _reasoning(item: object) -> Any:
    """The thinking that a reasoning item is, as the wire's own loader reads it."""
    load = load_provider("openai-responses").load_native
    return load([item])[0].blocks[0] if load is not None else None


def _result(found: dict[str, Any]) -> dict[str, Any]:
    output = found.get("output")
    made = {key: item for key, item in found.items() if key != "metadata" or item}
    if isinstance(output, list):
        made["output"] = [_block(one) for one in cast("list[Any]", output)]
    if as_text(found.get("state")) in _FAILED:
        made["is_error"] = True
    return made


def _medium(found: dict[str, Any]) -> dict[str, Any]:
    """A medium by its media type; what is neither picture, sound nor film is a document."""
    source = as_object(found.get("source"))
    family = as_text(source.get("media_type")).partition("/")[0]
    kind = family if family in ("image", "audio", "video") else "document"
    made = {key: item for key, item in found.items() if item is not None and key != "name"}
    title = {"title": found["name"]} if kind == "document" and found.get("name") else {}
    return {**made, **title, "type": kind}
