"""Tests that check many cases run each case and name those that fail."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import each_case
from tests.profiles import examples

pytestmark = pytest.mark.anyio


@pytest.fixture
def limit() -> int:
    return 3


@pytest.mark.parametrize("start", [1, 2])
@each_case(("number", "double"), [(1, 2), (2, 4)])
def test_fixtures_and_parameters_are_passed_on(limit: int, start: int, number: int, double: int) -> None:
    assert double == 2 * number
    assert start < limit


@each_case("number", {"one": 1, "two": 2})
async def test_an_async_test_has_cases_too(number: int) -> None:
    assert number in (1, 2)


def test_the_error_names_each_case_that_fails() -> None:
    checked: list[int] = []

    @each_case("number", {"one": 1, "two": 2, "three": 3})
    def check(number: int) -> None:
        checked.append(number)
        assert number != 1
        if number == 3:
            with pytest.raises(ValueError, match="x"):
                int("7")

    with pytest.raises(ExceptionGroup, match="2 of 3 cases failed: one, three") as caught:
        check()
    assert checked == [1, 2, 3]
    assert [type(error) for error in caught.value.exceptions] == [AssertionError, AssertionError]


async def test_the_error_of_an_async_test_names_each_case_that_fails() -> None:
    @each_case("number", [7, 8])
    async def check(number: int) -> None:
        assert number != 8

    with pytest.raises(ExceptionGroup, match="1 of 2 cases failed: 8"):
        await check()


@examples(20)
@given(st.integers(1, 3))
@each_case("double", [False, True])
def test_a_property_has_cases_too(double: bool, number: int) -> None:
    assert number * (1 + double) in (1, 2, 3, 4, 6)


def _with_number(number: int) -> None:
    assert number


@pytest.mark.parametrize(("names", "cases"), [("other", [1]), ("number", [])])
def test_a_test_without_the_parameter_or_without_cases_is_refused(names: str, cases: list[Any]) -> None:
    decorate: Callable[[Any], Any] = each_case(names, cases)
    with pytest.raises(TypeError, match="each_case"):
        decorate(_with_number)
