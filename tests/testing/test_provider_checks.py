"""`check_provider`: all built-in providers and a third-party provider pass, and each fault is reported."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from agentkit import (
    FinishReason,
    Msg,
    OpaqueState,
    OptionError,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
    load_provider,
)
from agentkit.provider_kit import (
    FormatterBase,
    LegalConversation,
    Provider,
    Request,
    RequestSpec,
    StreamParserBase,
)
from agentkit.testing import ConformanceError, Reply, Sample, check_provider
from agentkit.testing.replies import NormalizedReply, ReceivedCall
from agentkit.testing.routes import find_route
from tests.conftest import ECHO, EchoFormatter
from tests.providers import PROVIDERS

PATHS: Final = {
    "anthropic": "/v1/messages",
    "dashscope": "/api/v1/services/aigc/multimodal-generation/generation",
    "dashscope-compatible": "/compatible-mode/v1/chat/completions",
    "deepseek": "/deepseek/chat/completions",
    "gemini": "/v1beta/models/m:generateContent",
    "ollama": "/api/chat",
    "ollama-raw": "/api/generate",
    "openai": "/v1/chat/completions",
    "openai-completions": "/v1/completions",
    "openai-responses": "/v1/responses",
    "vllm": "/vllm/v1/chat/completions",
}
CALLS: Final = (ToolUseBlock("call_1", "look", {"place": "Köln"}), ToolUseBlock("call_2", "look", {}))
REPLIES: Final[dict[str, Reply]] = {
    "text": Reply(
        Msg("a", "Hello there, my \U0001f600 friend.", "assistant"), usage=Usage(9, 5, cache_read_tokens=4)
    ),
    "calls": Reply(Msg("a", [TextBlock("Let me look."), *CALLS], "assistant")),
    "cut": Reply(Msg("a", "Half a", "assistant"), finish_reason=FinishReason.LENGTH),
}
REPLY_WITH_THINKING: Final = Reply(
    Msg(
        "a",
        [ThinkingBlock("I should look.", OpaqueState("x", signature="sig")), TextBlock("Yes."), *CALLS],
        "assistant",
    )
)


def sample(provider: str, reply: Reply) -> Sample:
    """Returns a reply of the loopback server: the complete reply, and the raw bytes of its stream."""
    target = find_route(PATHS[provider])
    assert target is not None
    assert isinstance(reply.content, Msg)
    body = {"stream": True, "stream_options": {"include_usage": True}, "parameters": {"incremental_output": True}}
    call = ReceivedCall("m", body, is_streamed=True)
    normalized = NormalizedReply.normalize(reply.content, reply, "prompt")
    service = target.service
    stream = b"".join(service.encode_events(service.build_events(normalized, call))) + service.stream_end
    return service.build_reply(normalized, call), stream


def samples(provider: str) -> list[Sample]:
    thoughts = [] if provider == "openai" else [REPLY_WITH_THINKING]
    return [sample(provider, reply) for reply in (*REPLIES.values(), *thoughts)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_built_in_provider_conforms(provider: str) -> None:
    check_provider(provider, samples=samples(provider))


@pytest.fixture
def parrot(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """The provider of another distribution."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "providers" / "third_party"))  # pyright: ignore[reportUnknownMemberType]
    sys.modules.pop("agentkit_parrot", None)
    load_provider.cache_clear()
    yield load_provider("parrot")
    sys.modules.pop("agentkit_parrot", None)
    load_provider.cache_clear()


def test_a_provider_of_another_distribution_conforms(parrot: Provider) -> None:
    check_provider(parrot)
    check_provider("parrot")


# -- reported problems ------------------------------------------------------------------------------------------


def echo(**changed: Any) -> Provider:
    """Returns a provider that conforms, except for the changes."""

    class Multi(EchoFormatter):
        pass

    kind: type[FormatterBase] = type("Wrong", (EchoFormatter,), changed) if changed else EchoFormatter
    return Provider("echo", kind, Multi)


def list_faults(provider: Provider, samples: Sequence[Sample] = ()) -> str:
    with pytest.raises(ConformanceError) as caught:
        check_provider(provider, samples=samples)
    assert caught.value.provider == "echo"
    return "\n".join(caught.value.faults)


def test_the_echo_target_of_the_tests_conforms() -> None:
    check_provider(echo())


def test_a_request_that_loses_a_message_is_reported() -> None:
    def convert(self: EchoFormatter, legal: LegalConversation, task: RequestSpec) -> Request:
        request = EchoFormatter.convert(self, legal, task)
        return {"messages": request["messages"][:1]}

    assert "markAnswer' of msgs[2].content[0] is not sent" in list_faults(echo(convert=convert))


