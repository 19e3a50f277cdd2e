"""Writes a model file of two megabytes for llama.cpp. The next token depends only on the current token.

Embeddings are one-hot, and attention and feed-forward layers add nothing. The output matrix contains the scores
of all transitions, so the same prompt gets the same reply at any temperature. Each byte is a token, and so is each
word of the fixed replies. A grammar allows only some tokens. Of these, the model selects the token with the
highest score. A tool call therefore has the shortest JSON arguments that its schema accepts.

The file format is GGUF (docs/gguf.md of ggml). The keys and tensors are those of the architectures `llama` and
`clip`.
"""

from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

numpy: Any = import_module("numpy")
gguf: Any = import_module("gguf")

MARKERS: Final = ("<|begin|>", "<|end|>", "<|say|>", "<|think|>", "<|call|>", "<|answer|>")
TAGS: Final = ("<think>", "</think>", "<tool_call>", "</tool_call>")
REPLIES: Final = {
    "<|say|>": ["The", " library", " is", " near", " you"],
    "<think>": ["Let", " me", " think"],
    "</think>": ["So", " here", " it", " goes"],
    "<|answer|>": ["Its", " answer", " stands"],
}
"""Words that the model generates after a marker or a tag."""
ENDS: Final = {"<think>": "</think>"}
FORCED_STEPS: Final = (("<|think|>", "<think>"), ("<|call|>", "<tool_call>"), ("</tool_call>", "<|end|>"))

CHARACTER_SCORES: Final = {"}": 40.0, "]": 38.0, ",": 30.0, '"': 20.0, "{": 12.0, "[": 11.0, "7": 10.0, "t": 5.0}
"""Scores of characters if a grammar allows several. Characters that end a value have the highest scores."""
WHITESPACE: Final = " \t\n\r"
WIDTH: Final = 320
HEAD_WIDTH: Final = 32
"""Width of the only attention head. Attention adds nothing, and a narrow head needs little time."""


def _byte_names() -> list[str]:
    """Returns the character of each byte value in a byte-level vocabulary, as in GPT-2."""
    plain = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


class _Vocabulary:
    """Tokens: bytes, markers, tags, and one token for each word of a reply."""

    def __init__(self) -> None:
        self.names = _byte_names()
        self.kinds: list[int] = [int(gguf.TokenType.NORMAL)] * 256
        self.ids: dict[str, int] = {}
        for name in MARKERS:
            self._add(name, name, gguf.TokenType.CONTROL)
        for name in TAGS:
            self._add(name, name, gguf.TokenType.USER_DEFINED)
        self.chains = [*self._chains()]
        while len(self.names) < WIDTH:
            self._add(f"<unused{len(self.names)}>", f"<unused{len(self.names)}>", gguf.TokenType.UNUSED)

    def _add(self, key: str, name: str, kind: Any) -> int:
        self.ids[key] = len(self.names)
        self.names.append(name)
        self.kinds.append(int(kind))
        return self.ids[key]

    def _chains(self) -> Iterator[tuple[int, int]]:
        """Yields pairs of consecutive tokens: a marker, the words after it, and the end."""
        for marker, words in REPLIES.items():
            bytes_named = ["".join(self.names[byte] for byte in word.encode()) for word in words]
            chain = [
                self._add(marker + name, self._check_new(name), gguf.TokenType.NORMAL) for name in bytes_named
            ]
            yield from pairwise([self.ids[marker], *chain, self.ids[ENDS.get(marker, "<|end|>")]])
        yield from ((self.ids[first], self.ids[second]) for first, second in FORCED_STEPS)

    def _check_new(self, name: str) -> str:
        assert name not in self.names, f"{name} is a word of two replies: the file would have this token twice"
        return name


def _transitions(vocabulary: _Vocabulary) -> Any:
    """Returns the score of each token (row) after each other token (column)."""
    table = numpy.full((WIDTH, WIDTH), -20.0, numpy.float32)
    for character, score in CHARACTER_SCORES.items():
        table[ord(character), :] = score
    for character in WHITESPACE:
        table[ord(character), :] = -60.0
    table[vocabulary.ids["<|end|>"], :] = 8.0
    table[vocabulary.ids["</tool_call>"], ord("}")] = 35.0  # not a comma and another call
    for first_character, next_character, score in (
        ('"', "h", 60.0),
        ("h", "i", 60.0),
        ("i", '"', 70.0),
    ):  # a string is "hi"
        table[ord(next_character), ord(first_character)] = score
    for first, second in vocabulary.chains:
        table[second, first] = 100.0
    return table / numpy.sqrt(WIDTH).astype(numpy.float32)  # the norm scales a one-hot row by this factor


