"""Content parts and images of rows: unknown keys become metadata, and each image of a row has a place."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agentkit import AudioBlock, Base64Source, Block, ImageBlock, MessageError, Msg, TextBlock, URLSource
from agentkit.training import load_rows
from tests.cases import each_case

_URL: Final = "https://example.org/a.png"
_IMAGE: Final = URLSource(_URL)

PARTS: Final[dict[str, tuple[dict[str, Any], Block]]] = {
    "a text": ({"type": "text", "text": "a", "citation": [1]}, TextBlock("a", metadata={"citation": [1]})),
    "a refusal": ({"type": "refusal", "refusal": "No."}, TextBlock("No.", metadata={"refusal": True})),
    "an image": (
        {"type": "image_url", "image_url": {"url": _URL, "detail": "high"}, "index": 0},
        ImageBlock(_IMAGE, metadata={"index": 0, "image_url": {"detail": "high"}}),
    ),
    "an image of a path": (
        {"type": "image", "image": {"path": "a.png", "bytes": None}},
        ImageBlock(URLSource("a.png")),
    ),
    "the bytes of an image and their name": (
        {"type": "image", "image": {"path": "a", "bytes": b"\xff\xd8\xff\xe0"}},
        ImageBlock(Base64Source("image/jpeg", "/9j/4A=="), metadata={"image": {"path": "a"}}),
    ),
    "audio": (
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3", "seconds": 1}, "text": None},
        AudioBlock(Base64Source("audio/mp3", "AAAA"), metadata={"input_audio": {"seconds": 1}}),
    ),
}


@each_case(("part", "block"), PARTS)
def test_unknown_keys_of_a_part_become_metadata(part: dict[str, Any], block: Block) -> None:
    for role in ("user", "assistant", "system"):
        (sample,) = load_rows("openai", [{"messages": [{"role": role, "content": [part]}]}])
        assert sample.msgs == (Msg(role, [block], role),)
    result = {"role": "tool", "tool_call_id": "c1", "content": [part]}
    (sample,) = load_rows("openai", [{"messages": [result]}])
    assert sample.msgs[0].tool_results[0].output == (block,)


UNREADABLE: Final[dict[str, tuple[Any, str]]] = {
    "a file": ({"type": "file", "file": {"file_id": "f"}}, "got a part of type 'file'"),
    "no text": ({"type": "text", "value": "a"}, "the part has no text"),
    "a video": ({"type": "video", "video": _URL}, "got a part of type 'video'"),
    "audio without data": (
        {"type": "input_audio", "input_audio": {"data": None}},
        "got a part of type 'input_audio'",
    ),
    "an image without data": (
        {"type": "image_url", "image_url": {"detail": "low"}},
        "bytes of an image, got None",
    ),
    "bytes as a text": ({"type": "image", "image": {"bytes": "abc"}}, "bytes of an image, got None"),
    "a part that is a text": ("a", "expected a JSON object, got 'a'"),
    "a number that JSON does not have": (
        {"type": "text", "text": "a", "score": float("inf")},
        r".score: JSON cannot represent the value inf",
    ),
}


@each_case(("part", "text"), UNREADABLE)
def test_an_unreadable_part_is_an_error(part: Any, text: str) -> None:
    with pytest.raises(MessageError, match=rf"line 1, messages\[0\].content\[0\].*{text}"):
        next(load_rows("openai", [{"messages": [{"role": "user", "content": [part]}]}]))


_ROWS: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "messages": ("openai", {"messages": [{"role": "user", "content": "Where?"}]}),
    "a prompt": ("trl", {"prompt": "Where?"}),
    "a pair": ("preference", {"prompt": "Where?", "chosen": "There.", "rejected": "No."}),
    "turns": ("sharegpt", {"conversations": [{"from": "human", "value": "Where?"}]}),
}


@each_case(("format", "row"), _ROWS)
def test_images_without_a_place_are_added_to_the_first_user_message(format: Any, row: dict[str, Any]) -> None:
    for images in ({"images": [_URL, _URL]}, {"images": [_URL], "image": _URL}):
        (sample,) = load_rows(format, [{**row, **images}])
        expected = Msg("user", [ImageBlock(_IMAGE), ImageBlock(_IMAGE), TextBlock("Where?")], "user")
        assert sample.msgs[0] == expected
        assert not sample.rejected or sample.rejected[0] == expected
        assert sample.extra == {}


def test_an_image_without_a_message_is_an_error() -> None:
    reply, placeholder = (
        {"role": "assistant", "content": "There."},
        {"role": "user", "content": [{"type": "image"}]},
    )
    for messages, images, text in (([reply], [_URL], "0 of the 1"), ([placeholder], [_URL, _URL], "1 of the 2")):
        with pytest.raises(MessageError, match=f"line 1, images: the messages have places for {text} images"):
            next(load_rows("openai", [{"messages": messages, "images": images}]))
