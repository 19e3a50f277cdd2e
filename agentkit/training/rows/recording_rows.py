"""Rows with the request and the reply of one model call: results of `compare` as dicts."""

from __future__ import annotations

import json
from typing import Any, Final

from agentkit.errors import ProviderError
from agentkit.json_values import as_object
from agentkit.messages.serialization import dump_message, dump_messages, load_message
from agentkit.tools.tool import as_tools
from agentkit.training.log_samples import find_token_ids
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.rows.row_format import RowFormat, create_format_error, split_columns
from agentkit.training.rows.row_tools import dump_tools_column
from agentkit.training.rows.row_values import get_text, parse_if_text, refuse
from agentkit.training.sample import Sample, is_reply

__all__ = ["RECORDING"]

_COLUMNS: Final = ("label", "provider", "model", "request", "reply")
_IGNORED_COLUMNS: Final = (
    *("ledger", "tokens", "tokens_estimated", "finish_reason", "usage", "error", "first_token", "total", "price"),
    *("fingerprint", "replayed"),
)
"""Columns of a result of `compare` that do not become part of a sample."""
_OWN_FORMAT: Final = "agentkit"
"""Name of agentkit's own message format. `dump_rows` writes the name as provider, and as a key of the request."""


def _read(row: dict[str, Any]) -> Sample:
    """Returns the sample of a row, which is a result of `compare` as a dict (`ComparisonResult.to_dict`).

    The rows of a file that `compare(record=…)` wrote have only a fingerprint of the request. For these rows, the
    argument `prompt` of `load_rows` contains the messages that were sent.

    Raises:
        MessageError: The row is invalid, or has no reply or no request.
    """
    from agentkit.logs.native import load_native, load_request_options  # slow imports that only this format needs

    if row.get("reply") is None:
        error = as_object(row.get("error")).get("class")
        refuse("reply", f"the model call failed ({error})" if error else "the row has no reply")
    request = as_object(parse_if_text(row.get("request"), "request"))
    if not request:
        refuse("request", "the row has no request", "Pass `prompt` with the messages that were sent.")
    provider = _OWN_FORMAT if _OWN_FORMAT in request else get_text(row, "provider", "")
    try:
        prompt = load_native(provider, request)
    except ProviderError as error:
        advice = f"Fix or remove the row. The providers are {', '.join(error.available)}."
        refuse("provider", f"no provider has the name {error.name!r}", advice)
    if provider == _OWN_FORMAT:
        tools: Any = request.get("tools") or ()
    else:
        tools = load_request_options(provider, request).get("tools") or ()
    reply = load_message(parse_if_text(row["reply"], "reply"), "reply")
    weights = [0 if is_reply(msg) else None for msg in prompt]
    source = get_text(row, "label", "") or None
    ids = find_token_ids(reply, "reply")
    tokens = {len(prompt): ids} if ids else None
    extra = split_columns(row, RECORDING.columns)
    return Sample([*prompt, reply], as_tools(tools), [*weights, 1], None, tokens, source, extra=extra)


def _write(sample: Sample, losses: LossLog) -> dict[str, Any]:
    *prompt, reply = sample.msgs
    if not is_reply(reply) or not prompt:
        raise create_format_error(losses.format, "msgs", "the last message is not a reply to other messages")
    losses.note_fields(sample, "rejected")
    ids = find_token_ids(reply, f"msgs[{len(prompt)}]")  # the row has these ids in the metadata of the reply
    if (sample.tokens or {}) != ({len(prompt): tuple(ids)} if ids else {}):
        losses.add("tokens", "the format stores token ids only in the metadata of the last reply")
    expected = [0 if is_reply(msg) else None for msg in prompt]
    weights = [None] * len(expected) if sample.weights is None else list(sample.weights[:-1])
    if weights != expected or sample.get_weight(-1) not in (None, 1):
        losses.add("weights", "the format trains only the last reply")
    request = {**dump_messages(prompt), **dump_tools_column(sample)}
    row = {"label": sample.source or "", "provider": _OWN_FORMAT, "model": "", "request": _dump(request)}
    return {**row, "reply": _dump(dump_message(reply)), **sample.extra}


def _dump(value: dict[str, Any]) -> str:
    """Returns a value as JSON text. Rows that contain objects with different keys would have no common schema."""
    return json.dumps(value, ensure_ascii=False)


RECORDING: Final = RowFormat((*_COLUMNS, *_IGNORED_COLUMNS), _read, _write)
"""Rows with results of `compare`."""
