"""`check_provider`: conformance checks that the authors of a provider run in their tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from agentkit.argument_checks import check_option
from agentkit.errors import AgentkitError
from agentkit.formatting.formatter import FormatterBase
from agentkit.messages.blocks import InvalidBlock
from agentkit.messages.message import Msg
from agentkit.models.registry import Provider, load_provider
from agentkit.testing.conversations import CONVERSATIONS
from agentkit.testing.endpoint_checks import endpoint_faults
from agentkit.testing.findings import collect_findings, describe_error
from agentkit.testing.layout_checks import layout_faults
from agentkit.testing.option_probes import make_tools
from agentkit.testing.parser_checks import Sample, reply_faults
from agentkit.testing.request_checks import request_faults
from agentkit.testing.request_marks import json_text

__all__ = ["ConformanceError", "check_provider"]


class ConformanceError(AssertionError):
    """Error for a provider that fails at least one conformance check.

    Attributes:
        provider: Name of the provider.
        faults: Sentences that describe the faults. Each sentence begins with the place of the fault.
    """

    def __init__(self, provider: str, faults: Sequence[str]) -> None:
        self.provider = provider
        self.faults = tuple(faults)
        listed = "\n".join(f"  {fault}" for fault in faults)
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(f"the checks of the provider {provider!r} found {count}:\n{listed}")


def check_provider(
    provider: Provider | str,
    *,
    samples: Sequence[Sample] = (),
    model: str | None = None,
    formatter_options: Mapping[str, Any] | None = None,
) -> None:
    """Checks the formatters of a provider, and its parser, endpoint and `load_native` if they exist.

    The checks test these rules:

    - Building a request causes no I/O and does not change the conversation. The same conversation always
      results in the same JSON, and no two requests share lists or dicts. These rules also hold for invalid
      conversations.
    - A request pairs tool calls with results. The request contains all content that the ledger lists as sent:
      texts, media, thinking, names, roles and arguments. The request also contains the tools, the strict flag of
      each tool, the tool choice and the response format.
    - The wire layout matches the requests: turns, system prompt, tools, options, replies, results and media. The
      token count does not include ids and the fixed words of the API. If an error text of the API names a path in
      the request, the error is assigned to the right message.
    - The endpoint sends the request, the model and the parameters. Its classification of errors never raises an
      exception.
    - A request that is built from the messages of `load_native` equals the original request. For invalid input,
      `load_native` raises only `AgentkitError`. Content of an unexpected type is refused, or becomes an
      `InvalidBlock`.
    - The parser returns the same message for a complete reply and for its stream, however the stream is split. The
      message has all texts and arguments, the usage and the finish reason. At least one sample must report usage.

    Args:
        provider: Provider or its name.
        samples: Replies in the provider's wire format for the checks of the parser. Each sample is a tuple of a
            complete reply and its stream, which is a list of events or raw bytes. A third item may be a `Reply`
            with the expected message.
        model: Model for which requests are built. None means requests without a model name.
        formatter_options: Options that the formatters need, such as `{"template": ChatTemplate(…)}`. None means no
            options.

    Raises:
        ConformanceError: If a check fails. The error lists all faults, including exceptions from the provider's
            code.
        ProviderError: If no provider has this name.
    """
    check_option("provider", provider, str | Provider)
    check_option("formatter_options", formatter_options, Mapping | None)
    loaded = load_provider(provider) if isinstance(provider, str) else provider
    if formatter_options:
        chat, agents = loaded.chat_formatter, loaded.multi_agent_formatter
        loaded = replace(
            loaded,
            chat_formatter=_bind_options(chat, formatter_options),
            multi_agent_formatter=_bind_options(agents, formatter_options),
        )
    faults = [*dict.fromkeys(_find_faults(loaded, samples, model))]
    if faults:
        raise ConformanceError(loaded.name, faults)


def _bind_options(formatter_class: type[FormatterBase], bound: Mapping[str, Any]) -> type[FormatterBase]:
    """Returns a subclass whose constructor passes further options to the constructor of the formatter."""

    def init(self: FormatterBase, model: str | None = None, **options: Any) -> None:
        cast("Any", formatter_class).__init__(self, model, **{**bound, **options})

    return type(formatter_class.__name__, (formatter_class,), {"__init__": init})


def _find_faults(provider: Provider, samples: Sequence[Sample], model: str | None) -> Iterator[str]:
    for formatter_class in (provider.chat_formatter, provider.multi_agent_formatter):
        name = formatter_class.__name__
        faults = [*collect_findings(name, _find_construction_faults(formatter_class, model))]
        yield from faults
        if faults:
            continue
        yield from request_faults(formatter_class, model)
    yield from layout_faults(provider, model)
    yield from reply_faults(provider, samples)
    yield from endpoint_faults(provider)
    if provider.load_native is not None:
        yield from collect_findings("load_native", _find_log_faults(provider, model))


def _find_construction_faults(formatter_class: type[FormatterBase], model: str | None) -> Iterator[str]:
    """Checks that a formatter can be created with the model as its only argument, and that it stores the model."""
    actual = formatter_class(model).model
    if actual != model:
        yield f"the attribute `model` of a formatter is {actual!r}, expected {model!r}"


# -- logs -------------------------------------------------------------------------------------------------------


def _find_log_faults(provider: Provider, model: str | None) -> Iterator[str]:
    for name, conversation in CONVERSATIONS.items():
        # Names keep only letters, digits and underscores, because every API accepts these characters.
        msgs = [replace(msg, name=re.sub(r"\W+", "", msg.name)) for msg in conversation]
        yield from collect_findings(name, _check_reload(provider, model, msgs))
    yield from collect_findings("load_native", _check_unreadable_turn(provider, model))
    for value in _OTHER_VALUES:
        try:
            loaded = cast("Any", provider.load_native)(value)
        except AgentkitError:
            continue
        except Exception as error:
            yield f"loading {value!r} raises {describe_error(error)} instead of an AgentkitError"
            continue
        if not isinstance(loaded, list) or not all(isinstance(msg, Msg) for msg in cast("list[object]", loaded)):
            loaded_type = type(cast("object", loaded)).__name__
            yield f"{value!r} is loaded as {loaded_type!r} instead of a list of Msg"


def _check_reload(provider: Provider, model: str | None, msgs: list[Msg]) -> Iterator[str]:
    request = provider.chat_formatter(model).lower(msgs, tools=make_tools()).request
    text = json_text(request)
    loaded = cast("Any", provider.load_native)(request)
    if json_text(request) != text:
        yield "`load_native` changes the request"
    if json_text(provider.chat_formatter(model).lower(loaded, tools=make_tools()).request) != text:
        yield "a request that is built from the loaded messages differs from the original request"
    for mark, role in (("markAsked", "user"), ("markAnswer", "assistant")):
        if any(mark in msg.text and msg.role not in (role, "system") for msg in loaded):
            yield f"a turn with role {role!r} has a different role after loading"


def _check_unreadable_turn(provider: Provider, model: str | None) -> Iterator[str]:
    """Checks that a turn whose content is a number is refused, or is loaded with an `InvalidBlock`."""
    layout = provider.layout
    request = provider.chat_formatter(model).lower([Msg("Ann", "markAsked", "user")]).request
    turns = layout.read_turns(request)
    keys = [key for key in layout.parts if turns and key in turns[-1]]
    for key in keys:
        try:
            loaded = cast("Any", provider.load_native)({**request, layout.turns: [{**turns[-1], key: 3}]})
        except AgentkitError:
            continue
        if not any(isinstance(block, InvalidBlock) for msg in loaded for block in msg.blocks):
            yield f"a turn with the value 3 under {key!r} is loaded without an error and without an InvalidBlock"


_OTHER_VALUES: Final[tuple[Any, ...]] = (
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
