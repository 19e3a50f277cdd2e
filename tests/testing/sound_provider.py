"""Magpie: a complete provider of a third party. Each test breaks one part of it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final, Self, cast

from agentkit import (
    Block,
    FinishReason,
    MessageError,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    load_messages,
)
from agentkit.provider_kit import (
    EndpointBase,
    Failure,
    FormatterBase,
    LegalConversation,
    ModelFact,
    OptionLayout,
    OutgoingRequest,
    Provider,
    Request,
    RequestSpec,
    StreamParserBase,
    WireLayout,
    as_list,
    as_object,
    as_text,
    copy_json,
    merge_parameters,
)
from agentkit.testing import Reply, Sample
from tests.conftest import ECHO

MAGPIE: Final = ECHO.override(
    {
        "name": "Magpie",
        "issuer": "magpie",
        "thinking.mode": "signed",
        "thinking.required_proof": frozenset({"signature"}),
        "turns.late_system": "native",
        "layout": WireLayout(
            turns="turns",
            prompt="system",
            parts=("parts",),
            silent=frozenset({"id", "proof"}),
            media={"source": "image"},
            result_keys=frozenset({"result"}),
            options=OptionLayout(choices=("choice",), outputs=("format",)),
        ),
    }
)


# -- requests -----------------------------------------------------------------------------------------------------


class MagpieFormatter(FormatterBase):
    """Formatter for a list of turns, each with a role and a name."""

    base = MAGPIE
    facts: ClassVar[tuple[ModelFact, ...]] = (
        ModelFact("chick", {"turns.last_user": True}, "the ring on its leg", "2026-11-20"),
    )

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        request: Request = {
            "system": [msg.text for msg in legal.system.msgs],
            "turns": [turn(msg) for msg in legal.turns.msgs],
        }
        if task.tools:
            request["tools"] = [
                {"name": tool.name, "about": tool.description, "parameters": copy_json(tool.parameters)}
                for tool in task.tools
            ]
        if task.tool_choice:
            request["choice"] = {"mode": task.tool_choice.mode, "name": task.tool_choice.name}
        if task.output:
            request["format"] = copy_json(task.output.schema)
        return request


class MagpieMultiAgentFormatter(MagpieFormatter):
    """Formatter for many speakers."""

    default_history = MultiAgentHistory


def turn(msg: Msg) -> dict[str, Any]:
    return {"role": msg.role, "name": msg.name, "parts": [part(block) for block in msg.blocks]}


def part(block: Block) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"text": block.text}
        case ThinkingBlock():
            return {"thinking": block.thinking, "proof": block.state.signature if block.state else None}
        case ToolUseBlock():
            return {"call": {"id": block.id, "tool": block.name, "arguments": block.arguments}}
        case ToolResultBlock():
            parts = [part(item) for item in block.items]
            return {"result": {"id": block.id, "tool": block.name, "failed": block.is_error, "parts": parts}}
        case _:
            stored = Msg("x", [block], "user").to_dict()["content"][0]
            return {"media": stored}


# -- logs ---------------------------------------------------------------------------------------------------------


def load_native(log: object) -> list[Msg]:
    """Returns the messages of a request."""
    if not isinstance(log, dict) or "turns" not in log:
        raise MessageError("log", "it has no turns", "Pass a request.")
    data = cast("dict[str, Any]", log)
    system = [Msg("system", str(text), "system") for text in as_list(data.get("system"))]
    return [*system, *load_messages([_stored_message(as_object(turn)) for turn in as_list(data["turns"])])]


def _stored_message(turn: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(turn.get("parts"), list):
        raise MessageError("turns", "a turn has no list of parts", "Pass a request.")
    content = [_stored_part(as_object(part)) for part in as_list(turn["parts"])]
    return {"name": turn.get("name"), "role": turn.get("role"), "content": content}


def _stored_part(part: dict[str, Any]) -> dict[str, Any]:
    if "call" in part:
        inner = as_object(part["call"])
        return {
            "type": "tool_use",
            "id": inner["id"],
            "name": inner["tool"],
            "input": json.loads(inner["arguments"]),
        }
    if "result" in part:
        inner = as_object(part["result"])
        parts = [_stored_part(item) for item in inner["parts"]]
        result = {"type": "tool_result", "id": inner["id"], "name": inner["tool"], "is_error": inner["failed"]}
        return {**result, "output": parts}
    if "thinking" in part:
        state = {"issuer": "magpie", "signature": part["proof"]}
        return {"type": "thinking", "thinking": part["thinking"], "state": state}
    return {"type": "text", "text": part["text"]} if "text" in part else copy_json(part.get("media"))


# -- replies ------------------------------------------------------------------------------------------------------

REASONS: Final = {"done": FinishReason.STOP, "full": FinishReason.LENGTH, "call": FinishReason.TOOL_USE}


class MagpieParser(StreamParserBase):
    """Parser of numbered pieces. Each piece belongs to the part with its number."""

    provider = issuer = "magpie"
    layout = MAGPIE.layout
    raw_arguments = True

    def read_event(self, event: dict[str, Any]) -> None:
        piece = as_object(event.get("piece"))
        number = event.get("number")
        key = (number if isinstance(number, int) else 0,)
        if "thinking" in piece:
            self.reply.add_thinking(key, as_text(piece["thinking"]))
        if "proof" in piece:
            self.reply.add_state(key, signature=as_text(piece["proof"]))
        if "text" in piece:
            self.reply.add_text(key, as_text(piece["text"]))
        if "tool" in piece or "arguments" in piece:
            self.reply.add_tool_call(key, piece.get("id"), piece.get("tool"), as_text(piece.get("arguments")))
        if "usage" in event:
            self.read_usage(as_object(event["usage"]))
        if "over" in event:
            native = as_text(event["over"])
            self.reply.end(REASONS.get(native, FinishReason.OTHER), native)

    def read_usage(self, usage: dict[str, Any]) -> None:
        counts = [usage.get(name) for name in ("input_tokens", "output_tokens")]
        if all(isinstance(count, int) and count >= 0 for count in counts):
            self.reply.set_usage(Usage(*cast("list[int]", counts)))

    def read_reply(self, reply: dict[str, Any]) -> None:
        for number, part in enumerate(as_list(reply.get("parts"))):
            self.read_event({"number": number, "piece": part})
        self.read_event({name: reply[name] for name in ("usage", "over") if name in reply})


COMPLETE_REPLY: Final[dict[str, Any]] = {
    "parts": [
        {"thinking": "I should look first.", "proof": "c2lnbmVk"},
        {"text": "Let me look."},
        {"id": "call_1", "tool": "look", "arguments": '{"place": "the far side", "deep": [1, 2]}'},
        {"id": "call_2", "tool": "count", "arguments": "{}"},
    ],
    "usage": {"input_tokens": 90, "output_tokens": 40},
    "over": "call",
}
EVENTS: Final[list[dict[str, Any]]] = [
    {"number": 0, "piece": {"thinking": "I should "}},
    {"number": 0, "piece": {"thinking": "look first.", "proof": "c2lnbmVk"}},
    {"number": 1, "piece": {"text": "Let me "}},
    {"number": 1, "piece": {"text": "look."}},
    {"number": 2, "piece": {"id": "call_1", "tool": "look", "arguments": '{"place": "the far'}},
    {"number": 2, "piece": {"arguments": ' side", "deep": [1, 2]}'}},
    {"number": 3, "piece": {"id": "call_2", "tool": "count", "arguments": "{}"}},
    {"usage": {"input_tokens": 90, "output_tokens": 40}},
    {"over": "call"},
]
EXPECTED_MESSAGE: Final = Reply(
    Msg(
        "assistant",
        [
            ThinkingBlock("I should look first.", OpaqueState("magpie", signature="c2lnbmVk")),
            TextBlock("Let me look."),
            ToolUseBlock("call_1", "look", {"place": "the far side", "deep": [1, 2]}),
            ToolUseBlock("call_2", "count", {}),
        ],
        "assistant",
    ),
    usage=Usage(90, 40),
    finish_reason=FinishReason.TOOL_USE,
)
TRUNCATED_SAMPLE: Final[Sample] = (
    {"parts": [{"text": "Half a"}], "over": "full"},
    [{"piece": {"text": "Half"}}, {"piece": {"text": " a"}}, {"over": "full"}],
    Reply("Half a", finish_reason=FinishReason.LENGTH),
)
RAW_STREAM: Final = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in EVENTS)
SAMPLES: Final[list[Sample]] = [
    (COMPLETE_REPLY, EVENTS, EXPECTED_MESSAGE),
    (COMPLETE_REPLY, RAW_STREAM, EXPECTED_MESSAGE),
    TRUNCATED_SAMPLE,
]


# -- calls --------------------------------------------------------------------------------------------------------


class MagpieError(Exception):
    """Error of the SDK."""


class MagpieEndpoint(EndpointBase):
    """Calls `client.fly(path, build_request)`."""

    extra = "magpie"

    @classmethod
    def open(cls, **options: Any) -> Self:
        return cls(object())

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        return OutgoingRequest("/fly", merge_parameters({"model": model, **request}, options), stream)

    async def send(self, outgoing: OutgoingRequest) -> bytes:
        return bytes(await self.client.fly(outgoing.path, outgoing.body))

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[Any]]:
        yield await self.client.fly(outgoing.path, outgoing.body, stream=True)

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        return Failure(str(error)) if isinstance(error, MagpieError) else None

    async def aclose(self) -> None:
        return None


PROVIDER: Final = Provider(
    "magpie", MagpieFormatter, MagpieMultiAgentFormatter, MagpieParser, MagpieEndpoint, load_native
)
