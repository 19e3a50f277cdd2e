"""`compare`: one conversation to many models at once, side by side; on record, so that it can be run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, Unpack, cast

import anyio

from agentkit.argument_checks import check_names, check_option
from agentkit.comparison.recordings import RecordedCall, RecordingFile, fingerprint
from agentkit.errors import AgentkitError, ModelError, OptionError
from agentkit.event_loop import run_to_completion
from agentkit.formatting.formatter import RequestOptions
from agentkit.ledger.plan import Plan
from agentkit.messages.message import Msg
from agentkit.messages.serialization import dump_message
from agentkit.messages.usage import Usage
from agentkit.models.chat_model import ChatModel
from agentkit.reprs import bounded_repr
from agentkit.tokens.counters import TokenCount

__all__ = ["ComparisonResult", "Price", "compare"]

_CLOSING = 5.0  # seconds that open connections have to say goodbye


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost, in whatever currency. What is read from a cache, or written to one, costs as
    any other token of the prompt unless said.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        for one in fields(self):
            amount: object = getattr(self, one.name)
            is_optional = one.name.startswith("cache_")
            if not (is_optional and amount is None) and not _is_amount(amount):
                reason = f"expected a number from 0 on, got {amount!r}"
                raise OptionError(f"price.{one.name}", reason, "Pass the price of a million tokens.")

    def cost(self, usage: Usage) -> float:
        """What a call cost."""
        plain = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        total = plain * self.input + usage.cache_read_tokens * read + usage.cache_write_tokens * write
        return (total + usage.output_tokens * self.output) / 1_000_000


def _is_amount(found: object) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < inf


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """One model's part of a comparison.

    label        what the model is called here
    plan         the request, its ledger, what was cut; None if none could be made
    tokens       the size of the prompt, counted before the call
    reply        what the model said; None if the call failed
    error        why the call failed, why no request could be made, or why a reply could not be put on record
    first_token  seconds from the request until the first piece of text, thinking or a call came; None if none did
    total        seconds until the end
    price        what the call cost, if a price was given and the provider reported its tokens
    fingerprint  the call's name in a recording
    replayed     whether reply, error and times come from a recording
    """

    label: str
    provider: str
    model: str
    plan: Plan | None = None
    tokens: TokenCount | None = None
    reply: Msg | None = None
    error: AgentkitError | None = None
    first_token: float | None = None
    total: float | None = None
    price: float | None = None
    fingerprint: str = ""
    replayed: bool = False

    __repr__ = bounded_repr

    def to_dict(self) -> dict[str, Any]:
        """The trial as JSON values."""
        error, usage = self.error, self.reply.usage if self.reply else None
        return {
            "label": self.label,
            "provider": self.provider,
            "model": self.model,
            "request": self.plan.request if self.plan else None,
            "ledger": self.plan.ledger.to_dict() if self.plan else None,
            "tokens": self.tokens,
            "tokens_estimated": bool(self.tokens is not None and self.tokens.estimated),
            "reply": dump_message(self.reply) if self.reply else None,
            "finish_reason": self.reply.finish_reason if self.reply else None,
            "usage": usage.to_dict() if usage else None,
            "error": {"class": type(error).__name__, "sentence": str(error)} if error else None,
            "first_token": self.first_token,
            "total": self.total,
            "price": self.price,
            "fingerprint": self.fingerprint or None,
            "replayed": self.replayed,
        }


async def compare(
    msgs: Sequence[Msg],
    models: Sequence[ChatModel | str] | Mapping[str, ChatModel | str],
    *,
    prices: Mapping[str, Price] | None = None,
    record: str | Path | None = None,
    replay: str | Path | None = None,
    max_concurrency: int = 8,
    **asked: Unpack[RequestOptions],
) -> list[ComparisonResult]:
    """Send one conversation to many models concurrently; one trial a model, in the order given.

    models   ChatModels, or strings for them (`"anthropic:claude-opus-5"`); with labels of your own in a mapping,
             else a model is labelled `PROVIDER:MODEL`
    prices   by label, or by the model's name
    record   a JSON-lines file that every call is added to
    replay   such a file: calls are answered from it, and nothing is sent. With `record` too, what is not on
             record is called and added
    max_concurrency  how many calls may run at a time
    asked    `tools`, `tool_choice`, `response_format` as for `ChatModel.generate`

    An error of one model is its trial's, and the others go on. Raises OptionError for bad options, and
    MessageError for a recording that cannot be read, before anything is sent.
    """
    check_option("max_concurrency", max_concurrency, int)
    if isinstance(max_concurrency, bool) or max_concurrency < 1:
        raise OptionError("max_concurrency", f"{max_concurrency} calls at a time are none", "Give 1 or more.")
    _check(prices, record, replay, asked)
    given = _given(models)
    labelled = _labelled(given)
    comparison = _Comparison(list(msgs), asked, dict(prices or {}), *await _recordings(record, replay))
    trials: dict[str, ComparisonResult] = {}
    limiter = anyio.CapacityLimiter(max_concurrency)

    async def run(label: str, model: ChatModel) -> None:
        try:
            trials[label] = await comparison.trial(label, model)
        finally:
            limiter.release_on_behalf_of(label)

    try:
        async with anyio.create_task_group() as group:
            for label, model in labelled.items():
                await limiter.acquire_on_behalf_of(label)  # before its task, so that they begin in their order
                group.start_soon(run, label, model)
    finally:
        for label, named in given:
            if isinstance(named, str):
                await run_to_completion(labelled[label].aclose, _CLOSING)
    return [trials[label] for label in labelled]


def _check(prices: object, record: object, replay: object, asked: Mapping[str, object]) -> None:
    """Refuse options that would fail only after calls were made."""
    check_option("prices", prices, Mapping | None)
    for name, price in cast("Mapping[str, object]", prices or {}).items():
        check_option(f"prices[{name!r}]", price, Price)
    check_option("record", record, str | Path | None)
    check_option("replay", replay, str | Path | None)
    known = (*RequestOptions.__annotations__, "prices", "record", "replay", "max_concurrency")
    check_names("compare()", asked, known, "Pass it to a ChatModel of your own.")


def _given(models: Sequence[ChatModel | str] | Mapping[str, ChatModel | str]) -> list[tuple[str, ChatModel | str]]:
    """Each model with its label, as it was given."""
    if isinstance(models, Mapping):
        for label, model in models.items():
            check_option(f"models[{label!r}]", model, ChatModel | str)
        return list(models.items())
    if isinstance(models, str | ChatModel) or not isinstance(models, Sequence):
        raise OptionError("models", f"a {type(models).__name__} is no list of models", "Pass a list.")
    for at, model in enumerate(models):
        check_option(f"models[{at}]", model, ChatModel | str)
    return [
        (model if isinstance(model, str) else f"{model.provider.name}:{model.model}", model) for model in models
    ]


def _labelled(given: Sequence[tuple[str, ChatModel | str]]) -> dict[str, ChatModel]:
    """The models by label, those that were named opened here."""
    labels = [label for label, _ in given]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise OptionError("models", f"{twice!r} is there twice", "Give a mapping from labels of your own.")
    if not labels:
        raise OptionError("models", "there is none", "Give at least one.")
    return {label: ChatModel(model) if isinstance(model, str) else model for label, model in given}


async def _recordings(
    record: str | Path | None, replay: str | Path | None
) -> tuple[RecordingFile | None, RecordingFile | None]:
    """What is written to, and what is read; one and the same if both are one file."""
    reading = None if replay is None else RecordingFile(replay)
    if reading is not None:
        await reading.load(missing_ok=record is not None)
    if record is None:
        return None, reading
    same = reading is not None and Path(record) == reading.path
    writing = reading if reading is not None and same else RecordingFile(record)
    await writing.check()
    return writing, reading


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What all trials share."""

    msgs: list[Msg]
    asked: RequestOptions
    prices: dict[str, Price]
    writing: RecordingFile | None
    reading: RecordingFile | None

    async def trial(self, label: str, model: ChatModel) -> ComparisonResult:
        """One model's trial, from its plan to what came of the call."""
        name = model.provider.name
        bare = ComparisonResult(label, name, model.model)
        try:
            plan = await model.plan(self.msgs, **self.asked)
            tokens = await model.count(plan)
        except Exception as error:
            return replace(bare, error=_error_of(name, error))
        key = fingerprint(name, model.model, plan.request, {**model.parameters, "max_tokens": model.max_tokens})
        bare = replace(bare, plan=plan, tokens=tokens, fingerprint=key)
        known = self.reading.find(key, label) if self.reading else None
        if known is None and self.reading is not None and self.writing is None:
            return replace(bare, error=_missing(self.reading.path, label))
        try:
            found = known or await self._call(model, plan)
        except Exception as error:  # no SDK, no key: nothing was called
            return replace(bare, error=_error_of(name, error))
        done = replace(bare, **_outcome(found), price=self._price(label, model, found), replayed=known is not None)
        if self.writing is not None and (known is None or self.writing is not self.reading):
            try:
                await self.writing.add(key, label, name, model.model, found)
            except OSError as error:
                return replace(done, error=done.error or _unwritten(self.writing.path, error))
        return done

    async def _call(self, model: ChatModel, plan: Plan) -> RecordedCall:
        """The call itself, timed; what opening the client takes is not the model's."""
        await model.open()
        began, first = perf_counter(), None
        try:
            async with model.stream(plan) as stream:
                async for event in stream:
                    if first is None and event.type in _TOKENS:
                        first = perf_counter() - began
            return RecordedCall(stream.message, None, first, perf_counter() - began)
        except ModelError as error:
            return RecordedCall(None, error, first, perf_counter() - began)

    def _price(self, label: str, model: ChatModel, found: RecordedCall) -> float | None:
        price = self.prices.get(label) or self.prices.get(model.model)
        usage = found.reply.usage if found.reply else None
        return price.cost(usage) if price and usage else None


_TOKENS = frozenset({"text-delta", "thinking-delta", "tool-use-start", "tool-use-delta", "media"})


def _error_of(provider: str, error: Exception) -> AgentkitError:
    """An error of one trial's; one that is none of ours, a counter's say, by its name."""
    if isinstance(error, AgentkitError):
        return error
    ours = ModelError(provider, f"{type(error).__name__}: {error}")
    ours.__cause__ = error
    return ours


def _outcome(found: RecordedCall) -> dict[str, Any]:
    return {one.name: getattr(found, one.name) for one in fields(found)}


def _unwritten(path: Path, error: OSError) -> OptionError:
    return OptionError(
        "record", f"{path} cannot be written ({error.strerror})", "Make room, or name another file."
    )


def _missing(path: Path, label: str) -> OptionError:
    return OptionError("replay", f"{path} has no call of {label} with this request", "Record it first.")
