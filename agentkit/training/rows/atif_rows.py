"""Trajectories of agents in the Agent Trajectory Interchange Format (ATIF) of Harbor.

A row is one trajectory: steps of the system, of users and of the agent. A step of the agent contains tool calls
and their results. The reader accepts all versions that begin with `ATIF-v1.`. The writer writes ATIF-v1.7.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, cast

from agentkit.json_values import as_object, copy_json
from agentkit.messages.blocks import Block, ImageBlock, TextBlock, ThinkingBlock
from agentkit.messages.message import Msg
from agentkit.messages.sources import URLSource
from agentkit.reprs import shorten_repr
from agentkit.tools.error_marks import write_output
from agentkit.training.rows.chat_message_reader import ChatMessageReader, read_weight
from agentkit.training.rows.content_reader import join_blocks
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.rows.row_format import RowFormat, split_columns
from agentkit.training.rows.row_tools import dump_tools, parse_tools
from agentkit.training.rows.row_values import (
    check_object,
    get_list,
    get_text,
    get_unknown_values,
    is_missing,
    refuse,
)
from agentkit.training.sample import Sample, Weight, is_reply

__all__ = ["ATIF"]

_VERSION: Final = "ATIF-v1.7"
_AGENT: Final = {"name": "agent", "version": "unknown"}
"""Default fields of the column `agent` in a written row. ATIF requires both fields."""
_STEP_KEYS: Final = frozenset(
    {"step_id", "timestamp", "source", "message", "reasoning_content", "tool_calls", "observation"}
)
_CALL_KEYS: Final = frozenset({"tool_call_id", "function_name", "arguments"})
_RESULT_KEYS: Final = frozenset({"source_call_id", "content"})
_ROLES: Final = {"agent": "assistant", "user": "user", "system": "system"}
"""Maps the source of a step to the role of its message.