def test_a_request_that_repeats_content_is_reported() -> None:
    def convert(self: EchoFormatter, legal: LegalConversation, task: RequestSpec) -> Request:
        request = EchoFormatter.convert(self, legal, task)
        return {"messages": [*request["messages"], *request["messages"]]}

    report = list_faults(echo(convert=convert))
    assert "is sent 2 times" in report
    assert "the tool call with 'callOne' is sent 2 times" in report


def test_a_request_in_another_order_is_reported() -> None:
    def convert(self: EchoFormatter, legal: LegalConversation, task: RequestSpec) -> Request:
        request = EchoFormatter.convert(self, legal, task)
        return {"messages": request["messages"][::-1]}

    report = list_faults(echo(convert=convert))
    assert "comes before its call" in report
    assert "sent in the wrong order" in report


def test_a_request_that_is_stored_and_shared_is_reported() -> None:
    requests: dict[int, Request] = {}

    def convert(self: EchoFormatter, legal: LegalConversation, task: RequestSpec) -> Request:
        return requests.setdefault(hash(legal.turns.msgs[-1].text), EchoFormatter.convert(self, legal, task))

    assert "two requests share lists or dicts" in list_faults(echo(convert=convert))


def test_a_request_that_depends_on_an_earlier_request_is_reported() -> None:
    count = iter(range(10_000))

    def convert(self: EchoFormatter, legal: LegalConversation, task: RequestSpec) -> Request:
        return {**EchoFormatter.convert(self, legal, task), "number": next(count)}

    assert "building a request again from the same conversation" in list_faults(echo(convert=convert))


def test_a_formatter_that_raises_is_reported() -> None:
    assert "raises" in list_faults(
        echo(base=ECHO.override({"media.image": None}), default_on_loss="x", convert=_refuses)
    )


def test_a_formatter_that_raises_an_error_of_another_package_is_reported() -> None:
    def convert(self: EchoFormatter, legal: LegalConversation, task: RequestSpec) -> Request:
        raise KeyError("x")

    assert "raises KeyError" in list_faults(echo(convert=convert))
    with pytest.raises(OptionError, match="provider"):
        check_provider(None)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def _refuses(self: EchoFormatter, legal: LegalConversation, task: RequestSpec) -> Request:
    Msg("a", "b", "nobody")  # type: ignore[arg-type]
    return {}


class Parser(StreamParserBase):
    """Parser of {"said": text}. It joins the texts of a stream."""

    provider = "echo"
    issuer = "echo"
    layout = ECHO.layout

    def read_event(self, event: dict[str, Any]) -> None:
        self.reply.add_text((0,), str(event.get("said", "")))
        if event.get("end"):
            self.reply.end(FinishReason.STOP, "stop")

    def read_reply(self, reply: dict[str, Any]) -> None:
        self.read_event(reply)


def with_parser(parser: type[StreamParserBase]) -> Provider:
    return replace(echo(), parser=parser)


EXPECTED: Final = Reply("ab", usage=Usage())
GOOD: Final[Sample] = ({"said": "ab", "end": True}, [{"said": "a"}, {"said": "b", "end": True}], EXPECTED)


def test_a_parser_that_reads_streams_and_complete_replies_alike_conforms() -> None:
    check_provider(with_parser(Parser), samples=[GOOD, (GOOD[0], b'{"said":"ab"}\n{"end":true}\n', EXPECTED)])


def test_a_stream_that_differs_from_the_complete_reply_is_reported() -> None:
    report = list_faults(with_parser(Parser), [({"said": "ab", "end": True}, [{"said": "a", "end": True}])])
    assert "Parser, samples[0]: the stream, read event by event, results in a different message" in report


def test_a_parser_that_fails_at_an_unknown_event_is_reported() -> None:
    class Fragile(Parser):
        def read_event(self, event: dict[str, Any]) -> None:
            super().read_event({"said": event["said"]} | event)

    assert "an unknown event raises KeyError" in list_faults(with_parser(Fragile), [GOOD])


def test_samples_without_a_parser_are_reported() -> None:
    assert "has no parser" in list_faults(echo(), [GOOD])


def test_a_log_that_loads_as_other_messages_is_reported() -> None:
    def load(log: object) -> list[Msg]:
        return [Msg("Ann", "something else", "user")]

    assert "built from the loaded messages differs from the original" in list_faults(
        replace(echo(), load_native=load)
    )
