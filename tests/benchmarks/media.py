"""Extra time to format a history with images again, relative to the same history with texts instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from agentkit import Budget, ImageBlock, Msg, TextBlock, URLSource, load_provider
from agentkit.provider_kit import FormatterBase
from tests.benchmarks.histories import as_msgs, build_mixed_chat
from tests.benchmarks.measure import Case, interleave
from tests.benchmarks.peers import run_async
from tests.benchmarks.report import Aim, Report, Table
from tests.providers import MESSAGE_PROVIDERS

__all__ = ["run"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COUNT = 5


def run(quick: bool = False) -> Report:
    """Measures images as base64 and as local files with each provider."""
    names = ["openai", "anthropic"] if quick else MESSAGE_PROVIDERS
    size, n, rounds = (1_000, 20, 1) if quick else (1_000_000, 100, 15)
    with TemporaryDirectory() as folder:
        rows: list[list[object]] = []
        worst: dict[bool, float] = {}
        for name in names:
            cells: list[object] = [name]
            for as_files in (False, True):
                extra = _measure_extra_time(
                    load_provider(name).chat_formatter, _create_images(size, folder, as_files), n, rounds, folder
                )
                worst[as_files] = max(worst.get(as_files, 0.0), extra)
                cells.append(f"{extra * 1e3:.3f} ms")
            rows.append(cells)
    title = f"Five images of 1 MB in {n} messages: extra CPU time of a later step"
    most = worst[False]
    measurement = "Extra time of a later step with five images of 1 MB, worst API"
    aim = Aim(measurement, "≤ 0.05 ms", f"{most * 1e3:.3f} ms", most <= 0.05e-3)
    return Report([Table(title, ["", "as base64", "as local files"], rows)], (), [aim])


def _create_images(size: int, folder: str, as_files: bool) -> list[ImageBlock]:
    """Returns five different images, as base64 or as files in `folder`."""
    blobs = [_SIGNATURE + bytes([number]) * (size - len(_SIGNATURE)) for number in range(_COUNT)]
    if not as_files:
        return [ImageBlock.from_bytes(blob, "image/png") for blob in blobs]
    blocks: list[ImageBlock] = []
    for number, blob in enumerate(blobs):
        path = Path(folder) / f"{number}.png"
        path.write_bytes(blob)
        blocks.append(ImageBlock(URLSource(path.as_uri())))
    return blocks


def _measure_extra_time(
    create_formatter: Callable[..., FormatterBase], images: list[ImageBlock], n: int, rounds: int, folder: str
) -> float:
    """Returns the CPU seconds that a step takes longer with images than with a text for each image."""
    texts = as_msgs(build_mixed_chat(n))
    with_images = texts.copy()
    indexes = (index for index, msg in enumerate(texts) if msg.role == "user" and not msg.tool_uses)
    for index, image in zip(indexes, images, strict=False):
        with_images[index] = Msg("Alice", (TextBlock(texts[index].text), image), "user")
        texts[index] = Msg("Alice", (TextBlock(texts[index].text), TextBlock("An image.")), "user")
    formatter = create_formatter(media_roots=[folder], budget=Budget(1_000_000))

    def step(msgs: list[Msg]) -> object:
        return run_async(formatter.format(msgs))

    cases = {
        name: Case(partial(list[Msg], msgs), step) for name, msgs in (("with", with_images), ("without", texts))
    }
    samples = interleave(cases, rounds, batch=10)
    return samples["with"].median - samples["without"].median
