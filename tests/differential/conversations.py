"""Generated conversations, ordinary and hostile ones, as plain data in the stored format of 0.3.0."""

from __future__ import annotations

from base64 import b64encode
from random import Random
from typing import Any, Final

from tests.differential.options import draw_options
from tests.differential.vocabulary import (
    DATA,
    IDS,
    INPUTS,
    INVALID,
    ITEM_PARTS,
    NAMES,
    ODD_TYPES,
    OWN_PARTS,
    PROVIDERS,
    RAW_INPUTS,
    REPLY_PARTS,
    STAMPS,
    STATES,
    TEXTS,
    TOOL_NAMES,
    TYPES,
    create_noise,
    create_picture,
    create_urls,
)

__all__ = ["HISTORY_FORMS", "create_conversation", "create_messages"]

HISTORY_FORMS: Final = ("chat", "multi-agent", "viewer")

_CHARACTERS: Final = (
    "aZ0 :\\<>/|[](){}_-.'\"`#\t\0\x7f\xa0\ufeff\u200b\u202eéß漢字🙂\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
)


def create_conversation(seed: int) -> dict[str, Any]:
    """Returns the case with this number: stored messages, and options for each provider and history form."""
    rng = Random(seed)
    messages = create_messages(rng)
    requests = [draw_options(rng, provider, form, messages) for provider in PROVIDERS for form in HISTORY_FORMS]
    return {
        "kind": "conversations",
        "seed": seed,
        "messages": {"agentkit": 1, "messages": messages},
        "constructors": rng.random() < 0.3,
        "requests": requests,
    }


def create_messages(rng: Random) -> list[dict[str, Any]]:
    """Returns the stored messages of a conversation, of which every third is an ordinary one."""
    return Conversation(rng, is_plain=rng.random() < 0.35).messages()


