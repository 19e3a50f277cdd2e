"""Tests of media limits: large images are resized, and the oldest of too many media are omitted in steps."""

from __future__ import annotations

import base64
import random
import struct
import sys
import threading
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pytest
from PIL import Image

from agentkit import (
    Base64Source,
    Budget,
    DocumentBlock,
    ImageBlock,
    LossError,
    Msg,
    MultiAgentHistory,
    Plan,
    TextBlock,
    ToolResultBlock,
    URLSource,
    load_provider,
)
from agentkit.capabilities.media_rules import Box
from agentkit.media.resizing import can_resize, is_resizable, resize_to_fit
from agentkit.provider_kit import MediaLimits, MediaRule
from tests.cases import each_case
from tests.conftest import WEB, EchoFormatter, call, dispositions, get_turns, target, text_msg

pytestmark = pytest.mark.anyio


def draw_image(width: int, height: int, kind: str = "PNG", mode: str = "RGB", **options: Any) -> str:
    """Returns an image of a size as base64 text."""
    buffer = BytesIO()
    slope = Image.linear_gradient("L").transform((width, height), Image.Transform.EXTENT, (0, 0, 256, 256))
    slope.convert(mode).save(buffer, kind, **options)
    return base64.b64encode(buffer.getvalue()).decode()


def picture(width: int, height: int, **options: Any) -> ImageBlock:
    kind = str(options.get("kind", "PNG"))
    return ImageBlock(Base64Source(f"image/{kind.lower()}", draw_image(width, height, **options)))


def image_message(*blocks: Any, name: str = "Bob") -> Msg:
    return Msg(name, blocks, "user")


def limit_images(**limits: Any) -> type[EchoFormatter]:
    """Returns a target with limits for images."""
    return target(media__image=MediaRule(schemes=WEB, limits=MediaLimits(**limits)))


def get_size(block: dict[str, Any]) -> tuple[int, int]:
    return Image.open(BytesIO(base64.b64decode(block["source"]["data"]))).size


def list_kinds(plan: Plan) -> str:
    """Returns one letter for each block of a request: i for an image, t for a text."""
    return "".join(block["type"][0] for turn in get_turns(plan) for block in turn["content"])


async def test_an_image_of_16_bits_a_pixel_is_unchanged_or_omitted() -> None:
    buffer = BytesIO()
    Image.new("I;16", (300, 150), 30_000).save(buffer, "PNG")
    block = ImageBlock.from_bytes(buffer.getvalue(), "image/png")
    assert dispositions(await limit_images(side=300)().plan([image_message(block)])) == {
        "msgs[0].content[0]": "carried"
    }
    plan = await limit_images(side=100)().plan([image_message(block)])
    assert plan.ledger.losses == [
        ("msgs[0].content[0]", "the data is larger than Echo accepts (300 x 150 pixels)")
    ]


async def test_an_image_with_a_second_header_is_not_decoded() -> None:
    small, large = (base64.b64decode(draw_image(*get_size)) for get_size in ((300, 10), (3_000, 3_000)))
    block = ImageBlock.from_bytes(small[:33] + large[8:], "image/png")
    plan = await limit_images(side=100)().plan([image_message(block)])
    assert plan.ledger.losses == [("msgs[0].content[0]", "the data is larger than Echo accepts (300 x 10 pixels)")]


# -- too large by itself -----------------------------------------------------------------------------------


async def test_an_image_that_is_too_large_is_resized() -> None:
    msg = image_message(TextBlock("See."), picture(300, 150), picture(100, 100))
    plan = await limit_images(side=100)().plan([msg])
    blocks = get_turns(plan)[0]["content"]
    assert [get_size(block) for block in blocks[1:]] == [(100, 50), (100, 100)]
    assert dispositions(plan) == {
        "msgs[0].content[0]": "carried",
        "msgs[0].content[1]": "shrunk",
        "msgs[0].content[2]": "carried",
    }
    assert plan.ledger.entries[1].reason == "image resized from 300 x 150 to 100 x 50 pixels"
    assert plan.ledger.losses == []
    assert msg == image_message(TextBlock("See."), picture(300, 150), picture(100, 100))


async def test_resizing_an_image_is_not_a_loss() -> None:
    for budget in (None, Budget(10_000)):
        await limit_images(side=100, total=2_000)(on_loss="raise", budget=budget).format(
            [image_message(picture(300, 150))]
        )