def write_model(path: Path, *, adds_bos: bool = False) -> None:
    """Writes the language model with the chat template `template.jinja`.

    If `adds_bos` is True, the server adds the bos token to each prompt.
    """
    vocabulary = _Vocabulary()
    file = gguf.GGUFWriter(str(path), "llama")
    file.add_context_length(16384)
    file.add_embedding_length(WIDTH)
    file.add_block_count(1)
    file.add_feed_forward_length(64)
    file.add_head_count(1)
    file.add_head_count_kv(1)
    file.add_key_length(HEAD_WIDTH)
    file.add_value_length(HEAD_WIDTH)
    file.add_layer_norm_rms_eps(1e-6)
    file.add_rope_dimension_count(HEAD_WIDTH)
    file.add_vocab_size(WIDTH)
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("gpt-2")
    file.add_token_list(vocabulary.names)
    file.add_token_types(vocabulary.kinds)
    file.add_token_merges(["\u0100 \u0100"])  # the loader requires a merge; no text contains these bytes
    file.add_bos_token_id(vocabulary.ids["<|begin|>"])
    file.add_eos_token_id(vocabulary.ids["<|end|>"])
    file.add_add_bos_token(adds_bos)
    file.add_chat_template(Path(__file__).with_name("template.jinja").read_text("utf-8"))
    _add(file, "token_embd", numpy.eye(WIDTH, dtype=numpy.float32))
    _add(file, "output", _transitions(vocabulary).astype(numpy.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        _add(file, name, _ones(WIDTH))
    shapes = {
        "attn_q": (HEAD_WIDTH, WIDTH),
        "attn_k": (HEAD_WIDTH, WIDTH),
        "attn_v": (HEAD_WIDTH, WIDTH),
        "attn_output": (WIDTH, HEAD_WIDTH),
    }
    shapes |= {"ffn_gate": (64, WIDTH), "ffn_up": (64, WIDTH), "ffn_down": (WIDTH, 64)}
    for name, shape in shapes.items():
        _add(file, f"blk.0.{name}", _zeros(*shape))
    _close(file)


PATCH: Final = 14
PIXELS: Final = 4 * PATCH
VISION_WIDTH: Final = 32


def write_projector(path: Path) -> None:
    """Writes the projector of images. Its output is all zeros: the tests only need the server to decode images."""
    file = gguf.GGUFWriter(str(path), "clip")
    file.add_clip_has_vision_encoder(True)
    file.add_clip_projector_type("gemma3")
    file.add_vision_image_size(PIXELS)
    file.add_vision_patch_size(PATCH)
    file.add_vision_embedding_length(VISION_WIDTH)
    file.add_vision_feed_forward_length(VISION_WIDTH)
    file.add_vision_projection_dim(WIDTH)
    file.add_vision_block_count(1)
    file.add_vision_head_count(1)
    file.add_vision_attention_layernorm_eps(1e-6)
    file.add_vision_image_mean([0.5, 0.5, 0.5])
    file.add_vision_image_std([0.5, 0.5, 0.5])
    file.add_vision_use_gelu(True)
    _add(file, "v.patch_embd", _zeros(VISION_WIDTH, 3, PATCH, PATCH), _zeros(VISION_WIDTH))
    _add(file, "v.position_embd", _zeros((PIXELS // PATCH) ** 2, VISION_WIDTH))
    for name in ("v.post_ln", "v.blk.0.ln1", "v.blk.0.ln2"):
        _add(file, name, _ones(VISION_WIDTH), _zeros(VISION_WIDTH))
    for name in ("attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down"):
        _add(file, f"v.blk.0.{name}", _zeros(VISION_WIDTH, VISION_WIDTH), _zeros(VISION_WIDTH))
    _add(file, "mm.input_projection", _zeros(VISION_WIDTH, WIDTH))
    _add(file, "mm.soft_emb_norm", _ones(VISION_WIDTH))
    _close(file)


def _zeros(*shape: int) -> Any:
    return numpy.zeros(shape, numpy.float32)


def _ones(*shape: int) -> Any:
    return numpy.ones(shape, numpy.float32)


def _add(file: Any, name: str, weight: Any, bias: Any = None) -> None:
    file.add_tensor(f"{name}.weight", weight)
    if bias is not None:
        file.add_tensor(f"{name}.bias", bias)


def _close(file: Any) -> None:
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
