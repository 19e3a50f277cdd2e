"""Tests of media turns: each block has its origin, and the ledger notes the moved media and the added text."""

from __future__ import annotations

from agentkit import AudioBlock, Base64Source, ImageBlock, Msg, URLSource
from agentkit.ledger.ledger import Ledger
from agentkit.legalize.legal_message import PromotedMedia
from agentkit.legalize.media_turns import build_media_turn
from tests.conftest import msg_lines

IMAGE = ImageBlock(URLSource("https://a/b.png"))
AUDIO = AudioBlock(Base64Source("audio/wav", "UklGRgAAAABXQVZF"))


def test_each_block_of_a_media_turn_has_its_origin() -> None:
    ledger = Ledger([Msg("Ann", [IMAGE], "assistant"), Msg("Ben", [AUDIO, IMAGE], "assistant")])
    promoted = [
        (PromotedMedia(IMAGE, (0,), "from Ann"), (0, 0)),
        (PromotedMedia(AUDIO, (0,), "from Ben"), (1, 0)),
        (PromotedMedia(IMAGE, (1,), "from Ben"), (1, 1)),
    ]
    turn = build_media_turn(promoted, ledger)
    assert msg_lines([turn.msg]) == [
        "user user: <system-info>The following are the image contents from Ann: | "
        "\n- The image from 'https://a/b.png':  | <image> | </system-info> | "
        "<system-info>The following are the media contents from Ben: | "
        "\n- The audio:  | <audio> | \n- The image from 'https://a/b.png':  | <image> | </system-info>"
    ]
    added = "promotion"
    assert turn.origin == (added, added, (0, 0), added, added, added, (1, 0), added, (1, 1), added)
    assert {entry.disposition.word for entry in ledger.entries} == {"moved"}
    assert [(text.name, text.reason) for text in ledger.syntheses] == [
        ("promotion", "text that tells the model where the moved media come from")
    ]
