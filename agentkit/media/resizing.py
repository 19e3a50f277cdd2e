"""A picture made to fit what a target takes: by Pillow, in a thread, once in the picture's life."""

from __future__ import annotations

import base64
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

from agentkit.capabilities.media_rules import Box
from agentkit.messages.sniffing import image_size
from agentkit.messages.sources import Base64Source, encode_base64

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["can_resize", "copies_of", "is_resizable", "known_fit", "needs_fitting", "resize_to_fit"]

_MOST = 40_000_000  # pixels, at four bytes each while they are resized: larger pictures are not opened
_QUALITY = 90
_TRIES = 6


def needs_fitting(source: Base64Source, box: Box) -> bool:
    """Whether a picture is larger than a target takes. Looked at once."""
    known = source.cache
    too_large: bool | None = known.get(("over", box))
    if too_large is None:
        too_large = known["over", box] = not box.holds(image_size(source), len(source.data))
    return too_large


@cache
def can_resize() -> bool:
    """Whether Pillow is installed (the extra `media`)."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def is_resizable(source: Base64Source) -> bool:
    """Whether a picture is of a format that is made smaller, and not too large to be opened."""
    size = image_size(source)
    return source.media_type in _FORMATS and size is not None and size[0] * size[1] <= _MOST


def known_fit(source: Base64Source, box: Box) -> tuple[Base64Source | None] | None:
    """What an earlier `fitted` gave for a picture, in a tuple; None if it was never asked."""
    found: tuple[Base64Source | None] | None = source.cache.get(box)
    return found


def copies_of(source: Base64Source) -> list[Base64Source]:
    """The smaller copies that were made of a picture and stay with it, each once."""
    made = (known[0] for terms, known in [*source.cache.items()] if isinstance(terms, Box))
    return [*{id(copy): copy for copy in made if copy is not None}.values()]


def resize_to_fit(source: Base64Source, box: Box) -> Base64Source | None:
    """The picture in its own format, as large as the box allows; None if that cannot be done. Blocking.

    The first frame of an animation, upright. Worked out once: the same picture and the same Pillow give the
    same bytes.
    """
    known = known_fit(source, box)
    if known is None:
        try:
            known = (_fitted(source, box),)
        except Exception:  # a damaged picture makes Pillow raise anything: then it cannot be done
            known = (None,)
        source.cache[box] = known
    return known[0]


def _fitted(source: Base64Source, box: Box) -> Base64Source | None:
    from PIL import Image, ImageOps

    size = image_size(source)
    if size is None or not is_resizable(source):
        return None
    name = _FORMATS[source.media_type]
    with Image.open(BytesIO(base64.b64decode(source.data)), formats=[name]) as opened:
        if opened.size != size:
            return None  # a second header: nobody has judged what that says
        opened.draft(None, (box.side or size[0], box.side or size[1]))  # a JPEG need not be decoded at full size
        if opened.mode[0] in "IF":
            return None  # 16 and 32 bits a pixel: Pillow clips them to white rather than scale them
        picture = _plain(ImageOps.exif_transpose(opened))
    scale = _scale(picture.size, box)
    for _ in range(_TRIES):
        width, height = (max(1, int(side * scale)) for side in picture.size)
        # Pillow's annotation names numpy, which need not be installed.
        picture = picture.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)  # pyright: ignore[reportUnknownMemberType]
        made = _saved(picture, name)
        if not box.data or len(made) <= box.data:
            found = Base64Source(source.media_type, made)
            _ = found.data_url  # put together here rather than on the event loop
            return found
        scale = 0.9 * (box.data / len(made)) ** 0.5  # data goes about with the pixels
    return None


_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF", "image/bmp": "BMP"}


def _plain(picture: Image) -> Image:
    """In a mode that can be resized smoothly and saved: palettes and rare modes become RGB, or RGBA."""
    if picture.mode in ("RGB", "RGBA", "L"):
        return picture
    see_through = picture.mode in ("LA", "PA", "La", "RGBa") or "transparency" in picture.info
    return picture.convert("RGBA" if see_through else "RGB")


def _scale(size: tuple[int, int], box: Box) -> float:
    """By how much the sides have to shrink for the box to hold the pixels."""
    width, height = size
    scale = 1.0
    if box.side:
        scale = min(scale, box.side / max(width, height))
    if box.pixels:
        scale = min(scale, (box.pixels / (width * height)) ** 0.5)
    return scale


def _saved(picture: Image, name: str) -> str:
    """The picture as base64 text, without what described the camera and the place."""
    if name in ("JPEG", "BMP") and picture.mode == "RGBA":
        picture = picture.convert("RGB")
    made = BytesIO()
    options = {"quality": _QUALITY} if name in ("JPEG", "WEBP") else {}
    picture.save(made, name, **options)
    return encode_base64(made.getvalue())
