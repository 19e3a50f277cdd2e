"""`HuggingFaceTokenCounter`: counts tokens with the tokenizer file and the chat template of a local model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Final, Protocol, TypeAlias, cast

import anyio.to_thread

from agentkit.argument_checks import check_option
from agentkit.capabilities.wire_layout import LayoutSource
from agentkit.errors import MissingExtraError, OptionError, TemplateError
from agentkit.jinja_environments.chat_rendering import Rendering, compile_chat, render_chat
from agentkit.jinja_environments.chat_variables import ChatVariables
from agentkit.jinja_environments.functions import create_clock
from agentkit.json_values import as_list, as_object
from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr
from agentkit.tokens.counters import LocalTokenCounter, TokenCount, find_layout
from agentkit.tokens.estimate import TextCounts
from agentkit.tokens.media_tokens import MediaPrices
from agentkit.tokens.request_parts import RequestParts, compact_json
from agentkit.tokens.text_counters import CharacterTokenCounter
from agentkit.tokens.tokenizer_file import read_tokenizer

__all__ = ["ChatTemplateLike", "HuggingFaceTokenCounter"]

_TURN: Final = 5  # tokens that ChatML adds to a message: two markers, two line breaks and the role
_MEDIA: Final = 1_500  # approximate number of tokens of a media item
_CALL: Final = 12  # tokens that a template adds around a tool call or a tool result
_WORD: Final = "Userword"
_NO_TEMPLATE: Final = "no chat template: 5 tokens are assumed for each message in addition to its texts"
_CLOCK: Final = create_clock(datetime(2026, 11, 21))  # with the current date, counts would depend on the day


_Renderer: TypeAlias = Callable[[list[dict[str, Any]]], str]


class ChatTemplateLike(Protocol):
    """Attributes and methods of a `ChatTemplate` that the counter uses."""

    @property
    def special_tokens(self) -> Mapping[str, str]:
        """Texts of special tokens by name."""
        ...

    def choose_source(self, name: str | None, has_tools: bool) -> str:
        """Returns the text of the template for a request with or without tools."""
        ...

    def render_variables(self, source: str, chat: ChatVariables) -> Rendering:
        """Renders messages in the format of OpenAI Chat Completions."""
        ...


class HuggingFaceTokenCounter(LocalTokenCounter):
    """Counter that uses the tokenizer file and the chat template of a local model.

    The counter renders a request with the chat template, and counts the tokens of the rendered text. The request
    must have the wire format of OpenAI Chat Completions (`messages`, `tools`), or be the prompt that a
    `ChatTemplate` wrote. For any other request, or if the template is missing or raises an error, the counter
    counts each text separately and adds up the counts. `TokenCount.estimated` then explains why the count is an
    estimate. Images are counted by the published rule of the model family.

    Attributes:
        file: Path of the `tokenizer.json`.
        model: Name of the model.
    """

    needs_layout: ClassVar[bool] = True

    def __init__(
        self, tokenizer: str | Path, *, chat_template: str | ChatTemplateLike | None = None, model: str = ""
    ) -> None:
        """Checks that the tokenizer file exists and that the packages are installed. `prepare` loads the file.

        Args:
            tokenizer: Path of a `tokenizer.json`, or of its folder. The files `tokenizer_config.json` and
                `chat_template.jinja` in the same folder are read too.
            chat_template: A `ChatTemplate`, or the text of the template. If None, the template is read from the
                folder.
            model: Name of the model, which decides how many tokens an image costs.

        Raises:
            MissingExtraError: A package of the extra `tokens` is not installed.
            OptionError: The tokenizer file does not exist, or `chat_template` has a wrong type.
            TemplateError: The text in `chat_template` is invalid.
        """
        for package in ("tokenizers", "jinja2"):
            if find_spec(package) is None:
                raise MissingExtraError(package, "tokens", "Counting tokens with a tokenizer file")
        if not hasattr(chat_template, "choose_source"):
            advice = "Pass a ChatTemplate, or the text of a template."
            check_option("chat_template", chat_template, str | None, advice)
            if isinstance(chat_template, str):
                compile_chat(chat_template)
        path = Path(tokenizer)
        self.file = path / "tokenizer.json" if path.is_dir() else path
        if not self.file.is_file():
            reason = f"the file {shorten_repr(str(self.file), 200)} does not exist"
            raise OptionError("tokenizer", reason, "Pass the path of a tokenizer.json, or of its folder.")
        self.model = model
        self._given_template = chat_template
        self._loading = Lock()
        self._texts = TextCounts(self._count)
        self._prices = MediaPrices(model)
        self._estimate = CharacterTokenCounter(_MEDIA)

    @property
    def key(self) -> object:
        """Key under which messages cache the results of `weigh`.

        A `CharacterTokenCounter` computes these results, so both counters have the same key.
        """
        return self._estimate.key

    def __reduce__(self) -> tuple[Any, ...]:
        create = partial(type(self), chat_template=self._given_template, model=self.model)
        return (create, (str(self.file),))

    @cached_property
    def _config(self) -> dict[str, Any]:
        file = self.file.with_name("tokenizer_config.json")
        try:
            return as_object(json.loads(file.read_text("utf-8"))) if file.is_file() else {}
        except (OSError, ValueError, RecursionError) as error:
            raise _as_option_error(file, error) from None

    @cached_property
    def _template(self) -> str | None:
        """Text of the chat template in the folder, or None if the model has no template."""
        file = self.file.with_name("chat_template.jinja")
        try:
            source = file.read_text("utf-8") if file.is_file() else self._config.get("chat_template")
        except (OSError, UnicodeDecodeError) as error:
            raise _as_option_error(file, error) from None
        return source if isinstance(source, str) else None

    @cached_property
    def _tokenizer(self) -> Any:
        """The `tokenizers.Tokenizer`. The first access reads the tokenizer file, which is slow."""
        return read_tokenizer(self.file, "tokenizer")

    @cached_property
    def _encode(self) -> Callable[[str], int]:
        """Function that counts the tokens of a text."""
        tokenizer = self._tokenizer

        def encode(text: str) -> int:
            # Lone surrogates are replaced, because the tokenizer refuses them.
            encodable = text if text.isascii() else text.encode("utf-8", "replace").decode()
            try:
                return len(tokenizer.encode(encodable, add_special_tokens=False).ids)
            except Exception as error:  # the package tokenizers has no class for its errors
                reason = f"the tokenizer cannot encode the text {shorten_repr(text, 60)} ({error})"
                raise OptionError("tokenizer", reason, "Pass another tokenizer.") from None

        return encode

    @cached_property
    def _special(self) -> re.Pattern[str] | None:
        """Pattern that matches special tokens, which separate a rendered conversation into pieces.

        None if the tokenizer has no special tokens. Also None if the token counts of the pieces do not add up to
        the token count of the whole text. For example, a tokenizer may add a token at the start of each text.
        """
        special = [token for token in self._tokenizer.get_added_tokens_decoder().values() if token.special]
        words = [token.content for token in special if not (token.lstrip or token.rstrip or token.single_word)]
        if not words:
            return None
        probe = " Hello there.\n\nHow are you? "
        expected = 2 * self._encode(probe) + 2 + self._encode("\n")
        for word in words[:64]:
            if self._encode(f"{probe}{word}{probe}{word}\n") != expected:
                return None
        return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))

    def _count(self, text: str) -> int:
        return self._encode(text)

    async def prepare(self) -> None:
        """Loads the tokenizer file and the chat template in a worker thread."""
        await anyio.to_thread.run_sync(self._load)

    def _load(self) -> None:
        with self._loading:
            _ = (self._encode, self._special, self._template)

    async def count(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """Returns `measure(request, provider)`.

        `measure` runs in a worker thread, because counting a large request takes seconds.
        """
        return await anyio.to_thread.run_sync(self.measure, request, provider)

    def measure(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """Returns the number of tokens of a request.

        `provider` is the provider that the request is for, or its formatter or `WireLayout`.

        Raises:
            OptionError: `provider` is missing, or a file of the tokenizer cannot be read.
        """
        self._load()
        layout = find_layout(self, provider)
        if layout.is_rendered:
            return TokenCount(self._count_pieces(str(request.get(layout.turns))))
        parts = RequestParts.of(request, layout)
        total, reasons = self._prices.total(parts.media)
        rendered, reason = self._render(request)
        if rendered is None:
            total += sum(map(self._texts.__getitem__, parts.texts)) + _TURN * parts.turns + _CALL * parts.calls
            total += sum(map(self._count, map(compact_json, (*parts.tools, *parts.settings))))
            return TokenCount(total, (*reasons, reason))
        return TokenCount(total + self._count_pieces(rendered), reasons)

    def _count_pieces(self, rendered: str) -> int:
        """Counts the tokens of a rendered conversation.

        Texts between special tokens are counted separately, so that their counts can be cached.
        """
        if self._special is None:
            return self._texts[rendered]
        pieces = self._special.split(rendered)
        return len(pieces) - 1 + sum(map(self._texts.__getitem__, pieces))

    def _render(self, request: Mapping[str, Any]) -> tuple[str | None, str]:
        """Renders a request with the chat template. Returns None and a reason if the rendering fails."""
        messages, tools = request.get("messages"), request.get("tools") or None
        render = self._find_renderer(tools)
        if render is None:
            return None, _NO_TEMPLATE
        if not isinstance(messages, list) or _is_foreign(request, cast("list[Any]", messages)):
            return None, "the chat template cannot render this wire format; each text was counted separately"
        reason = ""
        for convert in dict.fromkeys((_choose_conversion(render), _with_text)):
            try:
                return render([convert(message) for message in cast("list[dict[str, Any]]", messages)]), ""
            except TemplateError as error:
                reason = f"the chat template raised an error ({error.reason}); each text was counted separately"
        return None, reason

    def _find_renderer(self, tools: list[dict[str, Any]] | None) -> _Renderer | None:
        """Returns a function that renders messages with the chat template, or None if there is no template."""
        given = self._given_template
        render: Callable[[str, ChatVariables], Rendering] = render_chat
        if given is None or isinstance(given, str):
            names = ("bos_token", "eos_token", "unk_token", "pad_token")
            tokens: Mapping[str, str] = {name: _read_token(self._config.get(name)) for name in names}
            source = given or self._template
        else:
            tokens, render = given.special_tokens, given.render_variables
            source = given.choose_source(None, tools is not None)
        if source is None:
            return None
        others = {**tokens, "strftime_now": _CLOCK}
        return lambda messages: render(source, ChatVariables(messages, tools, None, True, others)).text

    def weigh(self, msg: Msg) -> int:
        """Estimates the number of tokens of a message from the characters of its texts.

        A budget uses the estimate to decide how many messages to omit.
        """
        return self._estimate.weigh(msg)


def _is_foreign(request: Mapping[str, Any], messages: Sequence[Any]) -> bool:
    """Returns True if a request does not have the wire format of OpenAI Chat Completions.

    A chat template would omit content of such a request, and the count would be too low.
    """
    if "system" in request or not all(isinstance(message, dict) for message in messages):
        return True
    contents = [message.get("content") for message in cast("list[dict[str, Any]]", messages)]
    parts = [part for content in contents if isinstance(content, list) for part in cast("list[Any]", content)]
    calls = [call for message in messages for call in as_list(message.get("tool_calls"))]
    if not all(isinstance(item, dict) for item in (*parts, *calls)):
        return True
    return any(part.get("type") in ("tool_use", "tool_result") for part in parts)


def _as_option_error(file: Path, error: Exception) -> OptionError:
    reason = f"the file {shorten_repr(str(file), 200)} cannot be read ({error})"
    return OptionError("tokenizer", reason, "Download the file again.")


def _read_token(token: Any) -> str:
    """Returns the text of a special token, which is a string or an object in `tokenizer_config.json`."""
    return str(cast("dict[str, Any]", token).get("content", "") if isinstance(token, dict) else token or "")


def _choose_conversion(render: _Renderer) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Returns the function that converts messages to the content that a template accepts: text, parts, or both."""
    text = _render_word(render, _WORD)
    parts = _render_word(render, [{"type": "text", "text": _WORD}])
    if _WORD not in text:
        return _with_only_parts if _WORD in parts else _with_parts
    # A template that expects only text writes a list of parts in Python's notation.
    return _with_text if _WORD not in parts or f"'{_WORD}'" in parts else _with_parts


