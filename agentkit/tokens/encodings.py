"""Counts tokens with an encoding. Nothing is downloaded.

Counting needs the vocabulary of the encoding. Two packages provide vocabularies, and their counts are equal:

1. tiktoken, OpenAI's implementation, is used if tiktoken's cache folder contains the vocabulary with the right
   SHA-256. Without a cached vocabulary, tiktoken would start a download without a timeout. Other Python threads
   can run while tiktoken encodes.
2. splintr is used in all other cases. The wheel of splintr contains the vocabularies of all encodings in
   `model_encodings`, so that counting needs no network. Other Python threads wait while splintr encodes. Encoding
   2,000,000 characters takes about 0.1 s.

`load_encoding` returns the function that counts with an encoding. The encoding of each model is in
`model_encodings`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from typing import Final, TypeAlias

from agentkit.errors import MissingExtraError
from agentkit.tokens.model_encodings import BASE, ENCODINGS

__all__ = ["Count", "find_encoding_package", "load_encoding"]


Count: TypeAlias = Callable[[str], int]

# For each file in tiktoken's cache folder: the file name (SHA-1 of the URL), and the SHA-256 of the content.
# Source: tiktoken_ext, version 0.14.
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
    """Returns the package that can count with an encoding without a download: "tiktoken" or "splintr".

    Raises:
        MissingExtraError: No installed package has the vocabulary of the encoding.
    """
    if find_spec("tiktoken") and _is_cached(encoding):
        return "tiktoken"
    if find_spec("splintr"):
        return "splintr"
    raise MissingExtraError("splintr-rs", "tokens", f"Counting with the encoding {encoding}")


def _is_cached(encoding: str) -> bool:
    """Returns True if tiktoken's cache folder has an undamaged file with the vocabulary of an encoding.

    If the file is missing or damaged, tiktoken would download the file.
    """
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
    """Returns True if a file has the SHA-256 `digest`.

    The results are cached. The size and the time of the last change are arguments, so that a changed file is read
    again.
    """
    return sha256(Path(path).read_bytes()).hexdigest() == digest


_loading: Final = Lock()


def load_encoding(encoding: str) -> Count:
    """Returns the function that counts the tokens of a text with an encoding.

    The returned function counts special tokens as ordinary text. The first call of `load_encoding` for an encoding
    takes up to 0.4 s. Later calls are immediate.

    Raises:
        MissingExtraError: No installed package has the vocabulary of the encoding.
    """
    with _loading:
        return _load(find_encoding_package(encoding), encoding)


@lru_cache(2 * len(ENCODINGS))
def _load(package: str, encoding: str) -> Count:
    return _load_tiktoken(encoding) if package == "tiktoken" else _load_splintr(encoding)


def _load_tiktoken(encoding: str) -> Count:
    import tiktoken

    # For some texts, `encode` raises ValueError. `encode_ordinary` would raise PanicException for these texts, and
    # `except Exception` does not catch a PanicException.
    encode = tiktoken.get_encoding(encoding).encode

    def count(text: str) -> int:
        try:
            return len(encode(text, disallowed_special=()))
        except ValueError:  # "Max stack size exceeded for backtracking", for example for a million spaces
            middle = len(text) // 2
            if not middle:
                raise
            return count(text[:middle]) + count(text[middle:])  # the split adds at most a few tokens

    return count


def _load_splintr(encoding: str) -> Count:
    from splintr import Tokenizer

    encode = Tokenizer.from_pretrained(encoding).encode_ordinary

    def count(text: str) -> int:
        try:
            return len(encode(text))
        except UnicodeEncodeError:  # the text has a lone surrogate, which UTF-8 cannot encode
            return len(encode(text.encode(errors="replace").decode()))

    return count
