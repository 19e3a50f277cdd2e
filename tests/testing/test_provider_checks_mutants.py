"""`check_provider` reports the fault of each broken copy of a sound provider."""

from __future__ import annotations

import random
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from typing import Any, Final, cast

import pytest

from agentkit import Msg, StreamEvent, Usage
from agentkit.provider_kit import (
    Capabilities,
    Failure,
    FormatterBase,
    LegalConversation,
    OptionLayout,
    OutgoingRequest,
    Provider,
    Request,
    RequestSpec,
    StreamParserBase,
    StrictRules,
    WireLayout,
    as_list,
)
from agentkit.testing import ConformanceError, Sample, check_provider, request_checks
from tests.testing import sound_provider
from tests.testing.sound_provider import (
    EVENTS,
    MAGPIE,
    PROVIDER,
    SAMPLES,
    MagpieEndpoint,
    MagpieFormatter,
    MagpieMultiAgentFormatter,
    MagpieParser,
    load_native,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _checked_formatters() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Checks the requests of each formatter once: many broken providers have the formatters of Magpie."""

    @cache
    def find_request_faults(formatter_class: type[FormatterBase], model: str | None) -> list[str]:
        return [*request_checks.request_faults(formatter_class, model)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("agentkit.testing.provider_checks.request_faults", find_request_faults)
        yield


Convert = Callable[[Any, LegalConversation, RequestSpec], Any]


def with_convert(convert: Convert, **changes: Any) -> Provider:
    """Returns Magpie with another `convert`."""
    members = {"convert": convert, **changes}
    chat = cast("type[FormatterBase]", type("Chat", (MagpieFormatter,), members))
    multi = cast("type[FormatterBase]", type("Multi", (MagpieMultiAgentFormatter,), members))
    return replace(PROVIDER, chat_formatter=chat, multi_agent_formatter=multi)


def sound(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    return MagpieFormatter.convert(self, legal, task)


def with_edited_requests(edit: Callable[[Any, Request], Any], **changes: Any) -> Provider:
    """Returns Magpie with edited requests."""

    def convert(self: Any, legal: LegalConversation, task: RequestSpec) -> Any:
        request = sound(self, legal, task)
        edited = edit(self, request)
        return request if edited is None else edited

    return with_convert(convert, **changes)


def with_edited_parts(edit: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> Provider:
    """Returns Magpie with edited parts, in turns and in results."""

    def apply(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for part in parts:
            if "result" in part:
                part["result"]["parts"] = apply(part["result"]["parts"])
        return [new for part in parts for new in edit(part)]

    def edit_request(self: Any, request: Request) -> None:
        for turn in request["turns"]:
            turn["parts"] = apply(turn["parts"])

    return with_edited_requests(edit_request)


def without_key(key: str) -> Provider:
    """Returns Magpie without one key of its requests."""
    return with_edited_requests(
        lambda self, request: {name: item for name, item in request.items() if name != key}
    )


def _as_jpeg(part: dict[str, Any]) -> list[dict[str, Any]]:
    media = part.get("media", {})
    if media.get("source", {}).get("media_type") != "image/png":
        return [part]
    return [{"media": {**media, "source": {**media["source"], "media_type": "image/jpeg"}}}]


def without_parts(kind: str) -> Provider:
    return with_edited_parts(lambda part: [] if kind in part else [part])


def without_media(kind: str) -> Provider:
    return with_edited_parts(lambda part: [] if part.get("media", {}).get("type") == kind else [part])


# -- requests -----------------------------------------------------------------------------------------------------


def _swap_roles(self: Any, request: Request) -> None:
    roles = {"user": "assistant", "assistant": "user"}
    for turn in request["turns"]:
        turn["role"] = roles.get(turn["role"], turn["role"])


def _one_role(self: Any, request: Request) -> None:
    for turn in request["turns"]:
        turn.update(role="user", name="")


def _no_names(self: Any, request: Request) -> None:
    for turn in request["turns"]:
        turn["name"] = ""


def _first_result_id(self: Any, request: Request) -> None:
    for turn in request["turns"]:
        for part in turn["parts"]:
            if "result" in part:
                part["result"]["id"] = "c1"


def _no_result_ids(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"result": {**part["result"], "id": ""}}] if "result" in part else [part]


def _no_failures(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"result": {**part["result"], "failed": False}}] if "result" in part else [part]


Part = dict[str, Any]


def _python_arguments(part: Part) -> str:
    return str(part["call"]["arguments"]).replace('"', "'")


def _no_text(part: Part) -> str:
    return ""


def _no_object(part: Part) -> str:
    return "{}"


def _call_without(name: str, value: Callable[[Part], str]) -> Callable[[Part], list[Part]]:
    return lambda part: [{"call": {**part["call"], name: value(part)}} if "call" in part else part]


def _cut_texts(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"text": part["text"][:2_000]}] if "text" in part else [part]


def _escaped_texts(part: dict[str, Any]) -> list[dict[str, Any]]:
    text = part.get("text", "").replace("&", "&amp;").replace("<", "&lt;")
    return [{"text": text}] if "text" in part else [part]


def _one_part(self: Any, request: Request) -> None:
    for turn in request["turns"]:
        turn["parts"] = turn["parts"][:1]


def _without_last_turn(self: Any, request: Request) -> None:
    request["turns"] = request["turns"][:-1] or request["turns"]


def _add_random_number(self: Any, request: Request) -> None:
    request["nonce"] = random.random()


def _open_file(self: Any, request: Request) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"log")


def _cache_requests(
    self: Any,
    legal: LegalConversation,
    task: RequestSpec,
    cache: dict[str, Request] = {},  # noqa: B006
) -> Request:
    request = sound(self, legal, task)
    return cache.setdefault(str(request), request)


def _sharing_tools(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    request = sound(self, legal, task)
    for tool, sent in zip(task.tools, request.get("tools", []), strict=True):
        sent["parameters"] = tool.parameters
    return request


def _sharing_schema(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    request = sound(self, legal, task)
    return {**request, "format": task.output.schema} if task.output else request


def _changing_tools(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    for tool in task.tools:
        tool.parameters["title"] = tool.name
    return sound(self, legal, task)


def _changing_calls(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    for msg in legal.turns.msgs:
        for use in msg.tool_uses:
            use.input["checked"] = True
    return sound(self, legal, task)


def _count_requests(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    self.count = getattr(self, "count", 0) + 1
    return {**sound(self, legal, task), "count": self.count}


def _key_error(self: Any, *_args: object) -> Request:
    raise KeyError("x")


def _system_exit(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    raise SystemExit(3)


def _no_json(self: Any, request: Request) -> None:
    request["raw"] = b"bytes"


def _any_choice(self: Any, request: Request) -> None:
    if "choice" in request:
        request["choice"] = {"mode": "required", "name": None}


def _no_descriptions(self: Any, request: Request) -> None:
    for tool in request.get("tools", []):
        del tool["about"]


def _flat_parameters(self: Any, request: Request) -> None:
    for tool in request.get("tools", []):
        tool["parameters"]["properties"].pop("detailLevel", None)


def _first_tool(self: Any, request: Request) -> None:
    request["tools"] = request.get("tools", [])[:1]


def _leaking_thinking(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    return {**sound(self, legal, task), "hidden": ["xyz"]}


def _without_facts(self: FormatterBase, model: str | None = None) -> Capabilities:
    return self.base


def _without_proof(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**part, "proof": None}] if "thinking" in part else [part]


def _object_only(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    return {key: item for key, item in sound(self, legal, task).items() if key != "format"}


def _no_schema_beside_tools(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    request = sound(self, legal, task)
    return {key: item for key, item in request.items() if key != "format" or not task.tools}


def _no_thinking_of_replies(self: Any, legal: LegalConversation, task: RequestSpec) -> Request:
    request = sound(self, legal, task)
    for turn in request["turns"]:
        turn["parts"] = [part for part in turn["parts"] if part.get("proof") != "c2lnbmVk"]
    return request


def _without_model(self: Any, model: str | None = None, **options: Any) -> None:
    MagpieFormatter.__init__(self, "another", **options)


STRICT: Final = StrictRules(
    keywords=frozenset({"type", "properties", "required", "additionalProperties"}), formats=frozenset()
)
REQUESTS: Final[dict[str, tuple[Provider, str]]] = {
    "drops every image": (without_media("image"), "the image of msgs[0].content[1] is not sent"),
    "drops all audio": (without_media("audio"), "the audio of msgs[0].content[2] is not sent"),
    "drops every video": (without_media("video"), "the video of msgs[0].content[3] is not sent"),
    "drops every document": (without_media("document"), "the document of msgs[0].content[4] is not sent"),
    "sends media twice": (
        with_edited_parts(lambda part: [part, part] if "media" in part else [part]),
        "the image of msgs[0].content[1] is sent 2 times",
    ),
    "sends every image as JPEG": (
        with_edited_parts(_as_jpeg),
        "an image of the type 'image/png' is sent as 'image/jpeg'",
    ),
    "drops tools": (without_key("tools"), "the tool 'look' is not sent"),
    "sends one tool": (with_edited_requests(_first_tool), "the tool 'count' is not sent"),
    "drops descriptions of tools": (with_edited_requests(_no_descriptions), "the description 'toolLook'"),
    "drops nested parameters": (
        with_edited_requests(_flat_parameters),
        "the parameter 'zoomFactor' of a tool is not sent",
    ),
    "drops response_format": (without_key("format"), "'verdictText' of response_format is not sent"),
    "drops response_format beside tools": (
        with_convert(_no_schema_beside_tools),
        "'verdictText' of response_format is not sent together with tools",
    ),
    "drops the thinking of replies": (
        with_convert(_no_thinking_of_replies),
        "the thinking 'I should look first.' is not sent back",
    ),
    "drops the flag of JSON": (
        with_convert(_object_only, base=replace(sound_provider.MAGPIE, output="object")),
        "response_format adds no field that requests JSON output",
    ),
    "drops the strict flag": (
        with_convert(sound, base=MAGPIE.override({"tools.strict": STRICT})),
        "the strict flag of a tool is not sent",
    ),
    "drops tool_choice": (
        without_key("choice"),
        "tool_choice='none' results in the same request as tool_choice=None",
    ),
    "forces any tool instead of the chosen tool": (
        with_edited_requests(_any_choice),
        "results in the same request as",
    ),
    "drops thinking": (without_parts("thinking"), "thinking is not sent back"),
    "drops the proof of thinking": (with_edited_parts(_without_proof), "thinking is not sent back"),
    "sends the thinking of another issuer": (
        with_convert(_leaking_thinking),
        "thinking from another provider is in the request",
    ),
    "drops calls": (without_parts("call"), "the tool call with 'callOne' is sent 0 times"),
    "drops results": (without_parts("result"), "the tool result 'resultOne' is sent 0 times"),
    "drops texts": (without_parts("text"), "is not sent, but the ledger does not list"),
    "drops the system prompt": (without_key("system"), "'markSystem' of msgs[0].content[0] is not sent"),
    "drops all parts but the first": (with_edited_requests(_one_part), "is not sent"),
    "drops the last turn": (with_edited_requests(_without_last_turn), "is not sent"),
    "sends texts twice": (
        with_edited_parts(lambda part: [part, part] if "text" in part else [part]),
        "is sent 2 times",
    ),
    "sends calls twice": (
        with_edited_parts(lambda part: [part, part] if "call" in part else [part]),
        "the tool call with 'callOne' is sent 2 times",
    ),
    "cuts long texts": (with_edited_parts(_cut_texts), "is not sent unchanged"),
    "escapes texts": (with_edited_parts(_escaped_texts), "is not sent unchanged"),
    "reverses the order of turns": (
        with_edited_requests(lambda self, request: {**request, "turns": request["turns"][::-1]}),
        "sent in the wrong order",
    ),
    "swaps the roles": (with_edited_requests(_swap_roles), "a turn of the user is sent with the role 'assistant'"),
    "gives all turns one role": (
        with_edited_requests(_one_role),
        "of the assistant and of the user have the same format",
    ),
    "loses names": (with_edited_requests(_no_names), "the name of the speaker 'Bob' is not sent"),
    "loses names in multi-agent requests": (
        replace(PROVIDER, multi_agent_formatter=with_edited_requests(_no_names).chat_formatter),
        "Chat, names: the name of the speaker 'Bob' is not sent",
    ),
    "gives results the id of the first call": (
        with_edited_requests(_first_result_id),
        "the call has the call id 'c2', but the result does not",
    ),
    "omits the ids of results": (
        with_edited_parts(_no_result_ids),
        "the call has the call id 'c1', but the result does not",
    ),
    "loses the error flag of results": (
        with_edited_parts(_no_failures),
        "a failed tool result is sent in the same way",
    ),
    "loses the names of tools": (
        with_edited_parts(_call_without("tool", _no_text)),
        "does not name its tool 'look'",
    ),
    "loses arguments": (with_edited_parts(_call_without("arguments", _no_object)), "is sent 0 times"),
    "writes arguments as Python": (
        with_edited_parts(_call_without("arguments", _python_arguments)),
        "the request changes the arguments of a tool call",
    ),
    "shares the parameters of tools": (
        with_convert(_sharing_tools),
        "modifying the request also modifies the parameters of a tool",
    ),
    "shares the schema": (
        with_convert(_sharing_schema),
        "modifying the request also modifies the schema of response_format",
    ),
    "changes the parameters of tools": (
        with_convert(_changing_tools),
        "building a request changes the parameters of a tool",
    ),
    "changes the arguments of calls": (with_convert(_changing_calls), "building a request changes the messages"),
    "caches its requests": (with_convert(_cache_requests), "two requests share lists or dicts"),
    "counts its requests": (with_convert(_count_requests), "building a request again from the same conversation"),
    "adds random numbers": (
        with_edited_requests(_add_random_number),
        "building a request again from the same conversation",
    ),
    "opens files": (with_edited_requests(_open_file), "building a request causes I/O: "),
    "raises KeyError": (with_convert(_key_error), "raises KeyError: 'x'"),
    "exits": (with_convert(_system_exit), "raises SystemExit: 3"),
    "returns bytes": (with_edited_requests(_no_json), "the request is not JSON"),
    "returns a list": (
        with_edited_requests(lambda self, request: [request]),
        "convert(): expected dict, got list",
    ),
    "returns None": (with_convert(lambda self, legal, task: None), "convert(): expected dict, got None"),
    "applies no facts": (
        with_convert(sound, capabilities=_without_facts),
        "the `ModelFact` for 'chick' is not applied",
    ),
    "cannot be created": (with_convert(sound, __init__=_key_error), "Chat: raises KeyError: 'x'"),
    "has no history policy": (with_convert(sound, default_history=None), "Chat: raises TypeError"),
    "forgets the model": (
        with_convert(sound, __init__=_without_model),
        "Chat: the attribute `model` of a formatter is",
    ),
}

# -- logs ---------------------------------------------------------------------------------------------------------


def _with_edited_log(edit: Callable[[list[Msg]], Any]) -> Provider:
    def load(log: object) -> list[Msg]:
        return cast("list[Msg]", edit(load_native(log)))

    return replace(PROVIDER, load_native=load)


def _fragile(log: object) -> list[Msg]:
    return load_native(log) if cast("dict[str, Any]", log)["turns"] else []


def _skipping(log: object) -> list[Msg]:
    request = cast("dict[str, Any]", log)
    turns: list[Any] = [{**turn, "parts": as_list(turn.get("parts"))} for turn in request["turns"]]
    return load_native({**request, "turns": turns})


def _taking_anything(log: object) -> list[Msg]:
    return load_native(cast("object", log)) if isinstance(log, dict) else cast("Any", 3)


def _remove_messages(log: object) -> list[Msg]:
    msgs = load_native(log)
    cast("dict[str, Any]", log)["turns"].clear()
    return msgs


def _other_role(msg: Msg) -> Msg:
    return replace(msg, role="user" if msg.role == "assistant" else msg.role)


LOGS: Final[dict[str, tuple[Provider, str]]] = {
    "loads nothing": (
        _with_edited_log(lambda msgs: []),
        "load_native: system prompt and three turns: raises EmptyConversationError",
    ),
    "loses the last message": (
        _with_edited_log(lambda msgs: msgs[:-1] or msgs),
        "a request that is built from the loaded messages differs",
    ),
    "loses texts": (
        _with_edited_log(
            lambda msgs: [replace(msg, content=msg.content if msg.tool_uses else "x") for msg in msgs]
        ),
        "a request that is built from the loaded messages differs",
    ),
    "loads all messages as user messages": (
        _with_edited_log(lambda msgs: [*map(_other_role, msgs)]),
        "has a different role after loading",
    ),
    "raises for a value that is not a log": (
        replace(PROVIDER, load_native=_fragile),
        "instead of an AgentkitError",
    ),
    "changes the log": (replace(PROVIDER, load_native=_remove_messages), "`load_native` changes the request"),
    "omits unreadable turns": (
        replace(PROVIDER, load_native=_skipping),
        "a turn with the value 3 under 'parts' is loaded without an error",
    ),
    "returns dicts": (_with_edited_log(lambda msgs: [msg.to_dict() for msg in msgs]), "load_native: "),
    "accepts any value": (
        replace(PROVIDER, load_native=_taking_anything),
        "is loaded as 'int' instead of a list of Msg",
    ),
}


# -- replies ------------------------------------------------------------------------------------------------------


class NoUsage(MagpieParser):
    def read_usage(self, usage: dict[str, Any]) -> None:
        """Ignores the usage."""


class NoUsageInStreams(MagpieParser):
    def read_event(self, event: dict[str, Any]) -> None:
        super().read_event({key: item for key, item in event.items() if key != "usage"})

    def read_reply(self, reply: dict[str, Any]) -> None:
        self.read_usage(reply.get("usage") or {})
        super().read_reply(reply)


class NoReason(MagpieParser):
    def read_event(self, event: dict[str, Any]) -> None:
        super().read_event({**event, "over": "done"} if "over" in event else event)


class NoThinking(MagpieParser):
    def read_event(self, event: dict[str, Any]) -> None:
        piece = event.get("piece")
        super().read_event({} if isinstance(piece, dict) and "thinking" in piece else event)


class NoProof(MagpieParser):
    def read_event(self, event: dict[str, Any]) -> None:
        piece = event.get("piece")
        if isinstance(piece, dict):
            event = {**event, "piece": {key: item for key, item in cast("Any", piece).items() if key != "proof"}}
        super().read_event(event)


class FirstPiece(MagpieParser):
    """Parser that reads only the first piece of arguments."""

    def read_event(self, event: dict[str, Any]) -> None:
        piece = event.get("piece")
        split = isinstance(piece, dict) and "arguments" in piece and "tool" not in piece
        super().read_event({} if split else event)


class NoArguments(MagpieParser):
    def read_event(self, event: dict[str, Any]) -> None:
        piece = event.get("piece")
        if isinstance(piece, dict) and "arguments" in piece:
            event = {**event, "piece": {**cast("dict[str, Any]", piece), "arguments": "{}"}}
        super().read_event(event)


class OneCall(MagpieParser):
    def read_event(self, event: dict[str, Any]) -> None:
        super().read_event({} if event.get("number") == 3 else event)


class OtherIds(MagpieParser):
    def read_event(self, event: dict[str, Any]) -> None:
        piece = event.get("piece")
        if isinstance(piece, dict) and "id" in piece:
            event = {**event, "piece": {**cast("dict[str, Any]", piece), "id": f"x{piece['id']}"}}
        super().read_event(event)


class OnePart(MagpieParser):
    """Parser that reads all parts into one block."""

    def read_event(self, event: dict[str, Any]) -> None:
        super().read_event({**event, "number": min(event.get("number") or 0, 2)})


class Fragile(MagpieParser):
    def read_event(self, event: dict[str, Any]) -> None:
        super().read_event(event if "over" in event or "usage" in event else {**event, "piece": event["piece"]})


class FragileWhole(MagpieParser):
    def read_reply(self, reply: dict[str, Any]) -> None:
        super().read_reply({**reply, "parts": reply["parts"]})


class Forgetful(MagpieParser):
    """Parser that keeps the texts of other replies."""

    texts: list[str] = []  # noqa: RUF012

    def read_reply(self, reply: dict[str, Any]) -> None:
        self.texts.append("again")
        super().read_reply(reply)
        if len(self.texts) > 1:
            self.reply.add_text((9,), "again")


class EatingParser(MagpieParser):
    def read_reply(self, reply: dict[str, Any]) -> None:
        super().read_reply(reply)
        reply.pop("usage", None)


class ExitingParser(MagpieParser):
    def feed(self, chunk: object) -> list[StreamEvent]:
        raise SystemExit(3)


class Foreign(MagpieParser):
    issuer = "somebody"


class User(MagpieParser):
    def finish(self) -> Msg:
        return replace(super().finish(), role="user")


def with_parser(parser: type[StreamParserBase]) -> Provider:
    return replace(PROVIDER, parser=parser)


REPLIES: Final[dict[str, tuple[Provider, str]]] = {
    "loses usage": (
        with_parser(NoUsage),
        "the reply has usage ('input_tokens' is 90), but the message has no usage",
    ),
    "loses the usage of streams": (
        with_parser(NoUsageInStreams),
        "results in a different message than the complete reply",
    ),
    "loses the finish reason": (with_parser(NoReason), "finish reason: expected length, got stop"),
    "loses thinking": (
        with_parser(NoThinking),
        "'I should look first.' under the key 'thinking' is not in the message",
    ),
    "loses the proof of thinking": (with_parser(NoProof), "thinking: "),
    "loses arguments in pieces": (
        with_parser(FirstPiece),
        "results in a different message than the complete reply",
    ),
    "loses arguments": (with_parser(NoArguments), "no tool call of the message has the arguments"),
    "loses the second call": (with_parser(OneCall), "calls: "),
    "joins calls": (with_parser(OnePart), "calls: "),
    "changes call ids": (with_parser(OtherIds), "call id: expected "),
    "breaks at an unknown event": (with_parser(Fragile), "an unknown event raises KeyError"),
    "breaks at a reply without a part": (with_parser(FragileWhole), "a reply without 'parts' raises KeyError"),
    "mixes replies": (with_parser(Forgetful), "results in a different message"),
    "changes the reply": (with_parser(EatingParser), "the parser changed its input"),
    "exits": (with_parser(ExitingParser), "raises SystemExit"),
    "names another issuer": (with_parser(Foreign), "Foreign: `issuer` is 'somebody'"),
    "returns a user message": (with_parser(User), "the message has the role 'user'"),
    "has no parser": (replace(PROVIDER, parser=None), "samples were passed, but the provider has no parser"),
}


# -- calls --------------------------------------------------------------------------------------------------------


class EmptyBody(MagpieEndpoint):
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        return OutgoingRequest("/fly", {}, stream)


class NoModel(MagpieEndpoint):
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        return OutgoingRequest("/fly", {**request, **options}, stream)


class NoOptions(MagpieEndpoint):
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        return OutgoingRequest("/fly", {**request, "model": model}, stream)


class NeverStreams(MagpieEndpoint):
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        return replace(super().build_request(model, request, options, stream=stream), stream=False)


class ChangingBody(MagpieEndpoint):
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        cast("dict[str, Any]", request)["model"] = model
        return super().build_request(model, request, options, stream=stream)


class CountingBody(MagpieEndpoint):
    """Endpoint that counts its calls."""

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        self.count = getattr(self, "count", 0) + 1
        return super().build_request(model, {**request, "count": self.count}, options, stream=stream)


class DictBody(MagpieEndpoint):
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> Any:
        return dict(request)


class SendsNothing(MagpieEndpoint):
    async def send(self, outgoing: OutgoingRequest) -> bytes:
        return bytes(await self.client.fly(outgoing.path, {}))


class StreamsNothing(MagpieEndpoint):
    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[Any]]:
        yield await self.client.fly(outgoing.path, {}, stream=True)


class FailingFailure(MagpieEndpoint):
    def failure_from_exception(self, error: BaseException) -> Failure | None:
        return Failure(cast("Any", error).response.text)


class NumberFailure(MagpieEndpoint):
    def failure_from_exception(self, error: BaseException) -> Any:
        return 500


class AnyFailure(MagpieEndpoint):
    def failure_from_exception(self, error: BaseException) -> Failure | None:
        return Failure(str(error))


class FailingFailureIn(MagpieEndpoint):
    def failure_from_reply(self, reply: object) -> Failure | None:
        return Failure(cast("Any", reply)["error"]["message"])


class NoLimit(MagpieEndpoint):
    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        return {}


class NestedLimit(MagpieEndpoint):
    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        return {"limits": {"tokens": max_tokens}}


class NoNestedOptions(NestedLimit):
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        options = {name: value for name, value in options.items() if name != "limits"}
        return super().build_request(model, request, options, stream=stream)


class KeyErrorBody(MagpieEndpoint):
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        return super().build_request(model, {"wings": request["wings"]}, options, stream=stream)


def with_endpoint(endpoint: Any) -> Provider:
    return replace(PROVIDER, endpoint=endpoint)


CALLS: Final[dict[str, tuple[Provider, str]]] = {
    "builds an empty body": (with_endpoint(EmptyBody), "`build_request` omits"),
    "builds a body without the model": (with_endpoint(NoModel), "`build_request` omits the model"),
    "builds a body without parameters": (
        with_endpoint(NoOptions),
        "`build_request` omits the parameter 'temperature'",
    ),
    "builds a body without a nested parameter": (
        with_endpoint(NoNestedOptions),
        "`build_request` omits the parameter 'limits'",
    ),
    "never streams": (
        with_endpoint(NeverStreams),
        "`build_request` with stream=True returns an OutgoingRequest with stream=False",
    ),
    "changes the request": (with_endpoint(ChangingBody), "`build_request` changes the request"),
    "counts its calls": (with_endpoint(CountingBody), "returns a different OutgoingRequest if called again"),
    "returns a dict as the body": (
        with_endpoint(DictBody),
        "`build_request` returns 'dict' instead of an OutgoingRequest",
    ),
    "sends {}": (with_endpoint(SendsNothing), "`send` does not send the body"),
    "streams {}": (with_endpoint(StreamsNothing), "`stream` does not send the body"),
    "raises in failure_from_exception": (
        with_endpoint(FailingFailure),
        "`failure_from_exception` raises AttributeError",
    ),
    "returns a number from failure_from_exception": (
        with_endpoint(NumberFailure),
        "`failure_from_exception` returns 'int' for ValueError",
    ),
    "classifies errors of the application as its own": (
        with_endpoint(AnyFailure),
        "classifies an error of the application",
    ),
    "raises in failure_from_reply": (with_endpoint(FailingFailureIn), "`failure_from_reply` raises"),
    "has no parameter for the token limit": (
        with_endpoint(NoLimit),
        "`max_tokens_parameter` returns no parameter with the token limit",
    ),
    "raises KeyError": (with_endpoint(KeyErrorBody), "raises KeyError: 'wings'"),
}


# -- layouts ------------------------------------------------------------------------------------------------------


def with_layout(**keys: Any) -> Provider:
    """Returns Magpie with other keys in its layout."""
    layout = replace(MAGPIE.layout, **keys)
    formatters = [
        cast("type[FormatterBase]", type("Described", (cls,), {"base": MAGPIE.override({"layout": layout})}))
        for cls in (MagpieFormatter, MagpieMultiAgentFormatter)
    ]
    parser = cast("type[StreamParserBase]", type("Parser", (MagpieParser,), {"layout": layout}))
    return replace(PROVIDER, chat_formatter=formatters[0], multi_agent_formatter=formatters[1], parser=parser)


def no_parts(turn: Any) -> Iterator[Any]:
    yield from ()


class UnawareParser(MagpieParser):
    layout = WireLayout()


LAYOUTS: Final[dict[str, tuple[Provider, str]]] = {
    "declares no turns": (
        with_layout(turns="messages"),
        "`turns` is 'messages', but the request has lists only under these keys: 'system', 'turns', 'tools'",
    ),
    "declares another list as the turns": (
        with_layout(turns="tools"),
        "the list under this key does not contain the text",
    ),
    "declares no roles of replies": (
        with_layout(reply_roles=frozenset[str]()),
        "must select the reply and no other turn",
    ),
    "declares another key of roles": (with_layout(role="speaker"), "`role` ('speaker')"),
    "declares no results": (with_layout(result_keys=frozenset[str]()), "do not select the tool result"),
    "declares no prompt": (with_layout(prompt=""), "`prompt` is '', but the system prompt is under 'system'"),
    "declares no tools": (
        with_layout(tools="functions"),
        "`tools` is 'functions', but the tools are under 'tools'",
    ),
    "declares no media": (with_layout(media={}), "Add the key of images to `media`"),
    "declares no data of media": (
        with_layout(media_data=("bytes",)),
        "`media` and `media_data` do not select the image in the request",
    ),
    "declares no ids": (with_layout(silent=frozenset[str]()), "'call_1a2b' under the key 'id' is counted as text"),
    "declares no text documents": (
        with_layout(media_types=("type_of_file",)),
        "the text of a text document is not counted",
    ),
    "declares no schemas of tools": (
        with_layout(tool_schemas=("schema",)),
        "the parameters of a tool are not loaded",
    ),
    "declares a wrapper of tools": (with_layout(tool_wrapper="parameters"), "WireLayout: raises MessageError"),
    "declares no tool choice": (
        with_layout(options=OptionLayout(choices=(), outputs=("format",))),
        "the tool choice ToolChoice(mode='none') is loaded as None. Check `options.choices`",
    ),
    "declares no schema": (
        with_layout(options=OptionLayout(choices=("choice",), outputs=())),
        "the response format is loaded as None. Check `options.outputs`",
    ),
    "declares texts as labels": (
        with_layout(labels=frozenset({"text"})),
        "the error 'turns[0].parts[0]: invalid value' is assigned to no block",
    ),
    "omits turns from the digest": (with_layout(digest_turn=no_parts), "does not depend on the turns"),
    "differs from the layout of the parser": (
        replace(PROVIDER, parser=UnawareParser),
        "UnawareParser.layout: not the layout of MagpieFormatter. Use MagpieFormatter.base.layout",
    ),
}


MUTANTS: Final = {
    f"{group}: {name}": mutant
    for group, table in (
        ("requests", REQUESTS),
        ("logs", LOGS),
        ("replies", REPLIES),
        ("calls", CALLS),
        ("layouts", LAYOUTS),
    )
    for name, mutant in table.items()
}


def test_the_sound_provider_conforms() -> None:
    check_provider(PROVIDER, samples=SAMPLES)


def test_a_media_type_that_is_not_that_of_a_media_item_is_no_fault() -> None:
    faults = _find_faults(with_edited_requests(lambda self, request: {**request, "accept": "application/json"}))
    assert [fault for fault in faults if "is sent as" in fault] == []


def _find_faults(provider: Provider) -> tuple[str, ...]:
    try:
        check_provider(provider, samples=SAMPLES)
    except ConformanceError as error:
        return error.faults
    return ()


def test_a_provider_whose_limit_of_tokens_is_nested_conforms() -> None:
    check_provider(with_endpoint(NestedLimit), samples=SAMPLES)


@pytest.mark.parametrize("name", MUTANTS)
def test_each_broken_provider_is_reported(name: str) -> None:
    provider, expected = MUTANTS[name]
    with pytest.raises(ConformanceError) as caught:
        check_provider(provider, samples=SAMPLES)
    assert [fault for fault in caught.value.faults if expected in fault], caught.value.faults


def test_the_table_has_more_than_80_broken_providers() -> None:
    assert len(MUTANTS) > 80


def test_samples_that_cannot_show_a_loss_of_usage_are_reported() -> None:
    reply = {key: value for key, value in sound_provider.COMPLETE_REPLY.items() if key != "usage"}
    events = [event for event in EVENTS if "usage" not in event]
    with pytest.raises(ConformanceError, match="MagpieParser: no sample has usage"):
        check_provider(PROVIDER, samples=[(reply, events)])
    check_provider(PROVIDER, samples=[(reply, events, replace(sound_provider.EXPECTED_MESSAGE, usage=Usage()))])


def test_counts_may_be_floats() -> None:
    reply = {**sound_provider.COMPLETE_REPLY, "usage": {"input_tokens": 90.0, "output_tokens": 40.0}}
    with pytest.raises(ConformanceError, match="the reply has usage"):
        check_provider(with_parser(NoUsage), samples=[(reply, EVENTS), SAMPLES[0]])


SAMPLE: Final[Sample] = (sound_provider.COMPLETE_REPLY, sound_provider.EVENTS)


@pytest.mark.parametrize("name", ["loses usage", "loses thinking", "loses arguments", "loses arguments in pieces"])
def test_faults_are_reported_for_samples_without_an_expected_message(name: str) -> None:
    provider, _ = REPLIES[name]
    with pytest.raises(ConformanceError):
        check_provider(provider, samples=[SAMPLE])


def test_the_check_runs_inside_an_event_loop() -> None:
    import anyio

    async def main() -> None:
        check_provider(PROVIDER, samples=SAMPLES)

    anyio.run(main)
    anyio.run(main, backend="trio")