def _render_word(render: _Renderer, content: Any) -> str:
    try:
        return render([{"role": "user", "content": content}])
    except TemplateError:
        return ""


def _with_parts(message: dict[str, Any]) -> dict[str, Any]:
    """Converts a message of a request to the form that chat templates expect.

    Null content becomes an empty text, the JSON text of arguments becomes an object, and media data is removed.
    """
    converted = {**message, "content": _convert_content(message.get("content"))}
    if isinstance(message.get("tool_calls"), list):
        converted["tool_calls"] = [_convert_call(call) for call in message["tool_calls"]]
    return converted


def _with_text(message: dict[str, Any]) -> dict[str, Any]:
    """Converts a message for chat templates that expect a string as content. Joins the texts with line breaks."""
    converted = _with_parts(message)
    if isinstance(converted["content"], list):
        parts = cast("list[dict[str, Any]]", converted["content"])
        converted["content"] = "\n".join(str(part["text"]) for part in parts if "text" in part)
    return converted


def _with_only_parts(message: dict[str, Any]) -> dict[str, Any]:
    """Converts a message for chat templates that expect a list of parts as content."""
    converted = _with_parts(message)
    if isinstance(converted["content"], str):
        content = converted["content"]
        converted["content"] = [{"type": "text", "text": content}] if content else []
    return converted


def _convert_content(content: Any) -> Any:
    if not isinstance(content, list):
        return content or ""
    parts = cast("list[dict[str, Any]]", content)
    return [part if "text" in part else {"type": str(part.get("type")).removesuffix("_url")} for part in parts]


def _convert_call(call: dict[str, Any]) -> dict[str, Any]:
    function = as_object(call.get("function"))
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (TypeError, ValueError):
        arguments = function.get("arguments")
    return {**call, "function": {**function, "arguments": arguments}}
