"""Pictures in a history: what a step costs more than one without them, once they were seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from agentkit import Budget, ImageBlock, Msg, TextBlock, URLSource, available_providers, load_provider
from agentkit.provider_kit import FormatterBase
from tests.benchmarks.histories import as_msgs, build_mixed_chat
from tests.benchmarks.measure import Case, interleave
from tests.benchmarks.peers import run_async
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["run"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PICTURES = 5


def run(quick: bool = False) -> Report:
    """For each provider, pictures as base64 and as local files."""
    names = ["openai", "anthropic"] if quick else available_providers()
    size, n, rounds = (1_000, 20, 1) if quick else (1_000_000, 100, 15)
    with TemporaryDirectory() as folder:
        rows: list[list[object]] = []
        most: dict[bool, float] = {}
        for name in names:
            cells: list[object] = [name]
            for filed in (False, True):
                more = _more(load_provider(name).chat_formatter, _pictures(size, folder, filed), n, rounds, folder)
                most[filed] = max(most.get(filed, 0.0), more)
                cells.append(f"{more * 1e3:.3f} ms")
            rows.append(cells)
    title = f"Five pictures of 1 MB, {n} messages: CPU time of a later step over one without them"
    found = most[False]
    what = "A later step with five pictures of 1 MB, worst wire"
    aim = Aim(what, "≤ 0.05 ms more", f"{found * 1e3:.3f} ms", found <= 0.05e-3)
    return Report([Table(title, ["", "as base64", "as local files"], rows)], (), [aim])


def _pictures(size: int, folder: str, filed: bool) -> list[ImageBlock]:
    """Five different pictures, in the message or as files."""
    blobs = [_SIGNATURE + bytes([at]) * (size - len(_SIGNATURE)) for at in range(_PICTURES)]
    if not filed:
        return [ImageBlock.from_bytes(blob, "image/png") for blob in blobs]
    found: list[ImageBlock] = []
    for at, blob in enumerate(blobs):
        path = Path(folder) / f"{at}.png"
        path.write_bytes(blob)
        found.append(ImageBlock(URLSource(path.as_uri())))
    return found


def _more(
    make: Callable[..., FormatterBase], pictures: list[ImageBlock], n: int, rounds: int, folder: str
) -> float:
    """CPU seconds of a step with pictures over the same step with a text in the place of each."""
    texts = as_msgs(build_mixed_chat(n))
    seen = texts.copy()
    spoken = (at for at, msg in enumerate(texts) if msg.role == "user" and not msg.tool_uses)
    for place, picture in zip(spoken, pictures, strict=False):
        seen[place] = Msg("Alice", (TextBlock(texts[place].text), picture), "user")
        texts[place] = Msg("Alice", (TextBlock(texts[place].text), TextBlock("A picture.")), "user")
    formatter = make(media_roots=[folder], budget=Budget(1_000_000))

    def step(msgs: list[Msg]) -> object:
        return run_async(formatter.format(msgs))

    cases = {name: Case(partial(list[Msg], msgs), step) for name, msgs in (("with", seen), ("without", texts))}
    samples = interleave(cases, rounds, batch=10)
    return samples["with"].median - samples["without"].median