async def test_an_image_to_resize_is_described_without_io() -> None:
    msg, formatter = image_message(picture(300, 150)), limit_images(side=100)()
    for _ in range(2):
        plan = formatter.lower([msg])
        assert plan.ledger.losses == [
            ("msgs[0].content[0]", "the data is larger than Echo accepts (300 x 150 pixels)")
        ]
        assert list_kinds(await formatter.plan([msg])) == "i"


async def test_an_image_to_resize_is_described_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    msg = image_message(picture(300, 150))
    monkeypatch.setitem(sys.modules, "PIL", None)
    can_resize.cache_clear()
    plan = await limit_images(side=100)().plan([msg])
    monkeypatch.undo()
    can_resize.cache_clear()
    assert plan.ledger.losses == [
        ("msgs[0].content[0]", "the data is larger than Echo accepts (300 x 150 pixels)")
    ]


@pytest.mark.parametrize(("on_loss", "image"), [("describe", "tt"), ("drop", "t")])
def test_an_image_that_cannot_be_resized_is_a_loss(on_loss: Any, image: str) -> None:
    plan = limit_images(side=100)(on_loss=on_loss).lower([image_message(TextBlock("See."), picture(300, 150))])
    assert list_kinds(plan) == image
    assert [entry.lost for entry in plan.ledger.entries] == [False, True]
    with pytest.raises(LossError, match="larger than Echo accepts"):
        limit_images(side=100)(on_loss="raise").lower([image_message(picture(300, 150))])


def test_a_message_of_omitted_images_only_is_dropped() -> None:
    msgs = [text_msg("Al", "Hi."), image_message(picture(300, 150)), text_msg("Al", "Yes?")]
    assert len(get_turns(limit_images(side=100)(on_loss="drop").lower(msgs))) == 2


@each_case(
    ("options", "mode"),
    [
        ({"kind": "PNG", "mode": "RGBA"}, "RGBA"),
        ({"kind": "PNG", "mode": "P"}, "RGB"),
        ({"kind": "PNG", "mode": "LA"}, "RGBA"),
        ({"kind": "PNG", "mode": "1"}, "RGB"),
        ({"kind": "JPEG", "mode": "RGB"}, "RGB"),
        ({"kind": "JPEG", "mode": "L"}, "L"),
        ({"kind": "JPEG", "mode": "CMYK"}, "RGB"),
        ({"kind": "WEBP", "mode": "RGBA"}, "RGB"),
        ({"kind": "GIF", "mode": "P"}, "P"),
        ({"kind": "BMP", "mode": "RGB"}, "RGB"),
    ],
)
async def test_a_resized_image_keeps_its_format(options: dict[str, Any], mode: str) -> None:
    (turn,) = get_turns(await limit_images(side=64)().plan([image_message(picture(640, 320, **options))]))
    image = Image.open(BytesIO(base64.b64decode(turn["content"][0]["source"]["data"])))
    assert (image.format, image.size, image.mode) == (options["kind"], (64, 32), mode)


async def test_a_resized_image_is_rotated_as_its_metadata_require() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees
    (turn,) = get_turns(
        await limit_images(side=64)().plan([image_message(picture(640, 320, kind="JPEG", exif=exif))])
    )
    assert get_size(turn["content"][0]) == (32, 64)


async def test_limits_of_area_and_data_hold_too() -> None:
    (turn,) = get_turns(await limit_images(pixels=5_000)().plan([image_message(picture(200, 100))]))
    assert get_size(turn["content"][0]) == (100, 50)
    noise = BytesIO()
    Image.effect_noise((200, 200), 100).save(noise, "PNG")
    plan = await limit_images(data=20_000)().plan(
        [image_message(ImageBlock.from_bytes(noise.getvalue(), "image/png"))]
    )
    assert dispositions(plan) == {"msgs[0].content[0]": "shrunk"}
    assert len(get_turns(plan)[0]["content"][0]["source"]["data"]) <= 20_000


@pytest.mark.parametrize(
    "data",
    [
        draw_image(300, 300)[:400],
        base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\xff\xff\xff\0\xff\xff\xff" + bytes(40)).decode(),
    ],
    ids=["truncated data", "a decompression bomb"],
)
async def test_an_image_that_cannot_be_opened_is_described(data: str) -> None:
    plan = await limit_images(side=100)().plan([image_message(ImageBlock(Base64Source("image/png", data)))])
    ((_, reason),) = plan.ledger.losses
    assert reason.startswith("the data is larger than Echo accepts")


