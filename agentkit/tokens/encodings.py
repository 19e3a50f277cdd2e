"""Which encoding a model has, and where its ranks come from: packages that bring them, never the network."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from typing import Final, NamedTuple

from agentkit.capabilities.model_names import normalize_model_name
from agentkit.errors import MissingExtraError

__all__ = ["Encoding", "find_encoding", "find_encoding_package", "load_encoding"]


class Encoding(NamedTuple):
    """The name of an encoding, and why it is only a stand-in for the model's own ("" if it is its own)."""

    name: str
    note: str = ""


BASE: Final = "o200k_base"

# By the beginning of the model's name, the first that holds.
_MODELS: Final = tuple(
    (re.compile(pattern), Encoding(name, note))
    for pattern, name, note in (
        # tiktoken.model, 0.14
        (r"gpt-(oss|4o|4\.1|4\.5|5)|chatgpt-4o|o[134](-|$)", BASE, ""),
        (r"gpt-(4|3\.5|35)", "cl100k_base", ""),
        # tiktoken raises KeyError for these (tiktoken.model)
        (r"gpt-|codex|computer-use", BASE, "the model's encoding is not published: o200k_base assumed"),
        # the vocabularies that splintr brings
        (r"(qwen-?(1\.5|2|3(?!\.[5-9]))|qwq|qvq)", "qwen3", ""),
        (r"qwen", "qwen3", "newer Qwen models have another vocabulary: that of Qwen 3 taken"),
        (r"deepseek-(v3|r1)", "deepseek_v3", ""),
        (r"deepseek", "deepseek_v3", "the model's vocabulary is not known: that of DeepSeek V3 taken"),
        (r"kimi-k[23]", "kimi_k2", ""),
        (r"glm-4", "glm4", ""),
        (r"(meta-)?llama-?3", "llama3", ""),
        (r"phi-?4", "phi4", ""),
        # no tokenizer of theirs can be had offline (token-counting, media-resolution)
        (r"claude", BASE, "the model's tokenizer is not published: o200k_base taken, which counts less"),
        (r"gem(ini|ma)", BASE, "the model's tokenizer is not at hand: o200k_base taken"),
    )
)

ENCODINGS: Final = frozenset(encoding.name for _, encoding in _MODELS)
"""All that models have."""


def find_encoding(model: str) -> Encoding:
    """Returns the encoding of a model, by its normalized name (see `normalize_model_name`)."""
    name = normalize_model_name(model)
    found = next((encoding for pattern, encoding in _MODELS if pattern.match(name)), None)
    return found or Encoding(BASE, f"no encoding is known for {model!r}: o200k_base taken")


Count = Callable[[str], int]

# The files that tiktoken keeps: SHA-1 of their address, and the SHA-256 that it checks (tiktoken_ext, 0.14).
_CACHED: Final = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    BASE: (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}


def find_encoding_package(encoding: str) -> str:
    """The package that can count in an encoding here and now, without the network: splintr before tiktoken.

    Raises MissingExtraError, which says what to install, where there is none. Loads nothing.
    """
    if _installed("splintr"):
        return "splintr"
    if _installed("tiktoken") and _cached(encoding):
        return "tiktoken"
    raise MissingExtraError("splintr-rs", "tokens", f"Counting in {encoding} with no network")


def _installed(package: str) -> bool:
    return find_spec(package) is not None


def _cached(encoding: str) -> bool:
    """Whether tiktoken finds the ranks where it looks for them: what is missing or broken it would download."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "" or encoding not in _CACHED:
        return False
    name, digest = _CACHED[encoding]
    file = Path(folder or Path(gettempdir()) / "data-gym-cache") / name
    return file.is_file() and sha256(file.read_bytes()).hexdigest() == digest


_loading: Final = Lock()


def load_encoding(encoding: str) -> Count:
    """How many tokens a text has in an encoding. Slow the first time in a process (up to 0.4 s), then kept.

    Special tokens in a text are text. Raises MissingExtraError where no package has the ranks.
    """
    with _loading:
        return _load(find_encoding_package(encoding), encoding)


@cache
def _load(source: str, encoding: str) -> Count:
    return _splintr(encoding) if source == "splintr" else _tiktoken(encoding)


def _splintr(encoding: str) -> Count:
    from splintr import Tokenizer

    encode = Tokenizer.from_pretrained(encoding).encode_ordinary

    def count(text: str) -> int:
        try:
            return len(encode(text))
        except UnicodeEncodeError:  # a lone surrogate, in a request that no formatter made
            return len(encode(text.encode(errors="replace").decode()))

    return count


def _tiktoken(encoding: str) -> Count:
    import tiktoken

    encode = tiktoken.get_encoding(encoding).encode
    return lambda text: len(encode(text, disallowed_special=()))
