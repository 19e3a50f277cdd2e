"""Damaged logs of each provider load or raise a clear error."""

import json
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import MessageError, Msg, load_provider
from tests.profiles import examples
from tests.providers import chat
from tests.providers.anthropic.test_logs import LOG as ANTHROPIC
from tests.providers.dashscope.test_logs import LOG as DASHSCOPE
from tests.providers.gemini.test_logs import LOG as GEMINI
from tests.providers.mangling import mangled
from tests.providers.ollama.test_logs import LOG as OLLAMA

LOGS: Final[dict[str, Any]] = {
    "anthropic": ANTHROPIC,
    "dashscope": {"messages": DASHSCOPE},
    "gemini": GEMINI,
    "ollama": {"messages": OLLAMA},
}


@pytest.mark.parametrize("provider", LOGS)
@examples(150)
@given(data=st.data())
def test_a_mangled_log_loads_or_raises_a_message_error(provider: str, data: st.DataObject) -> None:
    load = load_provider(provider).load_native
    assert load is not None
    with suppress(MessageError):
        msgs = load(data.draw(mangled(LOGS[provider])))
        assert [Msg.from_dict(msg.to_dict()) for msg in msgs] == msgs
        json.dumps([msg.to_dict() for msg in msgs])
        if msgs:
            chat(provider).lower(msgs)
