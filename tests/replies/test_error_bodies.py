"""Parsing of error bodies."""

from typing import Any

from agentkit.provider_kit import Failure, parse_failure
from tests.cases import each_case


@each_case(
    ("body", "expected"),
    [
        (
            {"error": {"message": "No.", "type": "t", "code": None, "param": "p"}},
            Failure("No.", None, "t", param="p"),
        ),
        (
            {"error": {"message": "No.", "type": "BadRequestError", "code": 400}},
            Failure("No.", 400, "BadRequestError"),
        ),
        ({"error": {"message": "No.", "status": "UNAVAILABLE", "code": 503}}, Failure("No.", 503, "UNAVAILABLE")),
        ([{"error": {"message": "No.", "code": 503}}], Failure("No.", 503)),
        ({"error": "No."}, Failure("No.")),
        ({"error": {"code": "only_a_code"}}, Failure("only_a_code", None, "only_a_code")),
        (
            {"type": "error", "error": {"type": "t", "message": "No."}, "request_id": "r"},
            Failure("No.", None, "t", "r"),
        ),
        (
            {"code": "InvalidParameter", "message": "No.", "request_id": "r"},
            Failure("No.", None, "InvalidParameter", "r"),
        ),
        ({"object": "error", "message": "No.", "type": "t", "code": 404}, Failure("No.", 404, "t")),
        ({"error": None, "output": []}, None),
        ({"code": "", "message": "", "output": {"choices": []}}, None),
        ({"message": {"role": "assistant", "content": "hi"}, "done": True}, None),
        ({"error": {}}, None),
        ({}, None),
        ("No.", None),
        ([], None),
    ],
)
def test_the_error_of_a_body_is_read(body: Any, expected: Failure | None) -> None:
    assert parse_failure(body) == expected


def test_the_id_of_a_bare_message_is_the_request_id() -> None:
    assert parse_failure({"id": "r1", "message": "No."}, 404) == Failure("No.", 404, request_id="r1")
    both = {"id": "r1", "request_id": "r2", "message": "No."}
    assert parse_failure(both, 404) == Failure("No.", 404, request_id="r2")


def test_a_bare_message_is_an_error_only_with_an_error_status() -> None:
    body = {"message": "Too many tokens, please wait before trying again."}
    failure = parse_failure(body, 429)
    assert failure is not None
    assert (failure.message, failure.code) == (body["message"], None)
    assert parse_failure(body) is None
    assert parse_failure(body, 200) is None


@each_case(
    ("detail", "message"),
    [
        ("messages[1].content: too long", "messages[1].content: too long"),
        (
            [{"loc": ["body", "messages", 3, "content"], "msg": "Field required", "type": "missing"}],
            "messages[3].content: Field required",
        ),
        ({"message": "Too long."}, "Too long."),
        ([{"loc": ["bodyguard", "x"], "msg": "a"}], "bodyguard.x: a"),
        ([{"loc": ["body"], "msg": "a"}, {"msg": "b"}, 7, {"loc": ["x"]}], "a; b"),
    ],
)
def test_the_detail_of_a_fastapi_server_is_the_error(detail: object, message: str) -> None:
    assert parse_failure({"detail": detail}, 422) == Failure(message, 422)
    assert parse_failure({"detail": detail}) is None
    assert parse_failure({"detail": detail}, 200) is None


def test_a_detail_without_text_is_no_error() -> None:
    details: tuple[Any, ...] = ("", [], {}, 3, None, [{}])
    for detail in details:
        assert parse_failure({"detail": detail}, 422) is None
