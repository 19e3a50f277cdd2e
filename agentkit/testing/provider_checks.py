"""`check_provider`: what must hold of any provider, checked on what it offers, in a provider's own tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from agentkit.argument_checks import check_option
from agentkit.errors import AgentkitError
from agentkit.formatting.formatter import FormatterBase
from agentkit.messages.message import Msg
from agentkit.models.registry import Provider, load_provider
from agentkit.testing.conversations import CONVERSATIONS
from agentkit.testing.endpoint_checks import endpoint_faults
from agentkit.testing.findings import collect_findings, describe_error, json_text
from agentkit.testing.formatter_checks import make_tools, option_faults
from agentkit.testing.parser_checks import ExpectedSample, Sample, reply_faults
from agentkit.testing.request_checks import request_faults

__all__ = ["ConformanceError", "check_provider"]


class ConformanceError(AssertionError):
    """A provider does not do what every provider must. `faults` are sentences that say what, and where."""

    def __init__(self, provider: str, faults: Sequence[str]) -> None:
        self.provider = provider
        self.faults = tuple(faults)
        listed = "\n".join(f"  {fault}" for fault in faults)
        super().__init__(f"{provider} fails {len(faults)} of the checks of agentkit:\n{listed}")


def check_provider(
    provider: Provider | str, *, samples: Sequence[Sample | ExpectedSample] = (), model: str | None = None
) -> None:
    """Checks a provider's formatters, and its parser, endpoint and `load_native` where it has them.

    Requests of sound and broken conversations must be pure (inputs stay as they are, the same input gives the
    same JSON, nothing is shared, no I/O), pair calls with results, and hold what the ledger says that they hold:
    texts, media, thinking, names, roles, arguments, tools, the tool choice, the answer's form. An endpoint must
    send the request, the model and the parameters, and judge any error. A request must be loaded as the messages
    that give it again, and anything else must be loaded or refused by an AgentkitError.

    `samples` are native replies, each whole and as its events (dicts, or raw bytes of the stream), and perhaps the
    message that they say: all must be read as the same message, in any chunking, with all of its texts, its
    arguments, its usage and its finish reason.

    Raises ConformanceError, an AssertionError that lists all that fails. What a provider raises is among it.
    """
    check_option("provider", provider, str | Provider)
    found = load_provider(provider) if isinstance(provider, str) else provider
    faults = [*dict.fromkeys(_faults(found, samples, model))]
    if faults:
        raise ConformanceError(found.name, faults)


def _faults(provider: Provider, samples: Sequence[Sample | ExpectedSample], model: str | None) -> Iterator[str]:
    for kind in (provider.chat_formatter, provider.multi_agent_formatter):
        refusals = [*collect_findings(kind.__name__, _construction_faults(kind, model))]
        yield from refusals
        if refusals:
            continue
        yield from request_faults(kind, model)
        yield from option_faults(kind, model)
    yield from reply_faults(provider, samples)
    yield from endpoint_faults(provider)
    if provider.load_native is not None:
        yield from collect_findings("load_native", _native_faults(provider, model))


def _construction_faults(kind: type[FormatterBase], model: str | None) -> Iterator[str]:
    """A formatter needs no option but the model."""
    if kind(model).model != model:
        yield f"the formatter for the model {model!r} has another model"


# -- logs -------------------------------------------------------------------------------------------------------


def _native_faults(provider: Provider, model: str | None) -> Iterator[str]:
    for name, said in CONVERSATIONS.items():
        msgs = [replace(msg, name=re.sub(r"\W+", "", msg.name)) for msg in said]  # as every field takes them
        yield from collect_findings(name, _reloaded(provider, model, msgs))
    for value in _OTHER_FORMS:
        try:
            loaded = cast("Any", provider.load_native)(value)
        except AgentkitError:
            continue
        except Exception as error:
            yield f"{value!r} raises {describe_error(error)}, and no AgentkitError"
            continue
        if not isinstance(loaded, list) or not all(isinstance(msg, Msg) for msg in cast("list[object]", loaded)):
            kind = type(cast("object", loaded)).__name__
            yield f"{value!r} is loaded as a {kind}, and not as a list of Msg"


def _reloaded(provider: Provider, model: str | None, msgs: list[Msg]) -> Iterator[str]:
    request = provider.chat_formatter(model).lower(msgs, tools=make_tools()).request
    text = json_text(request)
    loaded = cast("Any", provider.load_native)(request)
    if json_text(request) != text:
        yield "the request was changed"
    if json_text(provider.chat_formatter(model).lower(loaded, tools=make_tools()).request) != text:
        yield "the messages that were loaded give another request"
    for mark, role in (("markAsked", "user"), ("markAnswer", "assistant")):
        if any(mark in msg.text and msg.role not in (role, "system") for msg in loaded):
            yield f"the turn of the {role} is loaded as another's"


_OTHER_FORMS: Final[tuple[Any, ...]] = (
    None,
    3,
    "text",
    {},
    [],
    [3],
    [None],
    [{}],
    {"messages": 3},
    [{"role": 3}],
    [{"role": "user"}],
    [{"role": "user", "content": 3}],
    [{"role": "user", "content": [None, 3, {"type": 3}]}],
)
