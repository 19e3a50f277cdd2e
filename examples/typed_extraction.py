"""Nested values from an image: a model reads the bars of a chart.

    python examples/typed_extraction.py                             with a prepared reply, without a key
    python examples/typed_extraction.py anthropic:claude-opus-5     with a provider, its key in the environment

`JSONAdapter` sends the schema of the output if the API accepts schemas. The reply is checked against the types, so
a height above 100 is an error. `retries=1` sends the error to the model, which can then correct the value.
"""

import struct
import sys
import zlib
from typing import Literal

import anyio
from pydantic import BaseModel, Field

from agentkit import ChatModel, ImageBlock
from agentkit.prompts import JSONAdapter, Signature, ask
from agentkit.testing import ScriptedModel

BARS = [((200, 0, 0), 30), ((0, 150, 0), 80), ((0, 0, 200), 55)]  # color and height of each bar
WHITE = (255, 255, 255)
REPLY = """{"answer": {"bars": [
    {"color": "red", "height": 30}, {"color": "green", "height": 80}, {"color": "blue", "height": 55}
]}}"""


class Bar(BaseModel):
    """Bar of a chart."""

    color: Literal["red", "green", "blue"]
    height: int = Field(ge=0, le=100, description="percentage of the height of the image")


class Chart(BaseModel):
    """Chart with vertical bars."""

    bars: list[Bar] = Field(description="bars from left to right")


class ReadChart(Signature[Chart]):
    """Read the bars of the chart."""

    image: ImageBlock


def draw_chart() -> ImageBlock:
    """Returns a PNG image with the bars on a white background. The image has a height of 100 pixels."""
    gap = bytes(WHITE) * 20
    rows: list[bytes] = []
    for level in range(100, 0, -1):
        bars = [bytes(color if level <= height else WHITE) * 40 for color, height in BARS]
        rows.append(gap + gap.join(bars) + gap)
    header = struct.pack(">2I5B", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    png = b"\x89PNG\r\n\x1a\n"
    for name, data in ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b"")):
        png += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return ImageBlock.from_bytes(png, "image/png")


async def read_chart(model: ChatModel, image: ImageBlock) -> Chart:
    """Returns the bars of a chart in an image."""
    prediction = await ask(model, ReadChart(image=image), adapter=JSONAdapter(), retries=1)
    return prediction.value


async def main(model: ChatModel) -> None:
    """Reads the chart and prints its bars."""
    async with model:
        chart = await read_chart(model, draw_chart())
    for bar in chart.bars:
        print(f"{bar.color:6} {bar.height:3} {'#' * (bar.height // 5)}")


if __name__ == "__main__":
    anyio.run(main, ChatModel(sys.argv[1]) if len(sys.argv) > 1 else ScriptedModel([REPLY]))
