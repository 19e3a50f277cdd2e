"""Resizes images with Pillow (extra `media`). Each image source caches its resized copies."""

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

__all__ = ["can_resize", "get_fit", "is_resizable", "list_copies", "needs_fitting", "resize_to_fit"]

_MAX_PIXELS = 40_000_000  # larger images are not opened, because resizing needs four bytes of memory per pixel
_QUALITY = 90
_TRIES = 6


def needs_fitting(source: Base64Source, box: Box) -> bool:
    """Returns True if an image exceeds the size limits in `box`. The image source caches the result."""
    too_large: bool | None = source.cache.get(("too_large", box))
    if too_large is None:
        too_large = source.cache["too_large", box] = not box.holds(image_size(source), len(source.data))
    return too_large


@cache
def can_resize() -> bool:
    """Returns True if Pillow is installed (extra `media`)."""
    from importlib.util import find_spec

    return find_spec("PIL") is not None


def is_resizable(source: Base64Source) -> bool:
    """Returns True if Pillow can resize this image format, and the image has at most 40,000,000 pixels."""
    size = image_size(source)
    return source.media_type in _FORMATS and size is not None and size[0] * size[1] <= _MAX_PIXELS


def get_fit(source: Base64Source, box: Box) -> tuple[Base64Source | None] | None:
    """Returns the cached result of `resize_to_fit` in a tuple. Returns None if no result is cached.

    The tuple contains None if the image cannot be resized.
    """
    result: tuple[Base64Source | None] | None = source.cache.get(box)
    return result


def list_copies(source: Base64Source) -> list[Base64Source]:
    """Returns the resized copies that an image source caches, without duplicates."""
    copies = (result[0] for key, result in [*source.cache.items()] if isinstance(key, Box))
    return [*{id(copy): copy for copy in copies if copy is not None}.values()]


def resize_to_fit(source: Base64Source, box: Box) -> Base64Source | None:
    """Returns a copy of an image within the size limits in `box`, or None if the image cannot be resized.

    The copy has the format of the original, and is rotated according to the EXIF data. A copy of an animation has
    only the first frame. The image source caches the copy. With the same version of Pillow, copies of equal
    images have equal bytes. The function blocks the calling thread.
    """
    result = get_fit(source, box)
    if result is None:
        try:
            result = (_resize(source, box),)
        except Exception:  # Pillow can raise any error for a damaged image
            result = (None,)
        source.cache[box] = result
    return result[0]


def _resize(source: Base64Source, box: Box) -> Base64Source | None:
    from PIL import Image, ImageOps

    size = image_size(source)
    if size is None or not is_resizable(source):
        return None
    name = _FORMATS[source.media_type]
    with Image.open(BytesIO(base64.b64decode(source.data)), formats=[name]) as opened:
        if opened.size != size:
            return None  # the file has a second header, and the size in this header was not checked
        # With `draft`, Pillow decodes a JPEG at a reduced size, which is faster.
        opened.draft(None, (box.side or size[0], box.side or size[1]))
        if opened.mode[0] in "IF":
            return None  # with 16 or 32 bits per pixel, Pillow clips values instead of scaling them
        image = _convert_mode(ImageOps.exif_transpose(opened))
    scale = _compute_scale(image.size, box)
    for _ in range(_TRIES):
        width, height = (max(1, int(side * scale)) for side in image.size)
        # Pyright reports this call, because Pillow's annotations refer to numpy, which may be missing.
        image = image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)  # pyright: ignore[reportUnknownMemberType]
        data = _save(image, name)
        if not box.data or len(data) <= box.data:
            copy = Base64Source(source.media_type, data)
            _ = copy.data_url  # computes and caches the URL in this worker thread, not in the event loop
            return copy
        # The data length is roughly proportional to the number of pixels. The factor 0.9 is a safety margin.
        scale = 0.9 * (box.data / len(data)) ** 0.5
    return None


_FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP", "image/gif": "GIF", "image/bmp": "BMP"}


def _convert_mode(image: Image) -> Image:
    """Converts an image with a mode such as P or CMYK to RGB or RGBA, for resizing and saving."""
    if image.mode in ("RGB", "RGBA", "L"):
        return image
    is_transparent = image.mode in ("LA", "PA", "La", "RGBa") or "transparency" in image.info
    return image.convert("RGBA" if is_transparent else "RGB")


def _compute_scale(size: tuple[int, int], box: Box) -> float:
    width, height = size
    scale = 1.0
    if box.side:
        scale = min(scale, box.side / max(width, height))
    if box.pixels:
        scale = min(scale, (box.pixels / (width * height)) ** 0.5)
    return scale


def _save(image: Image, name: str) -> str:
    """Encodes an image as base64 text, without metadata such as the location of the camera."""
    if name in ("JPEG", "BMP") and image.mode == "RGBA":
        image = image.convert("RGB")
    file = BytesIO()
    options = {"quality": _QUALITY} if name in ("JPEG", "WEBP") else {}
    image.save(file, name, **options)
    return encode_base64(file.getvalue())
