"""Script that runs cases in one version of agentkit: a case per input line, its records per output line, as JSON.

The script runs in both versions. It imports nothing of this repository but agentkit's public names, and finds each
name in its present or its former spelling.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from hashlib import sha256
from importlib import import_module
from inspect import signature
from typing import Any, Final, TypeAlias, cast

import anyio

__all__ = ["main"]

Record: TypeAlias = dict[str, Any]

# -- names -----------------------------------------------------------------------------------------------------

_MODULES: Final = ("agentkit", "agentkit.provider_kit")

_NAMES: Final = {
    "Stepped": "OldestFirstInSteps",
    "Summarise": "Summarize",
    "load_tools": "load_request_options",
    "tools_left_out": "list_server_tools",
}
"""Former names of what agentkit exports, with their present names."""

_MEMBERS: Final = {
    "chat": "chat_formatter",
    "kept": "required",
    "found": "version",
    "kind": "block_type",
    "multi_agent": "multi_agent_formatter",
    "said": "provider_message",
    "tags": "tag",
    "others_tools": "other_agents_tools",
    "write": "summarizer",
}
"""Former names of attributes and parameters, with their present names."""


def _find(name: str) -> Any:
    """Returns an exported object by its former name."""
    for module in _MODULES:
        for known in (_NAMES.get(name, name), name):
            try:
                return getattr(import_module(module), known)
            except (AttributeError, ModuleNotFoundError):
                continue
    raise LookupError(f"{name}: no module of agentkit exports this name, nor its present name")


def _get(owner: Any, name: str) -> Any:
    """Returns an attribute by its former name."""
    present = _MEMBERS.get(name, name)
    return getattr(owner, present) if hasattr(owner, present) else getattr(owner, name)


def _build(name: str, options: Mapping[str, Any]) -> Any:
    """Creates an object of an exported class from options with their former names."""
    made = _find(name)
    known = signature(made).parameters
    return made(**{key if key in known else _MEMBERS.get(key, key): value for key, value in options.items()})


# -- values as JSON --------------------------------------------------------------------------------------------


def _as_json(value: Any) -> Any:
    """Returns a value as JSON values; an object that JSON does not know becomes its class."""
    match value:
        case None | str() | bool() | float():
            return value
        case int():
            estimated: Any = getattr(value, "estimated", None)  # of a TokenCount
            return int(value) if estimated is None else {"tokens": int(value), "estimated": list(estimated)}
        case Mapping():
            pairs: Any = cast("Any", value).items()
            return {str(key): _as_json(item) for key, item in pairs}
        case list() | tuple():
            return [_as_json(item) for item in cast("Any", value)]
        case set() | frozenset():
            return sorted(map(str, cast("Any", value)))
        case _:
            return value.to_dict() if hasattr(value, "to_dict") else f"<{type(value).__name__}>"


def _dump(messages: Sequence[Any]) -> Any:
    return _shorten(_find("dump_messages")(messages)["messages"])


_TEXT_FIELDS: Final = ("reason", "advice", "provider_message")


def _describe_error(error: BaseException) -> Record:
    """Returns the class and the facts of an error, with its texts apart."""
    facts: dict[str, Any] = {}
    texts: dict[str, Any] = {"": str(error)}
    if isinstance(error, _find("AgentkitError")):
        attributes = {_MEMBERS.get(name, name): value for name, value in vars(error).items()}
        for name, value in sorted(attributes.items()):
            (texts if name in _TEXT_FIELDS else facts)[name] = _as_json(value)
    return {"error": type(error).__name__, "facts": facts, "texts": texts}


@contextmanager
def _recording(record: Record) -> Generator[None]:
    """Puts an exception of the body into the record."""
    try:
        yield
    except Exception as error:
        record.update(_describe_error(error))


# -- conversations ---------------------------------------------------------------------------------------------


def _load(case: Mapping[str, Any]) -> list[Any]:
    messages = _find("load_messages")(case["messages"])
    if not case.get("constructors"):
        return list(messages)
    return [_construct(message) for message in messages]


def _construct(message: Any) -> Any:
    """Returns the message made by constructors, where it consists of ordinary blocks."""
    blocks: Any = message.content
    if not isinstance(blocks, str):
        blocks = [_construct_block(block) for block in blocks]
    return _find("Msg")(
        message.name,
        blocks,
        message.role,
        id=message.id,
        timestamp=message.timestamp,
        metadata=message.metadata,
        pinned=message.pinned,
    )


def _construct_block(block: Any) -> Any:
    if block.metadata is not None:
        return block
    if block.type == "text":
        return _find("TextBlock")(block.text, state=block.state)
    if block.type == "thinking":
        return _find("ThinkingBlock")(block.thinking, block.state)
    if block.type == "tool_use":
        return _find("ToolUseBlock")(block.id, block.name, block.input, block.raw_input, block.state)
    if block.type == "tool_result":
        return _find("ToolResultBlock")(block.id, block.name, block.output, block.is_error)
    if block.type == "image" and block.state is None and block.source.type == "url":
        return _find("ImageBlock").from_url(block.source.url, block.source.media_type)
    return block


async def _run_conversation(case: Mapping[str, Any]) -> list[Record]:
    loaded: Record = {}
    messages: list[Any] = []
    with _recording(loaded):
        messages = _load(case)
        loaded["messages"] = _dump(messages)
    requests = case["requests"] if messages else ()
    return [loaded, *[await _run_request(messages, options) for options in requests]]


async def _run_request(
    messages: list[Any], options: Mapping[str, Any], loaded: Mapping[str, Any] | None = None
) -> Record:
    """Runs one request; `loaded` holds the options that came with a log."""
    record: Record = {}
    with _recording(record):
        formatter = _build_formatter(options)
        own = {key: options[key] for key in ("tools", "tool_choice", "response_format") if key in options}
        wanted: dict[str, Any] = {**(loaded or {}), **own}
        if "before" in options:
            earlier: Record = {}
            with _recording(earlier):
                earlier |= _describe_plan(
                    await formatter.plan(messages[: options["before"]], **wanted), messages, options
                )
            record["earlier"] = earlier
        if "adopted" in options:
            record["steps"] = await _adopt_histories(formatter, messages, options, wanted)
        if options.get("synchronous"):
            plan = formatter.lower(messages, **wanted)
        else:
            plan = await formatter.plan(messages, **wanted)
        record |= _describe_plan(plan, messages, options)
    return record


async def _adopt_histories(
    formatter: Any, messages: Sequence[Any], options: Mapping[str, Any], wanted: Mapping[str, Any]
) -> list[Any]:
    """Plays a conversation in which the application goes on with the history of each plan."""
    history: list[Any] = []
    steps: list[Any] = []
    size = options["adopted"]
    for start in range(0, len(messages), size):
        history += messages[start : start + size]
        step: Record = {}
        with _recording(step):
            plan = await formatter.plan(history, **wanted)
            step = {
                "request": _shorten(plan.request),
                "tokens": _as_json(plan.tokens),
                "cut": _describe_cut(plan.cut),
            }
            history = list(plan.history)
        steps.append(step)
    return steps


def _build_formatter(options: Mapping[str, Any]) -> Any:
    provider = _find("load_provider")(options["provider"])
    made = _get(provider, "chat" if options["form"] == "chat" else "multi_agent")
    given: dict[str, Any] = {"on_loss": options["on_loss"]}
    if "history" in options:
        given["history"] = _build_history(options["history"])
    if "budget" in options:
        given["budget"] = _build_budget(options["budget"])
    if "model_rules" in options:
        given["model_rules"] = _build("ModelRules", options["model_rules"])
    for name in ("cache_breakpoints", "spoken_replies", "path", "media_roots"):
        if name in options:
            given[name] = options[name]
    return made(options["model"], **given)


def _build_history(options: Mapping[str, Any]) -> Any:
    given = dict(options)
    if "custom" in given:
        return _create_policy()
    if "visible" in given:
        given["visible"] = _create_filter(given["visible"])
    return _build("MultiAgentHistory", given)


def _create_policy() -> Any:
    """Returns a history policy of an application, which omits and rewrites messages."""

    def view(self: object, messages: Sequence[Any]) -> list[Any]:
        own = [_find("Msg")("Bob", f"{len(messages)} messages so far.", "user")]
        return [*own, *(message for message in messages if len(message.name) != 5 or message.tool_uses)]

    return type("CustomHistory", (_find("HistoryPolicy"),), {"view": view})()


def _create_filter(letter: str) -> Callable[[Any], bool]:
    """Returns a function that hides the messages of speakers whose name begins with this letter."""

    def is_visible(message: Any) -> bool:
        return not message.name.startswith(letter)

    return is_visible


def _describe_plan(plan: Any, messages: Sequence[Any], options: Mapping[str, Any]) -> Record:
    numbers = {id(message): number for number, message in enumerate(messages)}
    return {
        "request": _shorten(plan.request),
        "tokens": _as_json(plan.tokens),
        "cut": _describe_cut(plan.cut),
        "entries": [_describe_entry(entry) for entry in plan.ledger.entries],
        "syntheses": [[made.name, made.reason] for made in plan.ledger.syntheses],
        "losses": _as_json(plan.ledger.losses),
        "history": [numbers[id(msg)] if id(msg) in numbers else _dump([msg])[0] for msg in plan.history],
        "call_ids": plan.call_ids,
        "tool_names": plan.tool_names,
        "frames": _read_frames(plan) if options["form"] != "chat" else None,
        "digest": _call_with_provider("prefix_digest", plan.request, options["provider"]),
    }


_LONG: Final = 20_000


def _shorten(value: Any) -> Any:
    """Returns JSON values with the digest of each long text in its place."""
    if isinstance(value, str):
        if len(value) <= _LONG:
            return value
        return f"<{len(value)} characters {sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}>"
    if isinstance(value, dict):
        return {key: _shorten(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_shorten(item) for item in cast("list[Any]", value)]
    return value


def _describe_entry(entry: Any) -> list[Any]:
    return [entry.place, entry.kind, str(entry.disposition), entry.lost, entry.reason, list(entry.details)]


def _describe_cut(cut: Any) -> Any:
    if cut is None:
        return None
    return {
        "numbers": list(cut.numbers),
        "dropped": list(cut.dropped),
        "units": cut.units,
        "tokens": cut.tokens,
        "altered": list(cut.altered),
        "uncached": cut.uncached,
        "thinking": list(cut.thinking),
    }


def _read_frames(plan: Any) -> Any:
    record: Record = {}
    with _recording(record):
        return _as_json(_find("read_history")(plan))
    return record


# -- budgets ---------------------------------------------------------------------------------------------------


def _build_budget(options: Mapping[str, Any]) -> Any:
    given = dict(options)
    if "counter" in given:
        given["counter"] = _COUNTERS[given["counter"]]()
    if "strategy" in given:
        strategies = [_build_strategy(name, more) for name, more in given["strategy"]]
        given["strategy"] = strategies if len(strategies) > 1 else strategies[0]
    return _build("Budget", given)


def _build_strategy(name: str, options: Mapping[str, Any]) -> Any:
    return _build(name, {**options, "write": _summarize} if name == "Summarise" else options)


async def _summarize(messages: Sequence[Any]) -> str:
    return f"Summary of {len(messages)} messages, the first by {messages[0].name!r}."


def _create_byte_counter() -> Any:
    """Returns a counter that stands for a remote one: it knows no weights of messages."""

    async def count(self: object, request: Mapping[str, Any]) -> int:
        return len(json.dumps(request))

    return type("ByteCounter", (_find("TokenCounterBase"),), {"count": count})()


def _create_word_counter() -> Any:
    """Returns a local counter of an application."""

    def measure(self: object, request: Mapping[str, Any]) -> int:
        return len(json.dumps(request).split())

    def weigh(self: object, message: Any) -> int:
        return 3 + len(json.dumps(_as_json(message)).split())

    return type("WordCounter", (_find("LocalTokenCounter"),), {"measure": measure, "weigh": weigh})()


_COUNTERS: Final[dict[str, Callable[[], Any]]] = {"bytes": _create_byte_counter, "words": _create_word_counter}

# -- streams and replies ---------------------------------------------------------------------------------------


async def _run_streams(case: Mapping[str, Any]) -> list[Record]:
    return [_run_stream(run) for run in case["runs"]]


def _run_stream(run: Mapping[str, Any]) -> Record:
    parser = _find("load_provider")(run["provider"]).parser
    record: Record = {}
    with _recording(record):
        if "reply" in run:
            record["message"] = _dump([parser.parse_response(_read_chunk(run["reply"]), **run["options"])])
        else:
            record |= _feed(parser(**run["options"]), run["chunks"])
    return record


def _feed(parser: Any, chunks: Sequence[Any]) -> Record:
    events: list[Any] = []
    errors: list[Record] = []
    for chunk in chunks:
        refused: Record = {}
        with _recording(refused):
            events.append([_describe(event) for event in parser.feed(_read_chunk(chunk))])
        errors += [refused] if refused else []
    before = [parser.is_complete, str(parser.finish_reason)]
    message = parser.finish()
    return {
        "events": events,
        "errors": errors,
        "before": before,
        "after": [_describe(event) for event in parser.drain()],
        "message": _dump([message]),
        "usage": _describe(parser.usage),
        "finish_reason": str(parser.finish_reason),
    }


def _read_chunk(chunk: Mapping[str, Any]) -> Any:
    if "bytes" in chunk:
        return b64decode(chunk["bytes"])
    return chunk["text"] if "text" in chunk else chunk["value"]


def _describe(value: Any) -> Any:
    """Returns an event, or what an event holds, as JSON values."""
    if type(value).__name__.endswith("Block"):
        return _dump([_find("Msg")("x", [value], "assistant")])[0]["content"][0]
    if not is_dataclass(value):
        return _as_json(value)
    held = {field.name: getattr(value, field.name) for field in fields(value) if field.repr}
    described = {name: _describe(item) for name, item in held.items()}
    if described.get("type") == "tool-use-delta":
        described["input"] = _as_json(cast("Any", value).input)
    return described


# -- logs ------------------------------------------------------------------------------------------------------


async def _run_logs(case: Mapping[str, Any]) -> list[Record]:
    return [await _run_log(log) for log in case["logs"]]


async def _run_log(log: Mapping[str, Any]) -> Record:
    record: Record = {}
    messages: list[Any] = []
    given = json.dumps(log["log"]) if log["as_text"] else log["log"]
    with _recording(record):
        messages = _find("load_native")(log["provider"], given)
        record["messages"] = _dump(messages)
    wanted: Record = {}
    with _recording(record.setdefault("options", {})):
        wanted = dict(_call_with_log("load_tools", log["log"], log["provider"]))
        record["options"] = _describe(wanted)
    with _recording(record.setdefault("server_tools", {})):
        record["server_tools"] = _describe(_call_with_log("tools_left_out", log["log"], log["provider"]))
    with _recording(record.setdefault("markers", {})):
        record["markers"] = _describe(_call_with_log("list_cache_markers", log["log"], log["provider"]))
    if messages:
        record["formatted"] = [await _run_request(messages, options, wanted) for options in log["formats"]]
    return record


def _call_with_provider(name: str, request: Any, provider: str) -> Any:
    """Calls a function of a request that may need the provider, too."""
    function = _find(name)
    if len(signature(function).parameters) == 1:
        return function(request)
    return function(request, _find("load_provider")(provider))


def _call_with_log(name: str, log: Any, provider: str) -> Any:
    """Calls a function of a log. The version before the restructuring does not take the provider."""
    function = _find(name)
    return function(log) if len(signature(function).parameters) == 1 else function(provider, log)


# -- the loop over cases ---------------------------------------------------------------------------------------

_KINDS: Final[dict[str, Callable[[Mapping[str, Any]], Awaitable[list[Record]]]]] = {
    "conversations": _run_conversation,
    "stored": _run_conversation,
    "streams": _run_streams,
    "logs": _run_logs,
}


async def main() -> None:
    """Runs the cases of standard input, one by one."""
    for line in sys.stdin:
        case = json.loads(line)
        records = await _KINDS[case["kind"]](case)
        print(json.dumps(records, default=repr), flush=True)


if __name__ == "__main__":
    anyio.run(main)