If a step has no name, the role is also the speaker name.
"""
_METADATA: Final = "atif"
"""Metadata key of messages, tool calls and results. The value has the ATIF fields that agentkit does not have."""


def _read(row: dict[str, Any]) -> Sample:
    version = get_text(row, "schema_version", "")
    if not version.startswith("ATIF-v1."):
        refuse("schema_version", f"expected a version such as {_VERSION!r}, got {shorten_repr(version, 60)}")
    reader = _StepReader(row)
    for index, step in enumerate(get_list(row, "steps", "")):
        reader.read(check_object(step, f"steps[{index}]"), f"steps[{index}]")
    if not reader.msgs:
        refuse("steps", "the trajectory has no steps")
    agent = get_unknown_values(reader.agent, {"tool_definitions"}, "agent")
    tools = parse_tools(get_list(reader.agent, "tool_definitions", "agent"), "agent.tool_definitions")
    extra = split_columns(row, ATIF.columns)
    if agent != _AGENT:
        extra["agent"] = agent
    return Sample(reader.msgs, tools, reader.weights, tokens=reader.tokens, extra=extra)


class _StepReader:
    """Reader for the steps of one trajectory.

    Attributes:
        agent: Column `agent` of the row.
        msgs: Messages of the steps that were read.
        weights: Training weights of the messages. A step of the agent has the weight 0 if no model wrote the step,
            or if the step was copied from another trajectory, unless the row has a weight for the step.
        tokens: Maps the message index of a reply to its recorded token ids.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.agent = check_object(row.get("agent"), "agent")
        self.msgs: list[Msg] = []
        self.weights: list[Weight] = []
        self.tokens: dict[int, list[int]] = {}
        self._messages = ChatMessageReader()
        self._count = 0

    def read(self, step: dict[str, Any], place: str) -> None:
        self._count += 1
        for key in ("observation", "extra"):
            if step.get(key) is not None:
                check_object(step[key], f"{place}.{key}")
        source = step.get("source")
        content = self._read_content(step.get("message"), f"{place}.message")
        if source == "agent":
            self._read_reply(step, content, place)
        elif source in ("system", "user"):
            for key in ("reasoning_content", "tool_calls"):
                if not is_missing(step.get(key)):
                    reason = f"only steps with the source 'agent' can have this field, got the source {source!r}"
                    refuse(f"{place}.{key}", reason)
            self._add(step, place, source, join_blocks(content))
        else:
            refuse(f"{place}.source", f"expected 'system', 'user' or 'agent', got {shorten_repr(source, 60)}")
        if not self.msgs[-1].content and not step.get("observation") and step.get("message") is None:
            refuse(f"{place}.message", "the step has no message")
        observation = as_object(step.get("observation"))
        for index, result in enumerate(get_list(observation, "results", f"{place}.observation")):
            at = f"{place}.observation.results[{index}]"
            self._read_result(check_object(result, at), at)

    def _read_reply(self, step: dict[str, Any], content: list[Block], place: str) -> None:
        thinking = get_text(step, "reasoning_content", place)
        calls = [
            self._read_call(check_object(call, f"{place}.tool_calls[{index}]"), f"{place}.tool_calls[{index}]")
            for index, call in enumerate(get_list(step, "tool_calls", place))
        ]
        is_empty = content == [TextBlock("")] and (
            calls or thinking
        )  # ATIF requires `message`, so an empty text can mean no text
        texts = [] if is_empty else content
        blocks = [*([ThinkingBlock(thinking)] if thinking else []), *texts, *calls]
        metrics = {**as_object(step.get("metrics"))}
        ids = get_list(metrics, "completion_token_ids", f"{place}.metrics")
        if not all(type(id) is int and id >= 0 for id in ids):
            reason = f"expected integers of at least 0, got {shorten_repr(ids, 60)}"
            refuse(f"{place}.metrics.completion_token_ids", reason)
        if ids:
            self.tokens[len(self.msgs)] = metrics.pop("completion_token_ids")
            step = {**step, "metrics": metrics or None}
        is_copied = step.get("is_copied_context") or step.get("llm_call_count") == 0
        self._add(step, place, "assistant", join_blocks(blocks), 0 if is_copied else None)

    def _read_call(self, call: dict[str, Any], place: str) -> Block:
        id, name = get_text(call, "tool_call_id", place), get_text(call, "function_name", place)
        return self._messages.add_call(
            id, name, call.get("arguments"), place, _create_metadata(call, _CALL_KEYS, place)
        )

    def _read_result(self, result: dict[str, Any], place: str) -> None:
        content = join_blocks(self._read_content(result.get("content"), f"{place}.content"))
        id = get_text(result, "source_call_id", place)
        metadata = _create_metadata(result, _RESULT_KEYS, place)
        if id:
            blocks = [self._messages.add_result(id, "", content, place)]
            msg = Msg("tool", blocks, "system", metadata=metadata)
        else:  # feedback on an action that is not a tool call
            msg = Msg("environment", content, "user", metadata=metadata)
        self.msgs.append(msg)
        self.weights.append(None)

    def _add(
        self,
        step: dict[str, Any],
        place: str,
        role: Literal["system", "user", "assistant"],
        content: Any,
        weight: Weight = None,
    ) -> None:
        extra = as_object(step.get("extra"))
        fields = {key: value for key, value in extra.items() if key not in ("name", "weight")}
        observation = get_unknown_values(as_object(step.get("observation")), {"results"}, place)
        values = {**step, "extra": fields or None, "observation": observation or None}
        expected = {"step_id"} if step.get("step_id") == self._count else set[str]()
        metadata = _create_metadata(values, _STEP_KEYS - {"observation", "step_id"} | expected, place)
        timestamp = get_text(step, "timestamp", place) or None
        name = role if extra.get("name") is None else get_text(extra, "name", f"{place}.extra")
        self.msgs.append(Msg(name, content, role, None, timestamp, metadata))
        stored_weight = read_weight({"weight": extra.get("weight")}, f"{place}.extra")
        self.weights.append(weight if stored_weight is None else stored_weight)

    def _read_content(self, content: object, place: str) -> list[Block]:
        if not isinstance(content, list):
            return self._messages.content.read(content, place)
        parts = enumerate(cast("list[object]", content))
        return [self._read_part(check_object(part, f"{place}[{i}]"), f"{place}[{i}]") for i, part in parts]

    def _read_part(self, part: dict[str, Any], place: str) -> Block:
        source = as_object(part.get("source"))
        if part.get("type") == "image" and source:
            path, media_type = get_text(source, "path", place), get_text(source, "media_type", place)
            if not path:
                refuse(place, "the image has no path")
            metadata = get_unknown_values(part, {"type", "source"}, place)
            if unknown := get_unknown_values(source, {"path", "media_type"}, place):
                metadata["source"] = unknown
            return ImageBlock(_create_source(path, media_type), metadata=metadata or None)
        return self._messages.content.read([part], place)[0]


def _create_metadata(values: Mapping[str, Any], known_keys: AbstractSet[str], place: str) -> dict[str, Any] | None:
    """Returns metadata with the values whose keys are not in `known_keys`. Omits None and NaN.

    Returns None if no values remain.
    """
    unknown = get_unknown_values(values, known_keys, place)
    return {_METADATA: unknown} if unknown else None


def _copy_unknown_values(metadata: Mapping[str, Any] | None, keys: Collection[str]) -> dict[str, Any]:
    """Returns a copy of the values that `_create_metadata` stored in `metadata`, except the values of `keys`."""
    unknown = as_object((metadata or {}).get(_METADATA))
    return {key: copy_json(value) for key, value in unknown.items() if key not in keys}


def _create_source(path: str, media_type: str) -> URLSource:
    """Returns the source of an image, without `media_type` if `_get_media_type` returns this type for the path."""
    source = URLSource(path)
    return source if media_type in ("", _get_media_type(source)) else URLSource(path, media_type)


def _get_media_type(source: URLSource) -> str:
    """Returns the media type of an image. ATIF requires a media type, so an unknown type becomes `image/png`."""
    return source.guessed_type or "image/png"


