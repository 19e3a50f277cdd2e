"""Options and errors of HTTP clients."""

from __future__ import annotations

import httpx
import httpx2
import pytest

from agentkit.provider_kit import Failure, as_network_failure, is_transport_error, split_http_options
from tests.cases import each_case


def test_options_are_split_into_parameters_and_http_options() -> None:
    options = {"seed": 1, "extra_headers": {"a": "b"}, "extra_query": {"c": "d"}, "timeout": 3.0, "extra_body": {}}
    assert split_http_options(options) == (
        {"seed": 1, "extra_body": {}},
        {"headers": {"a": "b"}, "params": {"c": "d"}, "timeout": 3.0},
    )


@pytest.mark.parametrize("error", [httpx.ReadTimeout("slow"), httpx2.RemoteProtocolError("broken")])
def test_errors_of_http_clients_are_transport_errors(error: Exception) -> None:
    assert is_transport_error(error)
    assert as_network_failure(error) == Failure(str(error), network=True)


@each_case("error", [ValueError("bad"), TimeoutError(), ConnectionError()])
def test_other_errors_are_not_transport_errors(error: Exception) -> None:
    assert not is_transport_error(error)


def test_a_network_failure_names_the_cause() -> None:
    error = RuntimeError("Connection error.")
    error.__cause__ = OSError("no route")
    assert as_network_failure(error).message == "Connection error (OSError: no route)"
    error.__cause__ = OSError("Connection error.")
    assert as_network_failure(error).message == "Connection error."


def test_a_network_failure_without_a_text_has_the_name_of_the_error() -> None:
    assert as_network_failure(TimeoutError()).message == "TimeoutError"
