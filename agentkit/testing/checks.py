"""`check_provider`: what must hold of any provider, checked on what it offers, in a provider's own tests."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, cast

from agentkit.errors import LossError, check_option
from agentkit.formatting import FormatterBase
from agentkit.ledger import Plan
from agentkit.messages import Msg
from agentkit.registry import Provider, load_provider
from agentkit.testing.conversations import CONVERSATIONS
from agentkit.testing.reply_checks import Sample, reply_faults

__all__ = ["ConformanceError", "check_provider"]


class ConformanceError(AssertionError):
    """A provider does not do what every provider must. `faults` are sentences that say what, and where."""

    def __init__(self, provider: str, faults: Sequence[str]) -> None:
        self.provider = provider
        self.faults = tuple(faults)
        listed = "\n".join(f"  {fault}" for fault in faults)
        super().__init__(f"{provider} fails {len(faults)} of the checks of agentkit:\n{listed}")


def check_provider(provider: Provider | str, *, samples: Sequence[Sample] = (), model: str | None = None) -> None:
    """Check a provider's formatters, and its parser and `load_native` where it has them.

    Requests of sound and broken conversations must be pure (inputs stay as they are, the same input gives the
    same JSON, nothing is shared), pair calls with results, and conserve what was said, or say in the ledger what
    was lost. `samples` are native replies, each whole and as its events (dicts, or raw bytes of the stream): both
    must be read as the same message, in any chunking. A request must be loaded as the messages that give it again.

    Raises ConformanceError, an AssertionError that lists all that fails.
    """
    check_option("provider", provider, str | Provider)
    found = load_provider(provider) if isinstance(provider, str) else provider
    faults = [*_request_faults(found, model), *reply_faults(found, samples)]
    try:
        faults += _native_faults(found, model)
    except Exception as error:
        faults.append(f"load_native: raises {type(error).__name__}: {error}")
    if faults:
        raise ConformanceError(found.name, faults)


Check: TypeAlias = Callable[[FormatterBase, list[Msg]], Iterator[str]]


def _request_faults(provider: Provider, model: str | None) -> Iterator[str]:
    for kind in (provider.chat, provider.multi_agent):
        for name, msgs in CONVERSATIONS.items():
            for check in _CHECKS:
                where = f"{kind.__name__}, {name}, {check.__name__.strip('_')}"
                try:
                    yield from (f"{where}: {fault}" for fault in check(kind(model), msgs))
                except Exception as error:
                    yield f"{where}: raises {type(error).__name__}: {error}"


# -- requests ---------------------------------------------------------------------------------------------------


def _purity(formatter: FormatterBase, msgs: list[Msg]) -> Iterator[str]:
    before = [msg.to_dict() for msg in msgs]
    first = formatter.lower(msgs).request
    text = _text(first)
    if [msg.to_dict() for msg in msgs] != before:
        yield "the messages were changed"
    if _text(formatter.lower(msgs).request) != text:
        yield "the same conversation gives another request the second time"
    _empty(first)
    if _text(formatter.lower(msgs).request) != text:
        yield "a request shares its containers with the next: changing one changes the other"
    if _text(type(formatter)(formatter.model).lower(msgs).request) != text:
        yield "a fresh formatter gives another request"


def _text(request: Mapping[str, Any]) -> str:
    return json.dumps(request, ensure_ascii=False, allow_nan=False)


def _empty(found: object) -> None:
    """Empty every container, the innermost first."""
    inner = cast("Any", found)
    if isinstance(found, dict | list):
        for one in [*(inner.values() if isinstance(found, dict) else inner)]:
            _empty(one)
        inner.clear()


def _pairing(formatter: FormatterBase, msgs: list[Msg]) -> Iterator[str]:
    plan = formatter.lower(msgs)
    text = _text(plan.request)
    asked, answered = _marks("call", text), _marks("result", text)
    for msg in msgs:
        for use in msg.tool_uses:
            mark = str(use.input["place"])
            yield from _misplaced(mark, "result" + mark.removeprefix("call"), asked, answered, _results_of(msgs))
    if "resultOfNothing" in _results_of(msgs):
        if "resultOfNothing" not in answered:
            yield "the content of a result without a call is not sent"
        if not plan.ledger.losses:
            yield "the ledger does not call a result without a call a loss"


def _results_of(msgs: Sequence[Msg]) -> set[str]:
    return {found for msg in msgs for block in msg.tool_results for found in _marks("result", block.text)}


def _misplaced(
    call: str, result: str, asked: Mapping[str, list[int]], answered: Mapping[str, list[int]], given: set[str]
) -> Iterator[str]:
    calls, results = asked.get(call, []), answered.get(result, [])
    if len(calls) != 1:
        yield f"the call with {call!r} is sent {len(calls)} times"
    elif result in given and len(results) != 1:
        yield f"the result {result!r} is sent {len(results)} times"
    elif result in given and results[0] < calls[0]:
        yield f"the result {result!r} stands before its call"


def _conservation(formatter: FormatterBase, msgs: list[Msg]) -> Iterator[str]:
    plan = formatter.lower(msgs)
    places = Counter(entry.place for entry in plan.ledger.entries)
    wanted = [f"msgs[{at}].content[{n}]" for at, msg in enumerate(msgs) for n, _ in enumerate(msg.blocks)]
    for place in wanted:
        if places[place] != 1:
            yield f"the ledger has {places[place]} entries for {place}"
    yield from _lost(plan, msgs)
    yield from _unraised(formatter, plan, msgs)


def _lost(plan: Plan, msgs: Sequence[Msg]) -> Iterator[str]:
    sent = _marks("mark", _text(plan.request))
    fates = {entry.place: entry.disposition.word for entry in plan.ledger.entries}
    for at, msg in enumerate(msgs):
        for number, block in enumerate(msg.blocks):
            place, count = f"msgs[{at}].content[{number}]", 0
            for mark in _marks("mark", getattr(block, "text", "")):
                count = len(sent.get(mark, []))
                if count > 1:
                    yield f"{mark!r} of {place} is sent {count} times"
                if not count and fates.get(place) != "dropped":
                    yield f"{mark!r} of {place} is not sent, and the ledger does not say that it was dropped"


def _unraised(formatter: FormatterBase, plan: Plan, msgs: list[Msg]) -> Iterator[str]:
    strict = type(formatter)(formatter.model, on_loss="raise")
    try:
        strict.lower(msgs)
    except LossError:
        if not plan.ledger.losses:
            yield 'on_loss="raise" raises, and the ledger has no loss'
    else:
        if plan.ledger.losses:
            yield f'on_loss="raise" lets a loss pass: {plan.ledger.losses[0]}'


def _order(formatter: FormatterBase, msgs: list[Msg]) -> Iterator[str]:
    """What was said stands in the order in which it was said, the system's words apart."""
    text = _text(formatter.lower(msgs).request)
    sent = {mark: places[0] for mark, places in _marks("mark", text).items()}
    said = [mark for msg in msgs if msg.role != "system" for mark in _marks("mark", msg.text)]
    found = [mark for mark in said if mark in sent]
    if found != sorted(found, key=sent.__getitem__):
        yield f"the order {sorted(found, key=sent.__getitem__)} is not that of the conversation"


def _marks(kind: str, text: str) -> dict[str, list[int]]:
    """The marks of a kind in a text, with their places."""
    found: dict[str, list[int]] = {}
    for match in re.finditer(rf"\b{kind}[A-Z][A-Za-z]*", text.replace("\\n", "\n ")):
        found.setdefault(match[0], []).append(match.start())
    return found


_CHECKS: Final[tuple[Check, ...]] = (_purity, _pairing, _conservation, _order)


# -- logs -------------------------------------------------------------------------------------------------------


def _native_faults(provider: Provider, model: str | None) -> Iterator[str]:
    if provider.load_native is None:
        return
    for name, said in CONVERSATIONS.items():
        msgs = [replace(msg, name=re.sub(r"\W+", "", msg.name)) for msg in said]  # as every field takes them
        request = provider.chat(model).lower(msgs).request
        text = _text(request)
        loaded = provider.load_native(request)
        if _text(request) != text:
            yield f"load_native, {name}: the request was changed"
        if _text(provider.chat(model).lower(loaded).request) != text:
            yield f"load_native, {name}: the messages that were loaded give another request"
