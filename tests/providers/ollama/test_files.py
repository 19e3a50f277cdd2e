"""Files and Ollama, whose SDK reads the file if the data of an image is the path of one."""

import asyncio
import base64
from pathlib import Path
from typing import Final

import pytest

from agentkit import ImageBlock, URLSource
from agentkit_ollama import OllamaChatFormatter
from tests.cases import each_case
from tests.providers import PNG, picture, user
from tests.wire.loopback import send

PATHS: Final = ("Makefile", "etc/passwd/", "/etc/passwd", "README", "notes123", "/9j/nope", "iVBOR.png")


@pytest.mark.parametrize("path", PATHS)
def test_base64_text_that_is_the_path_of_a_file_is_not_sent(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("Makefile", "README", "notes123"):
        Path(name).write_text("secret")
    request = OllamaChatFormatter().lower([user("See.", picture(path))]).request
    captured = asyncio.run(send("ollama", request))
    sent = str(captured.body)
    assert base64.b64encode(b"secret").decode() not in sent
    assert base64.b64encode(b"root:").decode()[:6] not in sent


@each_case("url", ["file:///etc/passwd", "/etc/passwd", "Makefile", "./a.png", "file://localhost/etc/hosts"])
def test_a_file_is_not_read_without_a_media_root(url: str) -> None:
    formatter = OllamaChatFormatter()
    request = asyncio.run(formatter.format([user("See.", ImageBlock(URLSource(url)))]))
    assert "images" not in request["messages"][0]
    assert "[image left out because" in request["messages"][0]["content"]


def test_a_file_within_a_media_root_is_sent_as_base64_text(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(base64.b64decode(PNG))
    formatter = OllamaChatFormatter(media_roots=[tmp_path])
    request = asyncio.run(formatter.format([user("See.", ImageBlock(URLSource(str(path))))]))
    assert request["messages"][0]["images"] == [PNG]
