"""Conversations for the tables of expected requests: each is built once, for all providers."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agentkit import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    Msg,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
)
from tests.providers import (
    JPEG,
    LOOK,
    MP3,
    MP4,
    OTHER_PNG,
    PDF,
    PNG_URL,
    TEXT,
    UNKNOWN,
    WAV,
    assistant,
    call,
    picture,
    result,
    system,
    user,
)

__all__ = ["CONVERSATIONS", "Conversation"]


@dataclass(frozen=True)
class Conversation:
    """Messages and the options of one request.

    Attributes:
        msgs: Messages.
        options: Keyword arguments of `lower`: tools, tool choice, response format.
    """

    msgs: Sequence[Msg]
    options: dict[str, Any] = field(default_factory=dict[str, Any])


def _request(*msgs: Msg, **options: Any) -> Conversation:
    return Conversation(msgs, options)


def _answer(*output: Any, call_id: str = "c1") -> Msg:
    return system(ToolResultBlock(call_id, "look", output))


def _image(url: str) -> ImageBlock:
    return ImageBlock(URLSource(url))


def _other_image(name: str) -> ImageBlock:
    return picture(b64encode(_OTHER_FORMATS[name]).decode(), f"image/{name}")


def _audio(media_type: str, data: str) -> AudioBlock:
    return AudioBlock(Base64Source(media_type, data))


def _document(media_type: str, data: str, title: str | None = None) -> DocumentBlock:
    return DocumentBlock(Base64Source(media_type, data), title=title)


_ANTHROPIC: Final = OpaqueState("anthropic", signature="EsQC")
_OPENAI: Final = OpaqueState("openai", encrypted_content="gAAA==", item_id="rs_1")
_GEMINI: Final = OpaqueState("gemini", thought_signature="c2ln")

_PROOFS: Final = (None, _ANTHROPIC, _OPENAI, _GEMINI)
_STATES: Final = (*_PROOFS, *map(OpaqueState, ("deepseek", "dashscope", "ollama", "vllm")))
"""States of thinking blocks: without issuer, then of each issuer."""

_CALL_IDS: Final = ("functions.look:0", "a|1", "a:1", "x" * 64 + "1", "x" * 64 + "2")
_TOOL_NAMES: Final = ("files.read", "search", "查找", "n" * 70)
_OTHER_FORMATS: Final = {
    "bmp": b"BM\x1e\0\0\0\0\0\0\0\x1a\0\0\0\x0c\0\0\0",
    "gif": b"GIF89a\x01\0\x01\0\0\0\0;",
    "heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
    "tiff": b"II*\0\x08\0\0\0",
    "webp": b"RIFF\x0c\0\0\0WEBPVP8 ",
}
_OTHER_URLS: Final = tuple(
    f"{place}/a.png" for place in ("ftp://example.org", "oss://bucket", "gs://bucket", "file:///srv")
)

_OPEN: Final[dict[str, Any]] = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
_CLOSED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
_LIMITED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 1},
        "deep": {"type": "object", "properties": {"s": {"type": "string", "maxLength": 3}}},
    },
}

CONVERSATIONS: Final = {
    # Turns.
    "one text": _request(user("Hi.")),
    "two texts in each message": _request(
        system("A.", "B."),
        user("One.", "Two."),
        assistant("Three.", "Four.", call("c1")),
        system(result("c1", "Five.", "Six.")),
    ),
    "two messages in each role": _request(
        user("A."), user("B.", name="Ann"), assistant("C."), assistant("D."), user("E.")
    ),
    "assistant first": _request(assistant("Hello."), user("Hi.")),
    "assistant last": _request(user("Say A."), assistant("The answer is ")),
    "assistant alone": _request(system("A."), assistant("Hello.")),
    "system prompt in two messages": _request(system("A."), system("B."), user("Hi.")),
    "system prompt alone": _request(system("A.")),
    "late system message": _request(system("A."), user("Hi."), system("Be brief."), assistant("Ho."), user("X.")),
    "speaker names": _request(
        *(
            user("Hi.", name=name)
            for name in ("张三", "Ann Lee", "Ann/Lee", "Ann_Lee", "a<b|c\\d>\n", "x" * 80, " ")
        )
    ),
    # Blank content.
    "empty message": _request(user("")),
    "blank texts": _request(
        system(" "),
        user("", "Go."),
        assistant("\n", call("c1")),
        _answer(TextBlock("\u3000"), TextBlock("A")),
        assistant("\u00a0\t"),
        user("On."),
    ),
    "empty text with state": _request(
        user("Go."),
        assistant(
            TextBlock("", state=OpaqueState("anthropic")),
            TextBlock("", state=OpaqueState("gemini")),
            TextBlock("", state=OpaqueState("openai", item_id="msg_1")),
            "Done.",
            TextBlock("", state=_GEMINI),
        ),
        user("On."),
    ),
    # Tool calls and results.
    "tool call and result": _request(
        system("You are Friday."),
        user("Look, please."),
        assistant("I look.", call("call_1", place="here")),
        system(result("call_1", "A cat.")),
        assistant("A cat is here."),
        user("Thanks.", name="Alice"),
        tools=[LOOK],
    ),
    "call without text or declared tool": _request(user("Go."), assistant(call("c1")), system(result("c1", "A"))),
    "call before text": _request(user("Go."), assistant(call("c1"), "Meanwhile."), system(result("c1", "A"))),
    "call first": _request(assistant(call("c1")), system(result("c1", "A"))),
    "parallel calls with late results": _request(
        user("Go."),
        assistant(call("c1"), call("c2", "feel"), call("c3")),
        system(result("c3", "C")),
        user("Hurry."),
        system(result("c1", "A")),
        system(result("c2", "B", name="feel")),
        user("Please."),
    ),
    "call without result": _request(
        user("Go."), assistant(call("c1"), call("c2")), system(result("c2", "B")), user("On.")
    ),
    "result without call": _request(system(result("c1", "An orphan."))),
    "result without name": _request(user("Go."), assistant(call("c1")), system(ToolResultBlock("c1", "", "A"))),
    "same call id in two turns": _request(
        user("Go."),
        assistant(call("c1", place="a")),
        system(result("c1", "A")),
        user("Again."),
        assistant(call("c1", place="b")),
        system(result("c1", "B")),
    ),
    "call ids of other providers": _request(
        user("Go."),
        assistant(*map(call, _CALL_IDS)),
        system(*(result(call_id, f"{number}.") for number, call_id in reversed([*enumerate(_CALL_IDS)]))),
    ),
    "tool names of other providers": _request(
        user("Go."),
        assistant(*(call(f"call_{name[0]}", name) for name in ("files.read", "search", "查找", "n" * 70))),
        system(
            *(result(f"call_{name[0]}", "A", name=name) for name in ("files.read", "search", "查找", "n" * 70))
        ),
        tools=[Tool("files.read", "Read."), Tool("search", "Find.")],
        tool_choice="files.read",
    ),
    "arguments as text": _request(
        user("Go."),
        assistant(
            ToolUseBlock("c1", "look", {"place": "café"}, raw_input='{ "place" : "caf\\u00e9" }'),
            ToolUseBlock("c2", "look", {}, raw_input='{"place": "her'),
        ),
        system(result("c1", "A"), result("c2", "B")),
    ),
    "results that are JSON": _request(
        user("Go."),
        assistant(call("c1"), call("c2"), call("c3")),
        system(result("c1", '{"a": 1}'), result("c2", "[1, 2]"), result("c3", "null")),
    ),
    "empty results": _request(
        user("Go."),
        assistant(call("c1"), call("c2"), call("c3")),
        system(result("c1", ""), result("c2", "", " \n"), ToolResultBlock("c3", "look", ())),
    ),
    "failed results": _request(
        user("Go."),
        assistant(call("c1"), call("c2"), call("c3"), call("c4")),
        system(
            result("c1", "No way.", is_error=True),
            result("c2", "", is_error=True),
            result("c3", "Broken.", picture(), is_error=True),
            result("c4", picture(OTHER_PNG)),
        ),
    ),
    # Media.
    "images": _request(
        user(
            "See.",
            picture(),
            picture(JPEG, "image/jpg"),
            _image("https://example.org/a.png?x=1"),
            _image(PNG_URL),
            "Nice?",
        )
    ),
    "image alone": _request(user(picture())),
    "images of other formats and schemes": _request(
        user(
            picture(UNKNOWN, "image/svg+xml"),
            picture(UNKNOWN, "image/png"),
            *map(_other_image, _OTHER_FORMATS),
            *map(_image, _OTHER_URLS),
        )
    ),
    "audio": _request(
        user(
            "Hear.",
            _audio("audio/wav", WAV),
            _audio("audio/x-wav", WAV),
            _audio("audio/mp3", MP3),
            AudioBlock(URLSource("https://example.org/a.mp3")),
        )
    ),
    "video": _request(
        user(
            "Watch.",
            VideoBlock(Base64Source("video/mp4", MP4)),
            VideoBlock(URLSource("https://example.org/a.mp4")),
            VideoBlock(URLSource("gs://bucket/a.mp4")),
        )
    ),
    "documents": _request(
        user(
            "Read.",
            _document("application/pdf", PDF, "bill.pdf"),
            DocumentBlock(URLSource("https://example.org/a.pdf")),
            _document("text/plain", TEXT, "list.txt"),
            _document("text/markdown", TEXT),
            _document("application/msword", UNKNOWN),
            DocumentBlock(URLSource("https://example.org/a.docx")),
        )
    ),
    "image of the assistant": _request(
        user("Draw."), assistant("Here.", picture(), _image("https://example.org/a.png")), user("Nice.")
    ),
    "images in parallel results": _request(
        user("Go."),
        assistant(call("c1", "left"), call("c2", "right")),
        system(result("c2", picture(OTHER_PNG), name="right")),
        user("Hurry."),
        system(result("c1", "One.", picture(), name="left")),
        user("Please."),
        assistant("Seen."),
        user("And?"),
    ),
    "media of all kinds in a result": _request(
        user("Go."),
        assistant(call("c1")),
        _answer(
            TextBlock("See."),
            _image("https://example.org/a.png"),
            _document("application/pdf", PDF, "bill.pdf"),
            _document("text/csv", TEXT),
            _audio("audio/wav", WAV),
            VideoBlock(Base64Source("video/mp4", MP4)),
            _other_image("heic"),
        ),
    ),
    # Thinking and other opaque state.
    "thinking of each provider": _request(
        user("Go."),
        *(msg for state in _STATES for msg in (assistant(ThinkingBlock("Hm.", state), "Done."), user("On."))),
    ),
    "thinking before a call of each provider": _request(
        user("Go."),
        *(
            msg
            for number, state in enumerate(_STATES)
            for msg in (
                assistant(ThinkingBlock("Hm.", state), call(f"call{number:05}")),
                system(result(f"call{number:05}", "A")),
            )
        ),
    ),
    "two thinking blocks": _request(
        user("Go."), assistant(ThinkingBlock("One."), ThinkingBlock("Two."), "Done."), user("On.")
    ),
    "thinking of a user": _request(*(user(ThinkingBlock("Hm.", state), "Go.") for state in _PROOFS)),
    "thinking without text": _request(
        user("Go."),
        *(
            msg
            for state in _PROOFS
            for blank in ((), (" ",))
            for msg in (assistant(ThinkingBlock("Hm.", state), *blank), user("On."))
        ),
    ),
    "thinking at the end of a turn": _request(
        user("Go."),
        *(msg for state in _PROOFS for msg in (assistant("Half.", ThinkingBlock("Hm.", state)), user("On."))),
    ),
    "thinking alone": _request(assistant(ThinkingBlock("Hm."))),
    "OpenAI's items with ids": _request(
        user("Go."),
        assistant(
            ThinkingBlock("Hm.", _OPENAI),
            TextBlock("I look.", state=OpaqueState("openai", item_id="msg_1")),
            call("c1"),
            ThinkingBlock("", OpaqueState("openai", encrypted_content="gBBB==")),
            call("c2"),
            ThinkingBlock("An id without content.", OpaqueState("openai", item_id="rs_9")),
            call("c3"),
        ),
        system(result("c1", "A"), result("c2", "B"), result("c3", "C")),
        assistant(
            ThinkingBlock("A proof of another provider.", OpaqueState("vllm", encrypted_content="gAAA==")),
            TextBlock("A cat.", state=OpaqueState("openai", item_id="msg_2")),
        ),
        user("Thanks."),
    ),
    "Gemini's signatures on each part": _request(
        user(TextBlock("Go.", state=_GEMINI)),
        assistant(
            ThinkingBlock("", OpaqueState("gemini")),
            ThinkingBlock("Hm.", OpaqueState("gemini", thought_signature="dGhvdWdodA==")),
            TextBlock("I look.", state=OpaqueState("gemini", thought_signature="dGV4dA==")),
            ToolUseBlock("c1", "look", {}, state=OpaqueState("gemini", thought_signature="Y2FsbA==")),
            call("c2"),
        ),
        system(result("c1", "A"), result("c2", "B")),
        assistant(
            "Then.",
            ToolUseBlock("c3", "look", {}, state=OpaqueState("vertex-of-another", thought_signature="Zm9y")),
            call("c4"),
        ),
        system(result("c3", "C"), result("c4", "D")),
    ),
    "Anthropic's thinking in each form": _request(
        user("Go."),
        assistant(ThinkingBlock("", _ANTHROPIC), "Done."),
        user("On."),
        assistant(ThinkingBlock("", OpaqueState("anthropic", redacted_data="EmwK")), "Done."),
        user("On."),
        assistant(ThinkingBlock("Hm.", OpaqueState("anthropic", signature="")), "Done."),
        user("On."),
        assistant(ThinkingBlock("Hm.", OpaqueState("anthropic")), "Done."),
        user("On."),
        assistant(ThinkingBlock("Hm.", OpaqueState("bedrock", signature="EsQC")), "Done."),
        user("On."),
    ),
    # Options.
    "declared tools": _request(
        user("Go."), tools=[LOOK, Tool("stop", "Stop."), Tool("bare", parameters={}), Tool("null", "N.", _OPEN)]
    ),
    "no tools": _request(user("Go."), tools=[], tool_choice="auto"),
    **{
        f"tool choice {choice}": _request(user("Go."), tools=[LOOK, Tool("stop", "Stop.")], tool_choice=choice)
        for choice in ("auto", "none", "required", "look")
    },
    "open response schema": _request(user("Go."), response_format=_OPEN),
    "closed response schema": _request(
        system("A."), user("Go."), response_format={"name": "my answer", "schema": _CLOSED}
    ),
    "response schema with limits": _request(user("Go."), response_format=_LIMITED),
    # Several agents.
    "several agents": _request(
        system("You are Friday."),
        user("Who looks?"),
        assistant(call("c1", place="there"), name="Max"),
        system(result("c1", "Nothing.")),
        assistant(ThinkingBlock("Hm.", _ANTHROPIC), "I will.", call("c2", place="here")),
        system(result("c2", "A cat.")),
        assistant(ThinkingBlock("Hm.", _OPENAI), "A cat."),
        assistant(ThinkingBlock("Ha.", _OPENAI), "Good.", name="Max"),
        user("See.", picture(), "Nice?", name="Friday"),
        system("Be brief."),
    ),
}
"""Conversations by name."""
