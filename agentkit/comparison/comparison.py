"""`compare`: sends one conversation to many models concurrently, and can record and replay the model calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from time import perf_counter
from typing import Unpack, cast

import anyio

from agentkit.argument_checks import check_int, check_names, check_option
from agentkit.comparison.prices import Price
from agentkit.comparison.recordings import RecordedCall, RecordingFile, fingerprint
from agentkit.comparison.results import ComparisonResult
from agentkit.errors import AgentkitError, ModelError, OptionError
from agentkit.event_loop import run_to_completion
from agentkit.formatting.formatter import RequestOptions
from agentkit.ledger.plan import Plan
from agentkit.messages.message import Msg
from agentkit.models.chat_model import ChatModel
from agentkit.reprs import describe_value

__all__ = ["compare"]

_CLOSING_SECONDS = 5.0  # time limit for closing the connections of a model
_MODELS = "Pass a list of models, or a dict from labels to models."


async def compare(
    msgs: Sequence[Msg],
    models: Sequence[ChatModel | str] | Mapping[str, ChatModel | str],
    *,
    prices: Mapping[str, Price] | None = None,
    record: str | Path | None = None,
    replay: str | Path | None = None,
    max_concurrency: int = 8,
    **options: Unpack[RequestOptions],
) -> list[ComparisonResult]:
    """Sends one conversation to many models and returns a result for each model, in the order of `models`.

    An error of one model is part of the result for this model, and does not affect the other models.

    Args:
        msgs: Messages of the conversation.
        models: `ChatModel` objects, or model names such as `"anthropic:claude-opus-5"`. The keys of a mapping are
            the labels of the results. In a list, the label of a `ChatModel` is `PROVIDER:MODEL`, and the label of
            a name is the name itself. `compare` closes the models that are passed by name.
        prices: Prices of the models. A key is a label or the name of a model. None means that the results have no
            price.
        record: Path of a JSON Lines file. Each model call is appended to the file, unless the call is replayed
            from the same file. None means that model calls are not recorded.
        replay: Path of a JSON Lines file with recorded model calls. A recorded call is not sent again. A call that
            the file does not contain is sent and recorded if `record` is passed, and fails if `record` is None.
            None means that all calls are sent.
        max_concurrency: Maximum number of concurrent model calls.
        options: `tools`, `tool_choice` and `response_format`, as for `ChatModel.generate`.

    Raises:
        OptionError: An option is invalid, or a file cannot be read or written. Nothing was sent.
        MessageError: A line of the recording is invalid. Nothing was sent.
        ProviderError: A model name has no known provider. Nothing was sent.
    """
    _check_options(prices, record, replay, max_concurrency, options)
    labeled = _label_models(models)
    opened = {label: ChatModel(model) if isinstance(model, str) else model for label, model in labeled}
    comparison = _Comparison(list(msgs), options, dict(prices or {}), *await _open_recordings(record, replay))
    try:
        return await comparison.run_all(opened, max_concurrency)
    finally:
        await _close([opened[label] for label, named in labeled if isinstance(named, str)])


async def _close(models: Sequence[ChatModel]) -> None:
    for model in models:
        await run_to_completion(model.aclose, _CLOSING_SECONDS)


def _check_options(
    prices: object, record: object, replay: object, max_concurrency: object, options: Mapping[str, object]
) -> None:
    check_int("max_concurrency", max_concurrency, 1)
    check_option("prices", prices, Mapping | None)
    for name, price in cast("Mapping[str, object]", prices or {}).items():
        check_option(f"prices[{name!r}]", price, Price)
    check_option("record", record, str | Path | None)
    check_option("replay", replay, str | Path | None)
    names = (*RequestOptions.__annotations__, "prices", "record", "replay", "max_concurrency")
    check_names("compare()", options, names, "Pass this option to the constructor of a ChatModel.")


def _label_models(
    models: Sequence[ChatModel | str] | Mapping[str, ChatModel | str],
) -> list[tuple[str, ChatModel | str]]:
    if isinstance(models, Mapping):
        for label, model in models.items():
            check_option(f"models[{label!r}]", model, ChatModel | str)
        labeled = list(models.items())
    elif isinstance(models, str | ChatModel) or not isinstance(models, Sequence):
        raise OptionError("models", f"expected a list or dict of models, got {describe_value(models)}", _MODELS)
    else:
        for index, model in enumerate(models):
            check_option(f"models[{index}]", model, ChatModel | str)
        labeled = [
            (model if isinstance(model, str) else f"{model.provider.name}:{model.model}", model)
            for model in models
        ]
    if not labeled:
        raise OptionError("models", "there are no models", "Pass at least one model.")
    labels = [label for label, _ in labeled]
    duplicate = next((label for label in labels if labels.count(label) > 1), None)
    if duplicate is not None:
        reason = f"two models have the label {duplicate!r}"
        raise OptionError("models", reason, "Pass a dict from labels to models.")
    return labeled


async def _open_recordings(
    record: str | Path | None, replay: str | Path | None
) -> tuple[RecordingFile | None, RecordingFile | None]:
    """Opens the recordings. Returns the recording to write and the recording to replay.

    If both paths are equal, both results are the same object. If a path is None, its recording is None.
    """
    source = None if replay is None else RecordingFile(replay)
    if source is not None:
        await source.load(missing_ok=record is not None)
    if record is None:
        return None, source
    target = source if source is not None and Path(record) == source.path else RecordingFile(record)
    await target.check()
    return target, source


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Messages, options, prices and recordings that all models of a comparison share.

    Attributes:
        prices: Prices of the models. A key is a label or the name of a model.
        target: Recording to which calls are appended. None if calls are not recorded.
        source: Recording from which calls are replayed. None if calls are not replayed.
    """

    msgs: list[Msg]
    options: RequestOptions
    prices: dict[str, Price]
    target: RecordingFile | None
    source: RecordingFile | None

    async def run_all(self, models: Mapping[str, ChatModel], max_concurrency: int) -> list[ComparisonResult]:
        """Returns a result for each model, in the order of `models`. The keys of `models` are the labels."""
        results: dict[str, ComparisonResult] = {}
        limiter = anyio.CapacityLimiter(max_concurrency)

        async def run(label: str, model: ChatModel) -> None:
            try:
                results[label] = await self.run(label, model)
            finally:
                limiter.release_on_behalf_of(label)

        async with anyio.create_task_group() as group:
            for label, model in models.items():
                # The limiter is acquired before the task starts, so that calls start in the order of the models.
                await limiter.acquire_on_behalf_of(label)
                group.start_soon(run, label, model)
        return [results[label] for label in models]

    async def run(self, label: str, model: ChatModel) -> ComparisonResult:
        """Returns the result for one model. An error of the model is not raised, but is part of the result."""
        provider = model.provider.name
        result = ComparisonResult(label, provider, model.model)
        try:
            plan = await model.plan(self.msgs, **self.options)
            tokens = await model.count(plan)
        except Exception as error:
            return replace(result, error=_as_agentkit_error(provider, error))
        parameters = {**model.parameters, "max_tokens": model.max_tokens}
        key = fingerprint(provider, model.model, plan.request, parameters)
        result = replace(result, plan=plan, tokens=tokens, fingerprint=key)
        record = self.source.find(key, label) if self.source else None
        if record is None and self.source is not None and self.target is None:
            reason = f"the recording {str(self.source.path)!r} has no call to {label!r} with this request"
            advice = "Pass the path as `record` too, to send and record the call."
            return replace(result, error=OptionError("replay", reason, advice))
        try:
            call = record or await _send(model, plan)
        except Exception as error:  # the request was not sent, for example because the SDK is missing
            return replace(result, error=_as_agentkit_error(provider, error))
        outcome = {field.name: getattr(call, field.name) for field in fields(call)}
        result = replace(
            result, **outcome, price=self._find_price(label, model, call), replayed=record is not None
        )
        if self.target is not None and (record is None or self.target is not self.source):
            try:
                await self.target.add(key, label, provider, model.model, call)
            except OSError as error:
                reason = f"cannot write {str(self.target.path)!r} ({error.strerror})"
                failure = OptionError("record", reason, "Free some space, or pass another path.")
                return replace(result, error=result.error or failure)
        return result

    def _find_price(self, label: str, model: ChatModel, call: RecordedCall) -> float | None:
        price = self.prices.get(label) or self.prices.get(model.model)
        usage = call.reply.usage if call.reply else None
        return price.cost(usage) if price and usage else None


async def _send(model: ChatModel, plan: Plan) -> RecordedCall:
    """Sends a request, and measures the times of the model call. The times do not include opening the client."""
    await model.open()
    start, first_token = perf_counter(), None
    try:
        async with model.stream(plan) as stream:
            async for event in stream:
                if first_token is None and event.type in _TOKEN_EVENTS:
                    first_token = perf_counter() - start
        return RecordedCall(stream.message, None, first_token, perf_counter() - start)
    except ModelError as error:
        return RecordedCall(None, error, first_token, perf_counter() - start)


_TOKEN_EVENTS = frozenset({"text-delta", "thinking-delta", "tool-use-start", "tool-use-delta", "media"})


def _as_agentkit_error(provider: str, error: Exception) -> AgentkitError:
    """Returns an `AgentkitError` unchanged. Wraps any other error in a `ModelError`.

    Other errors can come, for example, from a custom token counter.
    """
    if isinstance(error, AgentkitError):
        return error
    wrapped = ModelError(provider, f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