async def test_other_media_that_are_too_large_are_described() -> None:
    formatter_type = target(media__document=MediaRule(limits=MediaLimits(data=100)))
    msg = image_message(DocumentBlock.from_bytes(b"%PDF-" + bytes(200), "application/pdf"))
    assert (await formatter_type().plan([msg])).ledger.losses == [
        ("msgs[0].content[0]", "the data is larger than Echo accepts")
    ]


async def test_an_image_is_resized_once_and_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []
    save = Image.Image.save

    def save_and_record(*args: Any, **options: Any) -> None:
        threads.append(threading.current_thread())
        save(*args, **options)

    msg, formatter = image_message(picture(300, 150)), limit_images(side=100)()
    monkeypatch.setattr(Image.Image, "save", save_and_record)
    texts = [get_turns(await formatter.plan([msg]))[0]["content"][0]["source"]["data"] for _ in range(3)]
    assert texts[0] is texts[1] is texts[2]
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_omitted_images_are_not_resized(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer: list[int] = []
    save = Image.Image.save

    def save_and_record(*args: Any, **options: Any) -> None:
        buffer.append(1)
        save(*args, **options)

    unknown = ImageBlock(Base64Source("image/tiff", base64.b64encode(b"II*\0" + bytes(20)).decode()))
    msgs = [
        *(image_message(picture(300, 150 + number)) for number in range(7)),
        image_message(unknown),
        text_msg("Al", "Well?"),
    ]
    only = MediaRule(types=frozenset({"image/png"}), limits=MediaLimits(count=5, side=200, crowd=(4, 100)))
    for history in (None, MultiAgentHistory()):
        monkeypatch.setattr(Image.Image, "save", save_and_record)
        plan = await target(media__image=only)(history=history).plan(msgs)
        assert [entry.disposition.word for entry in plan.ledger.entries][:8] == [
            *["described"] * 2,
            *["shrunk"] * 5,
            "described",
        ]
    assert len(buffer) == 5


async def test_the_same_image_gives_the_same_bytes() -> None:
    first, second = (
        resize_to_fit(Base64Source("image/png", draw_image(300, 150)), Box(side=100)) for _ in range(2)
    )
    assert first == second
    assert first is not None


async def test_images_of_files_are_resized_too(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(base64.b64decode(draw_image(300, 150)))
    msg = image_message(ImageBlock(URLSource(str(tmp_path / "a.png"))))
    formatter = limit_images(side=100)(media_roots=[tmp_path])
    first, second = [get_turns(await formatter.plan([msg]))[0]["content"][0] for _ in range(2)]
    assert get_size(first) == (100, 50)
    assert first["source"]["data"] is second["source"]["data"]


# -- a crowd -----------------------------------------------------------------------------------------------


async def test_many_images_have_a_smaller_limit_than_few() -> None:
    formatter = limit_images(side=200, crowd=(2, 50))()
    few, many = [image_message(picture(100, 100))] * 2, [image_message(picture(100, 100))] * 3
    assert {get_size(turn["content"][0]) for turn in get_turns(await formatter.plan(few))} == {(100, 100)}
    assert {get_size(turn["content"][0]) for turn in get_turns(await formatter.plan(many))} == {(50, 50)}


async def test_images_in_results_count_for_the_limit() -> None:
    shot = ToolResultBlock("c", "camera", (TextBlock(" "), TextBlock("here"), picture(100, 100)))
    msgs = [image_message(picture(100, 100)), call("c"), Msg("s", (shot,), "system")]
    plan = await limit_images(crowd=(1, 50))().plan(msgs)
    assert get_size(get_turns(plan)[2]["content"][0]["output"][1]) == (50, 50)
    assert dispositions(plan)["msgs[2].content[0].output[2]"] == "shrunk"


async def test_an_image_by_url_counts_but_has_no_size() -> None:
    msgs = [image_message(ImageBlock(URLSource("https://a.test/b.png")), picture(100, 100))]
    plan = await limit_images(crowd=(1, 50))().plan(msgs)
    assert [entry.disposition.word for entry in plan.ledger.entries] == ["carried", "shrunk"]


# -- all together ------------------------------------------------------------------------------------------


def gallery(count: int, width: int = 10) -> list[Msg]:
    return [image_message(picture(width, 10)) for _ in range(count)]


def test_the_oldest_of_too_many_images_are_described_in_steps_of_a_fifth() -> None:
    formatter = limit_images(count=10)()
    remaining = [list_kinds(formatter.lower(gallery(count))) for count in range(9, 16)]
    assert remaining == [
        "i" * 9,
        "i" * 10,
        "tt" + "i" * 9,
        "tt" + "i" * 10,
        "tttt" + "i" * 9,
        "tttt" + "i" * 10,
        "tttttt" + "i" * 9,
    ]


def test_the_reason_has_the_limit() -> None:
    plan = limit_images(count=5)().lower(gallery(6))
    assert plan.ledger.losses == [
        ("msgs[0].content[0]", "Echo accepts at most 5 media items of this kind in one request"),
    ]
    with pytest.raises(LossError, match="at most 5"):
        limit_images(count=5)(on_loss="raise").lower(gallery(6))


def test_the_prefix_is_unchanged_between_two_steps() -> None:
    formatter = limit_images(count=20)()
    msgs = gallery(60)
    moved, before = 0, get_turns(formatter.lower(msgs[:20]))
    for count in range(21, 61):
        now = get_turns(formatter.lower(msgs[:count]))
        moved += now[: len(before)] != before
        before = now
    assert moved == 10, "once for each four pictures"


def test_the_oldest_of_too_much_data_are_described_in_steps() -> None:
    byte_size = len(draw_image(10, 10))
    formatter = limit_images(total=10 * byte_size)()
    remaining = [list_kinds(formatter.lower(gallery(count))) for count in range(9, 15)]
    assert remaining == ["i" * 9, "i" * 10, "tt" + "i" * 9, "tt" + "i" * 10, "tttt" + "i" * 9, "tttt" + "i" * 10]


def test_images_by_url_do_not_count_for_the_data_limit() -> None:
    image, linked = picture(10, 10), ImageBlock(URLSource("https://example.com/a.png"))
    size = len(draw_image(10, 10))
    msgs = [image_message(image), image_message(linked)]
    assert list_kinds(limit_images(total=size)().lower(msgs)) == "ii"
    assert list_kinds(limit_images(total=size - 1)().lower(msgs)) == "ti"


def test_the_total_limit_counts_all_kinds() -> None:
    pdf = DocumentBlock.from_bytes(b"%PDF-" + bytes(3_000), "application/pdf")
    formatter_type = target(media__total=6_000)
    plan = formatter_type().lower([image_message(pdf), image_message(picture(10, 10)), image_message(pdf)])
    assert list_kinds(plan) == "tid"
    assert plan.ledger.losses == [
        ("msgs[0].content[0]", "Echo accepts no more data of media items in one request")
    ]


def test_a_limit_of_a_kind_counts_only_that_kind() -> None:
    pdf = DocumentBlock.from_bytes(b"%PDF-1.7", "application/pdf")
    assert (
        list_kinds(limit_images(count=2)().lower([image_message(pdf, pdf, pdf, picture(9, 9), picture(9, 9))]))
        == "dddii"
    )


def test_refused_media_do_not_count_for_limits() -> None:
    formatter_type = target(media__image=MediaRule(types=frozenset({"image/png"}), limits=MediaLimits(count=2)))
    plan = formatter_type().lower(
        [image_message(picture(9, 9, kind="GIF")), image_message(picture(9, 9), picture(9, 9))]
    )
    assert list_kinds(plan) == "tii"


@pytest.mark.parametrize("history", [None, MultiAgentHistory(), MultiAgentHistory(viewer="Friday")])
def test_the_limits_hold_for_every_history(history: Any) -> None:
    msgs = [image_message(TextBlock(f"Picture {n}"), picture(9, 9), name="AB"[n % 2]) for n in range(7)]
    plan = limit_images(count=5)(history=history).lower(msgs)
    assert list_kinds(plan).count("i") == 5
    assert [entry.place for entry in plan.ledger.entries if entry.lost] == [
        "msgs[0].content[1]",
        "msgs[1].content[1]",
    ]


async def test_promoted_images_count_and_omitted_images_are_not_promoted() -> None:
    shot = ToolResultBlock("c", "camera", (picture(9, 9), picture(9, 9)))
    formatter_type = target(media__result_kinds=frozenset(), media__image=MediaRule(limits=MediaLimits(count=1)))
    plan = formatter_type().lower([call("c"), Msg("s", (shot,), "system")])
    assert str(plan.request).count("'base64'") == 1
    assert plan.ledger.losses[0][0] == "msgs[1].content[0].output[0]"


def test_images_of_the_system_prompt_count() -> None:
    msgs = [Msg("s", (TextBlock("Look."), picture(9, 9)), "system"), image_message(picture(9, 9))]
    plan = limit_images(count=1)().lower(msgs)
    assert [place for place, _ in plan.ledger.losses] == ["msgs[0].content[1]"]


def test_only_conversations_with_media_are_checked_and_only_for_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentkit.legalize import rewritten_messages as legalize

    def _fail(*_: object) -> None:
        raise AssertionError("media limits were checked")

    monkeypatch.setattr(legalize, "limit_media", _fail)
    blank_texts = Msg("Bob", (TextBlock(" "), TextBlock("Hi.")), "user")
    limit_images(count=1)().lower([blank_texts, text_msg("Al", "Hello.", "assistant")])
    target()().lower([blank_texts, *gallery(2)])


CHARACTERS: Final = len(draw_image(10, 10))
SMALL_PDF: Final = DocumentBlock.from_bytes(b"%PDF-1.7", "application/pdf")
REMOTE: Final = ImageBlock(URLSource("https://a.test/b.png"))
WITHIN: Final[list[tuple[str, list[Msg], dict[str, Any]]]] = [
    ("as many images as allowed", gallery(2), {"count": 2}),
    ("as much data as allowed", gallery(2), {"total": 2 * CHARACTERS}),
    ("… with an image by URL", [*gallery(2), image_message(REMOTE)], {"total": 2 * CHARACTERS}),
    ("images as large as allowed", gallery(2), {"side": 10, "pixels": 100, "data": CHARACTERS}),
    ("as many images as allowed without a smaller size", gallery(2), {"crowd": (2, 5)}),
    (
        "documents, which have no limit",
        [image_message(SMALL_PDF, SMALL_PDF, picture(10, 10))],
        {"count": 1, "total": CHARACTERS, "data": CHARACTERS},
    ),
    (
        "a larger document",
        [image_message(DocumentBlock.from_bytes(b"%PDF-" + bytes(900), "application/pdf"), picture(10, 10))],
        {"data": CHARACTERS},
    ),
]


@pytest.mark.parametrize(("msgs", "limits"), [row[1:] for row in WITHIN], ids=[row[0] for row in WITHIN])
def test_a_request_within_its_limits_is_only_measured(
    msgs: list[Msg], limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentkit.legalize import media_limits

    def _fail(*_: object) -> None:
        raise AssertionError("changes were computed")

    monkeypatch.setattr(media_limits, "_Limiting", _fail)
    formatter = limit_images(**limits)()
    for _ in range(2):
        assert set(dispositions(formatter.lower(msgs)).values()) == {"carried"}
    characters = sum(
        len(block["source"].get("data", ""))
        for turn in get_turns(formatter.lower(msgs))
        for block in turn["content"]
    )
    assert set(dispositions(target(media__total=characters)().lower(msgs)).values()) == {"carried"}


@each_case(
    ("total", "count", "omitted"),
    [
        (72, 6, 0),
        (71, 6, 2),
        (65, 6, 2),
        (60, 6, 1),
        (59, 6, 2),
        (4, 1, 1),
        (11, 1, 1),
    ],
)
def test_whole_items_are_omitted_until_a_whole_number_of_fifths_is_free(
    total: int, count: int, omitted: int
) -> None:
    msgs = [image_message(*[ImageBlock(Base64Source("image/png", "iVBORw0KGgo="))] * count)]
    for formatter_type in (limit_images(total=total), target(media__total=total)):
        assert list_kinds(formatter_type().lower(msgs)) == "t" * omitted + "i" * (count - omitted)


def test_media_by_url_are_not_omitted_for_their_data() -> None:
    msgs = [image_message(REMOTE, picture(10, 10), REMOTE, picture(10, 10))]
    assert list_kinds(limit_images(total=CHARACTERS)().lower(msgs)) == "itii"


def test_an_excess_of_images_omits_no_documents() -> None:
    msgs = [image_message(SMALL_PDF, *[picture(10, 10)] * 3)]
    assert list_kinds(limit_images(count=2)().lower(msgs)) == "dtii"
    assert list_kinds(limit_images(total=3 * CHARACTERS - 1)().lower(msgs)) == "dtii"


def test_an_item_that_is_omitted_for_one_limit_does_not_count_for_the_next() -> None:
    plan = limit_images(count=1, total=CHARACTERS)().lower(gallery(2))
    assert plan.ledger.losses == [
        ("msgs[0].content[0]", "Echo accepts at most 1 media items of this kind in one request")
    ]


def draw_noise(size: int) -> ImageBlock:
    """Returns an image whose data are long, and that a smaller copy makes much shorter."""
    image = Image.frombytes("L", (size, size), random.Random(size).randbytes(size * size))
    buffer = BytesIO()
    image.save(buffer, "PNG")
    return ImageBlock.from_bytes(buffer.getvalue(), "image/png")


async def test_only_the_data_of_resized_copies_count() -> None:
    msgs = [image_message(draw_noise(100)) for _ in range(3)]
    copies = get_turns(await limit_images(side=20)().plan(msgs))
    length = len(copies[0]["content"][0]["source"]["data"])
    for budget in (None, Budget(10_000)):
        await limit_images(side=20, total=3 * length)(on_loss="raise", budget=budget).format(msgs)
    for total, kinds in ((3 * length, "iii"), (3 * length - 1, "tii")):
        plan = await limit_images(side=20, total=total)().plan(msgs)
        assert list_kinds(plan) == kinds
    assert plan.ledger.losses == [
        ("msgs[0].content[0]", "Echo accepts no more data of image items in one request")
    ]


async def test_an_image_that_cannot_be_resized_is_described_beside_one_that_can() -> None:
    tiff = ImageBlock(Base64Source("image/tiff", base64.b64encode(b"II*\0" + bytes(900)).decode()))
    plan = await limit_images(side=20, data=1_000)().plan([image_message(tiff, picture(300, 150))])
    assert [entry.disposition.word for entry in plan.ledger.entries] == ["described", "shrunk"]


# -- providers ---------------------------------------------------------------------------------------------


def _count_images(request: dict[str, Any]) -> int:
    return str(request).count("'image'")


async def test_anthropic_accepts_100_images_and_only_small_images_among_many() -> None:
    formatter = load_provider("anthropic").chat_formatter()
    request = await formatter.format(gallery(101))
    assert _count_images(request) == 81
    wide = [image_message(picture(2_100, 10)), *gallery(19)]
    assert dispositions(await formatter.plan(wide))["msgs[0].content[0]"] == "carried"
    assert dispositions(await formatter.plan([*wide, *gallery(1)]))["msgs[0].content[0]"] == "shrunk"
    assert (
        dispositions(await formatter.plan([image_message(picture(8_100, 10))]))["msgs[0].content[0]"] == "shrunk"
    )


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_each_provider_gets_an_image_that_it_accepts() -> None:
    large = picture(6_000, 5_000, kind="JPEG")
    bitmap = ImageBlock(Base64Source("image/bmp", draw_image(2_000, 1_500, "BMP")))
    for name, model, image in (
        ("openai", None, large),
        ("openai-responses", None, large),
        ("dashscope", "qwen-vl-max", bitmap),
    ):
        plan = await load_provider(name).chat_formatter(model).plan([image_message(image)])
        assert dispositions(plan) == {"msgs[0].content[0]": "shrunk"}, name
        assert plan.ledger.losses == [], name


def test_an_image_too_large_to_open_is_not_resized() -> None:
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 9_000, 5_000, 8, 2, 0, 0, 0) + bytes(4)
    huge = Base64Source("image/png", base64.b64encode(header).decode())
    assert not is_resizable(huge)
    assert resize_to_fit(huge, Box(side=1_000)) is None


def test_noise_over_the_data_limit_is_resized_in_few_tries() -> None:
    picture = Image.frombytes("RGB", (900, 900), random.Random(7).randbytes(900 * 900 * 3))
    buffer = BytesIO()
    picture.save(buffer, "PNG")
    source = Base64Source("image/png", base64.b64encode(buffer.getvalue()).decode())
    small = resize_to_fit(source, Box(data=100_000))
    assert small is not None
    assert 30_000 < len(small.data) <= 100_000
