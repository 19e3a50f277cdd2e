"""Encodings of models, and counting with the ranks of an encoding. Nothing is ever downloaded.

Two packages have ranks; a text has the same count in both:

1. tiktoken is first, but only for an encoding whose ranks are already in its cache folder and have the right
   SHA-256. tiktoken is OpenAI's own implementation, and it lets other threads run while it encodes. Without cached
   ranks it would block in a download without a timeout, so it is not used then.
2. splintr is second. Its wheel contains the ranks of all encodings here, so it counts on a new machine without a
   network. It holds the interpreter lock while it encodes: about 0.1 s for 2,000,000 characters.

`find_encoding` names the encoding of a model, `load_encoding` returns the function that counts with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from agentkit.capabilities.model_names import normalize_model_name
from agentkit.errors import MissingExtraError

__all__ = ["Encoding", "find_encoding", "find_encoding_package", "load_encoding"]


class Encoding(NamedTuple):
    """Encoding of a model.

    Attributes:
        name: Name of the encoding, such as `o200k_base`.
        note: Reason why the model's own encoding is another one. Empty if this is the model's own encoding.

    """

    name: str
    note: str = ""


BASE: Final = "o200k_base"
"""Encoding for models without an available encoding."""

# Patterns of the start of the normalized model name; the first match decides.
_MODELS: Final = tuple(
    (re.compile(pattern), Encoding(name, note))
    for pattern, name, note in (
        # tiktoken.model, 0.14
        (r"gpt-(oss|4o|4\.1|4\.5|5)|chatgpt-4o|o[134](-|$)", BASE, ""),
        (r"gpt-(4|3\.5|35)", "cl100k_base", ""),
        # tiktoken raises KeyError for these (tiktoken.model)
        (r"gpt-|codex|computer-use", BASE, "the model's encoding is not published; counted with o200k_base"),
        # vocabularies in the wheel of splintr
        (r"(qwen-?(1\.5|2|3(?!\.[5-9]))|qwq|qvq)", "qwen3", ""),
        (r"qwen", "qwen3", "newer Qwen models have another vocabulary; counted with that of Qwen 3"),
        (r"deepseek-(v3|r1)", "deepseek_v3", ""),
        (r"deepseek", "deepseek_v3", "the model's vocabulary is unknown; counted with that of DeepSeek V3"),
        (r"kimi-k[23]", "kimi_k2", ""),
        (r"glm-4", "glm4", ""),
        (r"(meta-)?llama-?3", "llama3", ""),
        (r"phi-?4", "phi4", ""),
        # no offline tokenizer (Claude docs, token-counting; Gemini docs, tokens)
        (r"claude", BASE, "the model's tokenizer is not published; o200k_base counts fewer tokens"),
        (r"gem(ini|ma)", BASE, "the model's tokenizer is not available; counted with o200k_base"),
    )
)

ENCODINGS: Final = frozenset(encoding.name for _, encoding in _MODELS)
"""Names of all encodings."""


def find_encoding(model: str) -> Encoding:
    """Returns the encoding of a model, by its normalized name (see `normalize_model_name`)."""
    name = normalize_model_name(model)
    match = next((encoding for pattern, encoding in _MODELS if pattern.match(name)), None)
    return match or Encoding(BASE, f"the encoding of model {model!r} is unknown; counted with o200k_base")


Count: TypeAlias = Callable[[str], int]

# Files in the cache of tiktoken: the SHA-1 of their URL, and the SHA-256 of their content (tiktoken_ext, 0.14).
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
    """Returns the package that counts in an encoding without a network: "tiktoken" or "splintr". Loads nothing.

    Raises:
        MissingExtraError: No installed package has the ranks.

    """
    if _is_installed("tiktoken") and _is_cached(encoding):
        return "tiktoken"
    if _is_installed("splintr"):
        return "splintr"
    raise MissingExtraError("splintr-rs", "tokens", f"Counting in {encoding} without a network")


def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


def _is_cached(encoding: str) -> bool:
    """Returns True if the cache of tiktoken has intact ranks. tiktoken downloads a missing or damaged file."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "" or encoding not in _CACHED:
        return False
    name, digest = _CACHED[encoding]
    path = os.path.join(folder or os.path.join(gettempdir(), "data-gym-cache"), name)
    try:
        status = os.stat(path)
        return _has_digest(path, status.st_size, status.st_mtime_ns, digest)
    except OSError:
        return False


@lru_cache(8)
def _has_digest(path: str, size: int, modified: int, digest: str) -> bool:
    """Returns True if a file has a SHA-256. Size and time of change are part of the key: the file is read once."""
    return sha256(Path(path).read_bytes()).hexdigest() == digest


_loading: Final = Lock()


def load_encoding(encoding: str) -> Count:
    """Returns the function that counts the tokens of a text. Special tokens in a text count as text.

    The first call for an encoding takes up to 0.4 s; later calls in the process are immediate.

    Raises:
        MissingExtraError: No installed package has the ranks.

    """
    with _loading:
        return _load(find_encoding_package(encoding), encoding)


@lru_cache(2 * len(ENCODINGS))
def _load(package: str, encoding: str) -> Count:
    return _load_tiktoken(encoding) if package == "tiktoken" else _load_splintr(encoding)


def _load_tiktoken(encoding: str) -> Count:
    import tiktoken

    encode = tiktoken.get_encoding(encoding).encode  # `encode_ordinary` panics where `encode` raises ValueError

    def count(text: str) -> int:
        try:
            return len(encode(text, disallowed_special=()))
        except ValueError:  # "Max stack size exceeded for backtracking": a run of a million spaces, for example
            middle = len(text) // 2
            if not middle:
                raise
            return count(text[:middle]) + count(text[middle:])  # a border between pieces adds a few tokens at most

    return count


def _load_splintr(encoding: str) -> Count:
    from splintr import Tokenizer

    encode = Tokenizer.from_pretrained(encoding).encode_ordinary

    def count(text: str) -> int:
        try:
            return len(encode(text))
        except UnicodeEncodeError:  # a lone surrogate, in a request that no formatter created
            return len(encode(text.encode(errors="replace").decode()))

    return count