# -- writing -----------------------------------------------------------------------------------------------------


def _write(sample: Sample, losses: LossLog) -> dict[str, Any]:
    losses.note_fields(sample, "rejected")
    losses.note_tool_names(sample.msgs)
    steps: list[dict[str, Any]] = []
    for index, msg in enumerate(sample.msgs):
        place = f"msgs[{index}]"
        losses.note_refusal(msg, place)
        if msg.tool_results:
            losses.note_results(msg, sample.get_weight(index), place)
            _write_results(msg, steps, losses, place)
        elif msg.name == "environment" and msg.role == "user" and steps:
            losses.note_weight(sample.get_weight(index), place)
            content = _write_content(msg.blocks, losses, place)
            unknown = _copy_unknown_values(msg.metadata, _RESULT_KEYS)
            _get_results(steps, losses, place).append({"content": content, **unknown})
        else:
            steps.append(_write_step(sample, index, len(steps) + 1, losses))
    named = {"name": sample.viewer} if sample.viewer else {}
    described = as_object(sample.extra.get("agent"))
    if "agent" in sample.extra and (not described or "tool_definitions" in described):
        losses.add("extra.agent", "`agent` must be a non-empty object without `tool_definitions`")
    agent = {**_AGENT, **named, **described}
    if sample.tools:
        agent["tool_definitions"] = dump_tools(sample)
    extra = {key: value for key, value in sample.extra.items() if key != "agent"}
    return {"schema_version": _VERSION, **extra, "agent": agent, "steps": steps}


def _write_step(sample: Sample, index: int, number: int, losses: LossLog) -> dict[str, Any]:
    msg, weight, place = sample.msgs[index], sample.get_weight(index), f"msgs[{index}]"
    is_step_of_agent = is_reply(msg)
    others = _copy_unknown_values(msg.metadata, _STEP_KEYS)
    content = [block for block in msg.blocks if block.type not in ("thinking", "tool_use")]
    losses.note_reply(msg, place)
    step: dict[str, Any] = {"step_id": number, "source": "agent" if is_step_of_agent else msg.role}
    if msg.timestamp:
        step["timestamp"] = msg.timestamp
    step["message"] = _write_content(content, losses, place)
    if is_step_of_agent and msg.thinking:
        step["reasoning_content"] = msg.thinking
    for call in msg.tool_uses:
        losses.note_call(call, place)
    if msg.tool_uses:
        step["tool_calls"] = [
            {
                "tool_call_id": call.id,
                "function_name": call.name,
                "arguments": call.copy_input(),
                **_copy_unknown_values(call.metadata, _CALL_KEYS),
            }
            for call in msg.tool_uses
        ]
    ids = (sample.tokens or {}).get(index)
    if ids:
        others["metrics"] = {**as_object(others.get("metrics")), "completion_token_ids": list(ids)}
    extra: dict[str, Any] = {} if msg.name == _ROLES[step["source"]] else {"name": msg.name}
    losses.note_weight(weight, place, can_have_weight=is_step_of_agent, has_weights=True)
    if is_step_of_agent and isinstance(weight, int):
        extra["weight"] = weight
    if extra or others.get("extra"):
        others["extra"] = {**as_object(others.get("extra")), **extra}
    return {**step, **others}


def _write_results(msg: Msg, steps: list[dict[str, Any]], losses: LossLog, place: str) -> None:
    for block in msg.tool_results:
        losses.note_output(block, place)
        output = write_output(block, lambda item: item)
        content = output if isinstance(output, str) else _write_content(output, losses, place)
        result = {
            "source_call_id": block.id,
            "content": content,
            **_copy_unknown_values(msg.metadata, _RESULT_KEYS),
        }
        _get_results(steps, losses, place).append(result)


def _get_results(steps: list[dict[str, Any]], losses: LossLog, place: str) -> list[Any]:
    """Returns the list of results of the last step. The caller appends a result to this list.

    Adds an empty step and a loss if there is no step.
    """
    if not steps:
        losses.add(place, "the format has no results before the first step, so an empty step was added")
        steps.append({"step_id": 1, "source": "system", "message": ""})
    results: list[Any] = steps[-1].setdefault("observation", {"results": []})["results"]
    return results


def _write_content(blocks: Sequence[Block], losses: LossLog, place: str) -> str | list[dict[str, Any]]:
    if not blocks:
        return ""
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    parts: list[dict[str, Any]] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, ImageBlock) and isinstance(block.source, URLSource):
            url, media_type = block.source.url, _get_media_type(block.source)
            if _create_source(url, media_type) != block.source:
                losses.note_source(block.source, place)
            parts.append({"type": "image", "source": {"media_type": media_type, "path": url}})
        else:
            losses.add_block(block, place)
    return parts


ATIF: Final = RowFormat(("schema_version", "agent", "steps"), _read, _write, ("agent",))
"""Rows of the Agent Trajectory Interchange Format (ATIF): one trajectory per row."""
