"""Parsing of response headers."""

from email.utils import formatdate
from time import time
from typing import Any

from agentkit.provider_kit import find_request_id, parse_retry_after
from tests.cases import each_case

HEADERS = ("request-id", "x-request-id", "apim-request-id")


@each_case(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_seconds_to_wait_are_read(headers: dict[str, str] | None, seconds: float | None) -> None:
    assert parse_retry_after(headers) == seconds


def test_an_http_date_becomes_seconds() -> None:
    assert 50 < (parse_retry_after({"retry-after": formatdate(time() + 60, usegmt=True)}) or 0) <= 60
    assert parse_retry_after({"retry-after": formatdate(0, usegmt=True)}) == 0


@each_case(
    ("headers", "request_id"),
    [
        ({"request-id": "req_1"}, "req_1"),
        ({"x-request-id": "2", "date": "today"}, "2"),
        ({"apim-request-id": "5", "x-request-id": "6"}, "6"),
        ({"x-amzn-requestid": "3"}, None),
        ({"x-request-id": ""}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_first_header_with_a_request_id_is_read(headers: Any, request_id: str | None) -> None:
    assert find_request_id(headers, HEADERS) == request_id


def test_an_id_of_a_platform_comes_before_an_id_of_a_gateway() -> None:
    assert find_request_id({"x-request-id": "2", "request-id": "1"}) == "1"