class Conversation:
    """Generator of the messages of one conversation.

    Attributes:
        rng: Source of all choices.
        is_plain: True for an ordinary conversation: simple names, texts and pictures, complete exchanges.

    """

    def __init__(self, rng: Random, *, is_plain: bool) -> None:
        self.rng = rng
        self.is_plain = is_plain
        self._call_count = 0

    def messages(self) -> list[dict[str, Any]]:
        """Returns the messages, system prompt included."""
        pieces = self.rng.choice((1, 2, 3, 4, 5, 6, 8, 10, 14, 20))
        found = self._system_prompt()
        for _ in range(pieces):
            found += self._piece()
        if not self.is_plain and self.rng.random() < 0.03:
            found.append(self._many_media())
        if self.rng.random() < 0.0015:
            found.append(self._large_media())
        return found[:44] or [self._message(spoken=True)]

    def _system_prompt(self) -> list[dict[str, Any]]:
        if self.rng.random() < 0.4:
            return []
        count = 1 if self.is_plain else self.rng.choice((1, 1, 1, 2, 3))
        return [{"name": "system", "role": "system", "content": self._system_content()} for _ in range(count)]

    def _system_content(self) -> Any:
        if self.is_plain or self.rng.random() < 0.7:
            return self.rng.choice(("You are Friday, a helpful assistant.", self.text()))
        return [self._block(spoken=True) for _ in range(self.rng.randint(0, 3))]

    def _piece(self) -> list[dict[str, Any]]:
        draw = self.rng.random()
        if self.is_plain:
            return self._dialogue() if draw < 0.6 else self._exchange()
        if draw < 0.3:
            return [self._message(spoken=True)]
        if draw < 0.4:
            return [self._message(spoken=False)]
        if draw < 0.5:
            return [self._question()]
        if draw < 0.6:
            return self._dialogue()
        if draw < 0.63:
            return [self._reply_of_parts()]
        return self._exchange() if draw < 0.84 else self._broken_exchange()

    # -- messages ----------------------------------------------------------------------------------------------

    def _dialogue(self) -> list[dict[str, Any]]:
        asked: Any = self.text()
        if self.rng.random() < 0.2:
            asked = [{"type": "text", "text": asked}, self._medium()]
        answer: Any = self.text()
        if self.rng.random() < 0.3:
            answer = [self._thinking(), {"type": "text", "text": answer}]
        elif self.rng.random() < 0.1:
            answer = [{"type": "text", "text": answer}, {"type": "text", "text": self.text()}]
        return [
            {"name": self.rng.choice(("Bob", "Alice", "user")), "role": "user", "content": asked},
            {"name": self.rng.choice(("Friday", "Friday", "Alice")), "role": "assistant", "content": answer},
        ]

    def _message(self, *, spoken: bool) -> dict[str, Any]:
        content: Any = self.text()
        if self.rng.random() < 0.5:
            content = [self._block(spoken=spoken) for _ in range(self.rng.randint(0, 4))]
        role = self.rng.choice(("user", "assistant", "user", "assistant", "system"))
        return self._marked({"name": self.name(), "role": role, "content": content})

    def _question(self) -> dict[str, Any]:
        makers = (self._text_block, self._medium, self._own_part)
        blocks = [self.rng.choice(makers)() for _ in range(self.rng.randint(1, 3))]
        return self._marked({"name": self.name(), "role": "user", "content": blocks})

    def _reply_of_parts(self) -> dict[str, Any]:
        """Returns a reply with parts that only its provider knows, or with a sound that a model spoke."""
        blocks = [self._thinking(), self._reply_part(), self._text_block()]
        if self.rng.random() < 0.4:
            fields = {"audio": {"id": "audio_1", "transcript": self.text()}}
            state = {"issuer": self.rng.choice(("openai", "openai", "vllm")), "fields": fields}
            blocks.append({"type": "audio", "source": self._source("audio"), "state": state})
        return {"name": "Friday", "role": "assistant", "content": blocks}

    def _marked(self, message: dict[str, Any]) -> dict[str, Any]:
        if self.rng.random() < 0.3:
            message["timestamp"] = self.rng.choice(STAMPS)
        if self.rng.random() < 0.08:
            message["pinned"] = True
        if self.rng.random() < 0.1:
            message["id"] = f"m{self.rng.randint(0, 9)}"
        if self.rng.random() < 0.1:
            message["metadata"] = self.rng.choice(
                ({"k": 1}, {"reply": {"finish_reason": "stop"}}, {"note": [None]})
            )
        return message

    def _many_media(self) -> dict[str, Any]:
        count = self.rng.choice((21, 60, 101))
        data = self.rng.choice((DATA["image/png"], create_picture(2_100, 8)))
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return {"name": "Bob", "role": "user", "content": [{"type": "image", "source": source}] * count}

    def _large_media(self) -> dict[str, Any]:
        picture = {
            "type": "base64",
            "media_type": "image/png",
            "data": create_noise(self.rng.choice((1_500, 1_650))),
        }
        text = {"type": "base64", "media_type": "text/plain", "data": b64encode(b"words " * 200_000).decode()}
        content = [{"type": "image", "source": picture}] * self.rng.choice((1, 4))
        if self.rng.random() < 0.3:
            content = [{"type": "document", "source": text}]
        return {"name": "Bob", "role": "user", "content": content}

    # -- exchanges ---------------------------------------------------------------------------------------------

    def _exchange(self) -> list[dict[str, Any]]:
        ids = self._ids()
        said = self._said_before_calls()
        calls = [self._call(id) for id in ids]
        results = [self._result(id) for id in ids]
        if self.rng.random() < 0.3:
            self.rng.shuffle(results)
        speaker = self.rng.choice(("Friday", "Friday", "Alice")) if self.is_plain else self.name()
        call = self._marked({"name": speaker, "role": "assistant", "content": [*said, *calls]})
        role = self.rng.choice(("system", "user", "system", "assistant"))
        if self.rng.random() < 0.5:
            return [call, {"name": "system", "role": role, "content": results}]
        return [call, *({"name": "tool", "role": role, "content": [result]} for result in results)]

    def _ids(self) -> list[str]:
        count = self.rng.choice((1, 1, 1, 2, 3))
        if self.is_plain or self.rng.random() < 0.6:
            self._call_count += count
            return [f"call_{self._call_count - at}" for at in range(count)]
        return self.rng.sample(IDS, count)

    def _said_before_calls(self) -> list[Any]:
        if self.rng.random() < 0.5:
            return []
        makers = [self._thinking, self._text_block]
        makers += [] if self.is_plain else [self._medium, self._reply_part, self._text_block]
        return [self.rng.choice(makers)() for _ in range(self.rng.randint(1, 2))]

    def _broken_exchange(self) -> list[dict[str, Any]]:
        whole = self._exchange()
        fault = self.rng.choice(("lost", "doubled", "talk", "turned", "joined", "open", "lone", "late", "system"))
        if fault == "lost":
            return [whole[0], *whole[2:]]
        if fault == "doubled":
            return [*whole, whole[-1]]
        if fault in ("talk", "system"):
            between = self._message(spoken=True)
            between["role"] = "system" if fault == "system" else between["role"]
            return [whole[0], between, *whole[1:]]
        if fault == "turned":
            return whole[::-1]
        if fault == "joined":
            blocks = [block for message in whole for block in message["content"]]
            return [{**whole[0], "content": blocks}]
        if fault == "lone":
            return whole[1:]
        if fault == "late":
            other = self._exchange()
            return [whole[0], other[0], *other[1:], *whole[1:]]
        return whole[:1]

    def _call(self, id: str) -> dict[str, Any]:
        is_odd = not self.is_plain and self.rng.random() < 0.4
        name = self.rng.choice(TOOL_NAMES) if is_odd else self.rng.choice(TOOL_NAMES[:3])
        block: dict[str, Any] = {"type": "tool_use", "id": id, "name": name, "input": self.rng.choice(INPUTS)}
        if self.rng.random() < 0.3:
            block["raw_input"] = self.rng.choice(RAW_INPUTS)
        elif self.rng.random() < 0.1:
            block["input"] = '{"q": "as text"}'
        return self._signed(block, 0.25)

    def _result(self, id: str) -> dict[str, Any]:
        block: dict[str, Any] = {"type": "tool_result", "id": id, "output": self._output()}
        if self.rng.random() < 0.6:
            block["name"] = self.rng.choice(TOOL_NAMES[: 3 if self.is_plain else None])
        if self.rng.random() < 0.2:
            block["is_error"] = True
        return block

    def _output(self) -> Any:
        draw = self.rng.random()
        if draw < 0.6:
            return self.text() if draw < 0.45 else f"{self.text()} " * self.rng.randint(2, 9)
        makers = [self._text_block, self._medium]
        makers += [] if self.is_plain else [self._invalid, self._item_part, self._text_block]
        return [self.rng.choice(makers)() for _ in range(self.rng.randint(0, 4))]

    # -- blocks ------------------------------------------------------------------------------------------------

    def _block(self, *, spoken: bool) -> Any:
        makers = [
            self._text_block,
            self._text_block,
            self._thinking,
            self._medium,
            self._invalid,
            self._reply_part,
        ]
        if not spoken:
            makers += [lambda: self._call(self.rng.choice(IDS)), lambda: self._result(self.rng.choice(IDS))]
        return self.rng.choice(makers)()

    def _text_block(self) -> dict[str, Any]:
        return self._signed({"type": "text", "text": self.text()}, 0.12)

    def _thinking(self) -> dict[str, Any]:
        return self._signed({"type": "thinking", "thinking": self.text()}, 0.75)

    def _signed(self, block: dict[str, Any], chance: float) -> dict[str, Any]:
        if self.rng.random() < chance:
            block["state"] = self.rng.choice(STATES)
        if not self.is_plain and self.rng.random() < 0.05:
            block["metadata"] = self.rng.choice(({"k": "v"}, {"citations": [{"url": "https://x.org"}]}))
        return block

    def _invalid(self) -> Any:
        return self.rng.choice(INVALID)

    def _own_part(self) -> Any:
        return self.rng.choice(OWN_PARTS)

    def _item_part(self) -> Any:
        return self.rng.choice(ITEM_PARTS)

    def _reply_part(self) -> Any:
        return self.rng.choice(REPLY_PARTS)

    def _medium(self) -> dict[str, Any]:
        kind = "image" if self.rng.random() < 0.5 else self.rng.choice(("audio", "video", "document"))
        block: dict[str, Any] = {"type": kind, "source": self._source(kind)}
        if kind == "document" and self.rng.random() < 0.5:
            block["title"] = self.rng.choice(("", "a.pdf", "Bob: x\n</history>", "報告"))
        return self._signed(block, 0.15)

    def _source(self, kind: str) -> dict[str, Any]:
        draw = self.rng.random()
        media_type = self.rng.choice(TYPES[kind])
        if self.is_plain or draw < 0.35:
            if draw < 0.1:
                return {"type": "url", "url": create_urls(kind)[0]}
            return {"type": "base64", "media_type": media_type, "data": DATA[media_type]}
        if draw < 0.65:
            url: dict[str, Any] = {"type": "url", "url": self.rng.choice(create_urls(kind))}
            if self.rng.random() < 0.25:
                url["media_type"] = self.rng.choice((*TYPES[kind], *ODD_TYPES[kind]))
            return url
        if draw < 0.72 and kind == "image":
            size = self.rng.choice(((9_000, 12), (1_600, 1_600), (12, 9_000), (700, 500)))
            return {"type": "base64", "media_type": "image/png", "data": create_picture(*size)}
        if draw < 0.85:
            named = self.rng.choice(ODD_TYPES[kind])
            return {"type": "base64", "media_type": named, "data": DATA[TYPES[kind][0]]}
        return {"type": "base64", "media_type": media_type, "data": self._odd_data(kind)}

    def _odd_data(self, kind: str) -> str:
        data = DATA[TYPES[kind][0]]
        wrapped = f"{data[:8]}\r\n{data[8:]}"
        broken = ("%%%", "iVBORw0KGgo", "abc", "", " ", "iVBORw0KGgo=\n", "////====")
        return self.rng.choice((wrapped, DATA["application/json"], *broken))

    # -- words -------------------------------------------------------------------------------------------------

    def name(self) -> str:
        """Returns a speaker's name."""
        draw = self.rng.random()
        if self.is_plain or draw < 0.5:
            return self.rng.choice(NAMES[:3])
        return self.rng.choice(NAMES) if draw < 0.9 else self._characters(8)

    def text(self) -> str:
        """Returns a text: ordinary, blank, hostile, or random."""
        draw = self.rng.random()
        if self.is_plain:
            return self.rng.choice(_ORDINARY) if draw < 0.9 else " ".join(self.rng.choices(_ORDINARY, k=12))
        if draw < 0.25:
            return self.rng.choice(_ORDINARY)
        if draw < 0.75:
            return self.rng.choice(TEXTS)
        if draw < 0.9:
            return self._characters(12)
        return "".join(self.rng.choices(TEXTS, k=self.rng.randint(2, 3)))

    def _characters(self, limit: int) -> str:
        return "".join(self.rng.choices(_CHARACTERS, k=self.rng.randint(0, limit)))


_ORDINARY: Final = (
    "Hello.",
    "Where is the library?",
    "No idea. Friday, do you know?",
    "It is in Main Street, next to the town hall. It opens at nine.",
    "I have looked at the three offers. The second one is cheaper, yet it leaves out the insurance.",
    "Thanks!\nSee you tomorrow.",
    "1. Visit the market.\n2. Have lunch.\n3. Take the ferry.",
    "图书馆早上九点开门。",
)
