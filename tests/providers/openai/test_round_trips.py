"""Logs of OpenAI's APIs are restored for the same API. For other APIs, some content is a loss."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agentkit import (
    Disposition,
    LossError,
    Msg,
    OptionError,
    Plan,
    ToolResultBlock,
    ToolUseBlock,
    load_native,
    load_provider,
)
from agentkit_openai import OpenAIChatFormatter, parse_response
from tests.cases import each_case
from tests.providers import PROVIDERS, WAV

QUESTION: dict[str, Any] = {"role": "user", "content": "And?"}
PICTURE = {"type": "image_url", "image_url": {"url": "https://x.org/a.png", "detail": "high"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}

CHAT_LOGS: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": [{"type": "text", "text": "Hi."}, {"type": "file", "file": {"file_id": "f"}}]}],
    [{"role": "user", "content": [PICTURE]}],
    [QUESTION, {"role": "assistant", "audio": {"id": "audio_1"}}, QUESTION],
    [QUESTION, {"role": "assistant", "content": None, "refusal": "No."}, QUESTION],
    [QUESTION, {"role": "assistant", "content": "Well.", "refusal": "No."}, QUESTION],
    [QUESTION, {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, QUESTION],
    [QUESTION, {"role": "assistant", "content": None, "tool_calls": [CALL]},
     {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x"}, {"type": "new", "of": 1}]}],
]  # fmt: skip
QUESTION_ITEM: dict[str, Any] = {"type": "message", **QUESTION}
ITEM_LOGS: list[list[dict[str, Any]]] = [
    [{"type": "message", "role": "user",
      "content": [{"type": "input_text", "text": "Hi."}, {"type": "input_file", "file_id": "f"}]}],
    [{"type": "message", "role": "user",
      "content": [{"type": "input_image", "file_id": "f", "detail": "low"}]}],
    [{"type": "message", "role": "user",
      "content": [{"type": "input_image", "image_url": "https://x.org/a.png", "detail": "high"}]}],
    [QUESTION_ITEM,
     {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, QUESTION_ITEM],
    [QUESTION_ITEM, {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
     {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_file", "file_id": "f"}]}],
]  # fmt: skip
SAME_FORMAT: dict[str, list[dict[str, Any]]] = {
    "dashscope-compatible": [
        {"type": "video_url", "video_url": {"url": "https://x.org/a.mp4"}, "fps": 2},
        {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}, "min_pixels": 3_136},
        {"type": "video", "video": ["https://x.org/1.png", "https://x.org/2.png"]},
    ],
    "vllm": [{"type": "image_url", "image_url": {"url": "https://x.org/a.png", "detail": "low"}, "uuid": "cat"}],
}


def format_log(provider: str, log: object, on_loss: Any = "raise") -> Plan:
    return load_provider(provider).chat_formatter(on_loss=on_loss).lower(load_native(provider, log))


@each_case("log", CHAT_LOGS)
def test_a_log_of_chat_completions_is_restored(log: list[dict[str, Any]]) -> None:
    assert format_log("openai", log).request["messages"] == log


@each_case("log", ITEM_LOGS)
def test_a_log_of_responses_is_restored(log: list[dict[str, Any]]) -> None:
    assert format_log("openai-responses", {"input": log}).request["input"] == log


@pytest.mark.parametrize("provider", SAME_FORMAT)
def test_keys_of_media_parts_are_restored(provider: str) -> None:
    log = [{"role": "user", "content": SAME_FORMAT[provider]}]
    assert format_log(provider, log).request["messages"] == log


@pytest.mark.parametrize(
    ("provider", "log"),
    [("openai", CHAT_LOGS[0]), ("openai-responses", ITEM_LOGS[0]), ("openai-responses", ITEM_LOGS[4])],
)
def test_a_file_id_of_a_user_is_a_loss_for_other_apis(provider: str, log: list[dict[str, Any]]) -> None:
    msgs = load_native(provider, log)
    plan = load_provider("anthropic").chat_formatter().lower(msgs)
    assert [reason for _, reason in plan.ledger.losses] == [f"block in a format that only {provider} accepts"]
    assert f"[part left out because only {provider} accepts its format]" in str(plan.request)
    with pytest.raises(LossError, match="block in a format that only"):
        load_provider("anthropic").chat_formatter(on_loss="raise").lower(msgs)


def test_keys_of_an_image_are_omitted_for_other_apis_without_a_loss() -> None:
    msgs = load_native("openai", CHAT_LOGS[1])
    plan = load_provider("anthropic").chat_formatter(on_loss="raise").lower(msgs)
    assert "detail" not in str(plan.request)
    (entry,) = plan.ledger.entries
    assert entry.disposition is Disposition.CARRIED
    assert "openai" in entry.reason


def test_detail_is_sent_to_both_apis_of_openai() -> None:
    plan = load_provider("openai-responses").chat_formatter().lower(load_native("openai", CHAT_LOGS[1]))
    assert plan.request["input"] == ITEM_LOGS[2]


OPENAI = ("openai", "openai-responses")


@each_case("target", PROVIDERS)
@each_case("source", [*OPENAI, "deepseek", "dashscope-compatible", "vllm"])
def test_a_developer_message_is_a_system_message_for_other_apis(source: str, target: str) -> None:
    log = [{"role": "developer", "content": "Be brief."}, QUESTION]
    msgs = load_native(source, log)
    assert (msgs[0].role, msgs[0].name, msgs[0].text) == ("system", "system", "Be brief.")
    plan = load_provider(target).chat_formatter(on_loss="raise").lower(msgs)
    own = source in OPENAI and target in OPENAI
    assert ("developer" in str(plan.request)) is own
    assert "Be brief." in str(plan.request)
    (entry, _) = plan.ledger.entries
    assert ("message.role omitted: the API has no field for it" in entry.details) is not own


@pytest.mark.parametrize("provider", OPENAI)
@pytest.mark.parametrize("multi", [False, True])
def test_a_developer_message_is_restored_at_any_position(provider: str, multi: bool) -> None:
    kind = "text" if provider == "openai" else "input_text"
    parts = [{"type": kind, "text": "Be brief."}, {"type": kind, "text": "And kind."}]
    log: list[dict[str, Any]] = [
        {"role": "system", "content": "You are Friday."},
        {"role": "developer", "content": parts},
        QUESTION,
    ]
    log.append({"role": "developer", "content": "Be long."})
    package = load_provider(provider)
    turns = (
        (package.multi_agent_formatter if multi else package.chat_formatter)()
        .lower(load_native(provider, log))
        .request
    )
    messages = turns.get("messages") or turns["input"]
    beside: dict[str, Any] = {} if provider == "openai" else {"type": "message"}
    assert [messages[0], messages[1], messages[3]] == [{**beside, **log[index]} for index in (0, 1, 3)]


@pytest.mark.parametrize("provider", ["deepseek", "vllm", "dashscope-compatible"])
def test_vendors_without_custom_tools_get_function_calls(provider: str) -> None:
    call = {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    log = [QUESTION, {"role": "assistant", "content": None, "tool_calls": [call]}]
    log.append({"role": "tool", "tool_call_id": "c1", "content": "x"})
    (sent_call,) = format_log(provider, log).request["messages"][1]["tool_calls"]
    assert sent_call.pop("id") == format_log(provider, log).request["messages"][2]["tool_call_id"]
    assert sent_call == {"type": "function", "function": {"name": "sh", "arguments": '{"input":"ls"}'}}


# -- audio replies ---------------------------------------------------------------------------------------

AUDIO_REPLY = {"id": "audio_1", "data": WAV, "transcript": "Bob: a cat.", "expires_at": 1_800_000_000}
REPLY: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None, "audio": AUDIO_REPLY}
CONVERSATION = [QUESTION, REPLY, QUESTION]


@pytest.mark.parametrize("model", ["gpt-6", "gpt-audio"])
def test_a_loaded_or_parsed_audio_reply_is_sent_by_its_id(model: str) -> None:
    read = parse_response({"choices": [{"message": REPLY, "finish_reason": "stop"}]})
    asked = load_native("openai", [QUESTION])
    for msgs in (load_native("openai", CONVERSATION), [*asked, read, *asked]):
        plan = load_provider("openai").chat_formatter(model, on_loss="raise").lower(msgs)
        assert plan.request["messages"] == [QUESTION, {"role": "assistant", "audio": {"id": "audio_1"}}, QUESTION]
        assert plan.ledger.entries[1].reason == "audio sent as the id under which the provider stores the audio"


@each_case("target", [name for name in PROVIDERS if name != "openai"])
def test_other_apis_get_the_transcript_of_an_audio_reply(target: str) -> None:
    plan = format_for(target, load_native("openai", CONVERSATION))
    assert "audio_1" not in str(plan.request)
    if target == "gemini":  # Gemini accepts audio in turns of the model
        assert WAV in str(plan.request)
        return
    assert "Bob: a cat." in str(plan.request)
    assert WAV not in str(plan.request)
    entry = plan.ledger.entries[1]
    assert (entry.disposition, entry.lost) == (Disposition.DESCRIBED, False)
    assert entry.reason == "audio sent as its transcript; data issued by openai, such as a signature, was omitted"


def test_the_transcript_is_sent_if_the_id_is_of_another_issuer_or_may_have_expired() -> None:
    log = [QUESTION, {"role": "assistant", "content": "Bob: a cat."}, QUESTION]
    foreign = load_native("vllm", CONVERSATION)
    assert format_for("openai", foreign).request["messages"] == log
    assert format_for("vllm", foreign).request["messages"] == log
    formatter = OpenAIChatFormatter(on_loss="raise", spoken_replies="transcript")
    assert formatter.lower(load_native("openai", CONVERSATION)).request["messages"] == log
    with pytest.raises(OptionError, match="spoken_replies"):
        OpenAIChatFormatter(spoken_replies=cast("Any", "both"))


def test_only_the_first_of_two_audio_replies_in_a_turn_is_sent_by_id() -> None:
    asked = load_native("openai", [QUESTION])
    (sound,) = load_native("openai", CONVERSATION)[1].media
    msgs = [*asked, Msg("assistant", [sound, sound], "assistant"), *asked]
    plan = load_provider("openai").chat_formatter(on_loss="raise").lower(msgs)
    turn = plan.request["messages"][1]
    assert turn == {"role": "assistant", "content": "Bob: a cat.", "audio": {"id": "audio_1"}}
    assert [entry.disposition for entry in plan.ledger.entries[1:3]] == [
        Disposition.CARRIED,
        Disposition.DESCRIBED,
    ]


def test_an_audio_reply_in_a_frame_is_a_transcript() -> None:
    plan = (
        load_provider("openai").multi_agent_formatter(on_loss="raise").lower(load_native("openai", CONVERSATION))
    )
    (turn,) = plan.request["messages"]
    assert [part["text"] for part in turn["content"]][2:4] == [
        "\nassistant:",
        "\n[audio, as its transcript]\n  Bob: a cat.",
    ]


def test_an_audio_reply_without_a_transcript_is_a_loss_where_audio_is_not_accepted() -> None:
    silent = {**REPLY, "audio": {"id": "audio_1", "data": WAV}}
    plan = load_provider("anthropic").chat_formatter().lower(load_native("openai", [QUESTION, silent, QUESTION]))
    assert [reason for _, reason in plan.ledger.losses] == ["Anthropic Messages does not accept audio"]


def format_for(target: str, msgs: list[Msg]) -> Plan:
    return load_provider(target).chat_formatter(on_loss="raise").lower(msgs)


def test_an_audio_reply_in_a_tool_result_is_data_or_a_transcript() -> None:
    (sound,) = load_native("openai", CONVERSATION)[1].media
    call = Msg("Friday", [ToolUseBlock("c1", "listen", {})], "assistant")
    msgs = [Msg("Bob", "And?", "user"), call, Msg("system", [ToolResultBlock("c1", "listen", [sound])], "system")]
    words = OpenAIChatFormatter(on_loss="raise").lower(msgs).request["messages"]
    assert words[-1]["content"] == "[audio, as its transcript]\nBob: a cat."
    promoted = OpenAIChatFormatter("gpt-audio", on_loss="raise").lower(msgs).request["messages"]
    assert "audio_1" not in str(promoted)


LOG_WITH_KEYS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind.", "weight": 1},
    {"role": "user", "content": "Hi.", "tags": ["a"]},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_details": [{"data": "x"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "A cat.", "took": 3},
    {"role": "user", "content": [PICTURE], "tags": {}},
    {"role": "assistant", "content": "It is", "mood": False},
]
"""Log with further keys in messages of each role."""


@pytest.mark.parametrize("provider", ["openai", "deepseek", "vllm", "dashscope-compatible"])
def test_further_keys_of_a_message_are_restored_without_a_loss(provider: str) -> None:
    plan = format_log(provider, LOG_WITH_KEYS, on_loss="describe")
    own = {"role", "content", "tool_calls", "tool_call_id", "reasoning_content"}

    def list_further_keys(log: list[dict[str, Any]]) -> list[dict[str, Any]]:
        expected = ({key: item for key, item in message.items() if key not in own} for message in log)
        return [keys for keys in expected if keys]

    accepts_images = load_provider(provider).chat_formatter().capabilities().media.image is not None
    assert list_further_keys(plan.request["messages"]) == list_further_keys(
        [*LOG_WITH_KEYS[:4], *LOG_WITH_KEYS[4 if accepts_images else 5 :]]
    )
    assert not any("message." in detail for entry in plan.ledger.entries for detail in entry.details)


@each_case("target", ["openai-responses", "anthropic", "gemini", "ollama", "dashscope", "deepseek"])
def test_further_keys_of_a_message_are_omitted_for_other_apis_and_recorded(target: str) -> None:
    plan = (
        load_provider(target)
        .chat_formatter(on_loss="describe")
        .lower(load_native("dashscope-compatible", LOG_WITH_KEYS))
    )
    sent = str(plan.request)
    recorded = " ".join(detail for entry in plan.ledger.entries for detail in entry.details)
    for key in ("weight", "tags", "reasoning_details", "took", "mood"):
        assert f"'{key}'" not in sent
        assert f"message.{key} omitted: the API has no field for it" in recorded


@pytest.mark.parametrize(("provider", "key"), [("dashscope-compatible", "partial"), ("deepseek", "prefix")])
def test_keys_for_continued_text_are_sent_only_with_the_last_message(provider: str, key: str) -> None:
    log: list[dict[str, Any]] = [QUESTION, {"role": "assistant", "content": "It is", key: True}]
    plan = format_log(provider, log)
    assert plan.request["messages"][-1].items() >= log[-1].items()
    assert [detail for entry in plan.ledger.entries for detail in entry.details] == []
    followed = format_log(provider, [*log, QUESTION])
    assert key not in str(followed.request)
    elsewhere = load_provider("vllm").chat_formatter().lower(load_native(provider, log))
    assert key not in str(elsewhere.request)
    assert [detail for entry in elsewhere.ledger.entries for detail in entry.details] == [
        f"message.{key} omitted: the API has no field for it"
    ]


def test_keys_for_continued_text_work_in_both_apis_of_dashscope() -> None:
    log: list[dict[str, Any]] = [QUESTION, {"role": "assistant", "content": "It is", "partial": True}]
    there = (
        load_provider("dashscope")
        .chat_formatter()
        .lower(load_native("dashscope-compatible", log))
        .request["messages"]
    )
    assert there[-1]["partial"] is True
    back = load_provider("dashscope-compatible").chat_formatter().lower(load_native("dashscope", there)).request
    assert back["messages"] == log


def test_a_developer_message_is_a_system_message_in_the_other_api_of_dashscope() -> None:
    log = [{"role": "developer", "content": "Be kind."}, QUESTION]
    plan = load_provider("dashscope").chat_formatter().lower(load_native("dashscope-compatible", log))
    assert plan.request["messages"][0] == {"role": "system", "content": [{"text": "Be kind."}]}
    assert plan.ledger.entries[0].details == ("message.role omitted: the API has no field for it",)


def test_keys_of_the_formatter_are_written_once_and_null_is_ignored() -> None:
    reply = {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm.", "refusal": None, "extra": None}
    msgs = load_native("deepseek", [QUESTION, reply, {**QUESTION, "cache_control": {"type": "ephemeral"}}])
    messages = load_provider("deepseek").chat_formatter().lower(msgs).request["messages"]
    assert messages == [QUESTION, {"role": "assistant", "content": "Hi.", "reasoning_content": "Hm."}, QUESTION]


def test_further_keys_of_an_empty_message_become_metadata() -> None:
    (msg, result) = load_native(
        "openai",
        [{"role": "assistant", "content": "", "mood": 1}, {"role": "tool", "content": [{"type": "x"}], "took": 2}],
    )
    assert (msg.content, msg.metadata) == ("", {"mood": 1})
    assert result.metadata == {"took": 2}


def test_annotations_of_a_message_become_citations_of_its_text() -> None:
    annotations = [{"type": "url_citation", "url_citation": {"url": "https://x.org"}}]
    (msg,) = load_native("openai", [{"role": "assistant", "content": "As X says.", "annotations": annotations}])
    assert msg.blocks[0].metadata == {"citations": annotations}
    plan = load_provider("openai").chat_formatter().lower([Msg("user", "Go.", "user"), msg])
    assert plan.ledger.entries[-1].details == ("citations omitted: the API has no field for it",)
