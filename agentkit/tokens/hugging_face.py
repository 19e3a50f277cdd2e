"""Counting with a model's own tokenizer file and chat template, as its server renders a conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Final, cast

import anyio.to_thread

from agentkit.argument_checks import check_option
from agentkit.capabilities.wire_layout import LayoutSource
from agentkit.errors import MissingExtraError, OptionError
from agentkit.messages.message import Msg
from agentkit.tokens.counters import CharacterTokenCounter, LocalTokenCounter, TokenCount, find_layout
from agentkit.tokens.estimate import TextCounts
from agentkit.tokens.media_costs import MediaPrices
from agentkit.tokens.request_parts import RequestParts, compact_json

__all__ = ["HuggingFaceTokenCounter"]

_TURN: Final = 5  # ChatML: two markers, two line breaks, the role
_MEDIUM: Final = 1_500  # about what a picture costs
_CALL: Final = 12  # the words that a template writes around a call or a result
_NO_TEMPLATE: Final = "no chat template: messages are estimated at 5 tokens each"


class HuggingFaceTokenCounter(LocalTokenCounter):
    """Counts what a local model's chat template makes of a request, by its `tokenizer.json`.

    tokenizer       the file, or a folder with it; `tokenizer_config.json` and `chat_template.jinja` beside it
                    are read too
    chat_template   the template's text, where it is not beside the file
    model           its name, which decides what pictures cost

    For requests of the OpenAI shape: `messages`, `tools`. What the template refuses (another wire's turns, roles
    out of order) is counted text by text and says so in `estimated`. Media cost their price, as anywhere.
    """

    needs_layout: ClassVar[bool] = True

    def __init__(self, tokenizer: str | Path, *, chat_template: str | None = None, model: str = "") -> None:
        for package in ("tokenizers", "jinja2"):
            if find_spec(package) is None:
                raise MissingExtraError(package, "tokens", "Counting with a tokenizer file")
        check_option("chat_template", chat_template, str | None)
        given = Path(tokenizer)
        self.file = given / "tokenizer.json" if given.is_dir() else given
        if not self.file.is_file():
            raise OptionError("tokenizer", f"there is no file {str(self.file)!r}", "Name a tokenizer.json.")
        self.model = model
        self._given_template = chat_template
        self._loading = Lock()
        self._texts = TextCounts(self._count)
        self._prices = MediaPrices(model)
        self._estimate = CharacterTokenCounter(_MEDIUM)

    @property
    def key(self) -> object:
        """The estimate's: messages are weighed by it."""
        return self._estimate.key

    def __reduce__(self) -> tuple[Any, ...]:
        return (_made, (str(self.file), self._given_template, self.model))

    @cached_property
    def _config(self) -> dict[str, Any]:
        file = self.file.with_name("tokenizer_config.json")
        return cast("dict[str, Any]", json.loads(file.read_text("utf-8"))) if file.is_file() else {}

    @cached_property
    def _template(self) -> Callable[..., str] | None:
        """The compiled template, in jinja's sandbox: it comes with a model, from anywhere."""
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        beside = self.file.with_name("chat_template.jinja")
        source = self._given_template or (beside.read_text("utf-8") if beside.is_file() else None)
        source = source or self._config.get("chat_template")
        if not isinstance(source, str):
            return None
        # As transformers.utils.chat_template_utils has it.
        room = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"], autoescape=False
        )
        room.filters["tojson"] = _tojson
        globals_ = cast("dict[str, Any]", room.globals)
        globals_.update(raise_exception=_refuse, strftime_now=_some_day)
        return room.from_string(source).render

    @cached_property
    def _encode(self) -> Callable[[str], int]:
        """The tokenizer; slow to load."""
        from tokenizers import Tokenizer

        tokenizer = cast("Any", Tokenizer).from_file(str(self.file))
        tokenizer.no_truncation()
        tokenizer.no_padding()

        def encode(text: str) -> int:
            sound = text if text.isascii() else text.encode("utf-8", "replace").decode()  # no lone surrogates
            return len(tokenizer.encode(sound, add_special_tokens=False).ids)

        return encode

    @cached_property
    def _special(self) -> re.Pattern[str] | None:
        """The markers between which a rendered conversation may be counted piece by piece, if it may."""
        added = cast("list[dict[str, Any]]", json.loads(self.file.read_text("utf-8")).get("added_tokens", []))
        words = [one["content"] for one in added if one.get("special") and not one["lstrip"] and not one["rstrip"]]
        found = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True)))) if words else None
        probe = " Hello there.\n\nHow are you? "
        for word in words[:64]:
            if found and self._encode(f"{probe}{word}{probe}{word}\n") != 2 * self._encode(
                probe
            ) + 2 + self._encode("\n"):
                return None  # a tokenizer that marks the beginning of a text
        return found

    def _count(self, text: str) -> int:
        return self._encode(text)

    async def prepare(self) -> None:
        """Read the files off the event loop."""
        await anyio.to_thread.run_sync(self._load)

    def _load(self) -> None:
        with self._loading:
            _ = (self._encode, self._special, self._template)

    async def count(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """`measure`, off the event loop: these tokenizers take a second for a few megabytes."""
        return await anyio.to_thread.run_sync(self.measure, request, provider)

    def measure(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """The tokens of the whole request."""
        self._load()
        parts = RequestParts.of(request, find_layout(self, provider))
        total, reasons = self._prices.total(parts.media)
        rendered, refused = self._render(request)
        if rendered is None:
            total += sum(map(self._texts.__getitem__, parts.texts)) + _TURN * parts.turns + _CALL * parts.calls
            total += sum(map(self._count, map(compact_json, (*parts.tools, *parts.settings))))
            return TokenCount(total, (*reasons, refused))
        return TokenCount(total + self._pieces(rendered), reasons)

    def _pieces(self, rendered: str) -> int:
        """Each stretch between two markers counted once in its life."""
        if self._special is None:
            return self._texts[rendered]
        pieces = self._special.split(rendered)
        return len(pieces) - 1 + sum(map(self._texts.__getitem__, pieces))

    def _render(self, request: Mapping[str, Any]) -> tuple[str | None, str]:
        """The conversation as the model reads it, or why there is none."""
        messages, template = request.get("messages"), self._template
        if template is None:
            return None, _NO_TEMPLATE
        if not isinstance(messages, list) or _is_foreign(request, cast("list[Any]", messages)):
            return None, "the request is not of the chat template's shape: estimated text by text"
        names = {
            key: _token(self._config.get(key)) for key in ("bos_token", "eos_token", "unk_token", "pad_token")
        }
        refused = ""
        for shape in (_with_parts, _with_text):
            shown = [shape(cast("dict[str, Any]", one)) for one in cast("list[Any]", messages)]
            tools = request.get("tools") or None
            try:
                return template(messages=shown, tools=tools, add_generation_prompt=True, **names), ""
            except Exception as error:  # whatever a template's author did not think of
                refused = f"the chat template refuses the request ({error}): estimated text by text"
        return None, refused

    def weigh(self, msg: Msg) -> int:
        """An estimate by characters: it says where to look for a cut, and what fits is measured."""
        return self._estimate.weigh(msg)


def _made(file: str, template: str | None, model: str) -> HuggingFaceTokenCounter:
    return HuggingFaceTokenCounter(file, chat_template=template, model=model)


def _is_foreign(request: Mapping[str, Any], messages: Sequence[Any]) -> bool:
    """Whether the messages are no chat's, or Anthropic's, of whose blocks a template would lose most."""
    if "system" in request or not all(isinstance(one, dict) for one in messages):
        return True
    contents = [one.get("content") for one in cast("list[dict[str, Any]]", messages)]
    parts = [part for content in contents if isinstance(content, list) for part in cast("list[Any]", content)]
    calls = [call for one in messages for call in cast("Sequence[Any]", one.get("tool_calls") or ())]
    if not all(isinstance(found, dict) for found in (*parts, *calls)):
        return True
    return any(part.get("type") in ("tool_use", "tool_result") for part in parts)


def _token(found: Any) -> str:
    """A special token as the config has it: a string or an object."""
    return str(cast("dict[str, Any]", found).get("content", "") if isinstance(found, dict) else found or "")


def _tojson(found: Any, ensure_ascii: bool = False, indent: int | None = None, **_: Any) -> str:
    return json.dumps(found, ensure_ascii=ensure_ascii, indent=indent)


def _some_day(form: str) -> str:
    """Today's date is no input of a count; any day has as many tokens, or nearly so."""
    return date(2026, 11, 21).strftime(form)


def _refuse(reason: str) -> None:
    raise ValueError(reason)


def _with_parts(message: dict[str, Any]) -> dict[str, Any]:
    """A message as templates want it: null content is empty, arguments are objects, media leave no text."""
    shown = {**message, "content": _parts(message.get("content"))}
    if isinstance(message.get("tool_calls"), list):
        shown["tool_calls"] = [_call(cast("dict[str, Any]", one)) for one in message["tool_calls"]]
    return shown


def _with_text(message: dict[str, Any]) -> dict[str, Any]:
    """The same for templates that take one string: its texts, a line each."""
    shown = _with_parts(message)
    if isinstance(shown["content"], list):
        parts = cast("list[dict[str, Any]]", shown["content"])
        shown["content"] = "\n".join(str(part["text"]) for part in parts if "text" in part)
    return shown


def _parts(content: Any) -> Any:
    if not isinstance(content, list):
        return content or ""
    parts = cast("list[dict[str, Any]]", content)
    return [part if "text" in part else {"type": str(part.get("type")).removesuffix("_url")} for part in parts]


def _call(call: dict[str, Any]) -> dict[str, Any]:
    function = cast("dict[str, Any]", call.get("function") or {})
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (TypeError, ValueError):
        arguments = function.get("arguments")
    return {**call, "function": {**function, "arguments": arguments}}
