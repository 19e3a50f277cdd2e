"""Tests of providers that are loaded by name through entry points."""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest

from agentkit import OptionError, ProviderError, available_providers, load_provider
from agentkit.cli import run
from agentkit.provider_kit import FormatterBase, Provider
from tests.cases import each_case
from tests.conftest import EchoFormatter
from tests.providers import MESSAGE_PROVIDERS


def test_the_available_providers_are_sorted_names() -> None:
    names = available_providers()
    assert names == sorted(set(names))
    assert "openai" in names


@pytest.mark.parametrize("name", ["nimbus", "", "OpenAI", "openai "])
def test_an_unknown_name_is_an_error_that_lists_the_providers(name: str) -> None:
    with pytest.raises(ProviderError) as caught:
        load_provider(name)
    assert caught.value.name == name
    assert caught.value.available == tuple(available_providers())
    assert str(caught.value).startswith(f"provider {name!r}: no such provider")


def test_a_provider_is_loaded_once() -> None:
    assert load_provider("openai") is load_provider("openai")


def test_a_provider_has_a_name_and_two_formatters() -> None:
    provider = Provider("echo", EchoFormatter, EchoFormatter)
    assert provider == Provider(name="echo", chat_formatter=EchoFormatter, multi_agent_formatter=EchoFormatter)
    with pytest.raises(dataclasses.FrozenInstanceError):
        provider.name = "other"  # type: ignore[misc]


@each_case("name", MESSAGE_PROVIDERS)
def test_a_loaded_formatter_needs_no_argument_and_no_sdk(name: str) -> None:
    provider = load_provider(name)
    for formatter in (provider.chat_formatter(), provider.multi_agent_formatter()):
        assert isinstance(formatter, FormatterBase)
        assert formatter.model is None
        assert formatter.capabilities().name


# -- claims of other distributions ------------------------------------------------------------------------------


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str, str], None]]:
    """Installs a distribution: its name, a line of its entry points, and the text of its module."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]
    modules: list[str] = []

    def add(name: str, entry: str, module: str) -> None:
        metadata = tmp_path / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[agentkit.providers]\n{entry}\n")
        stem = entry.partition("=")[2].partition(":")[0].strip()
        (tmp_path / f"{stem}.py").write_text(module)
        modules.append(stem)
        load_provider.cache_clear()
        invalidate_caches()

    yield add
    for stem in modules:
        sys.modules.pop(stem, None)
    load_provider.cache_clear()


ECHO = (
    "from agentkit.provider_kit import Provider\nfrom tests.conftest import EchoFormatter\n"
    "PROVIDER = Provider('echo', EchoFormatter, EchoFormatter)\n"
)


@pytest.mark.parametrize("name", ["aaa-plugin", "zzz_Plugin", "agentkit-middleware-extra"])
def test_a_third_party_cannot_replace_a_built_in_provider(name: str, install: Callable[..., None]) -> None:
    before = available_providers()
    install(name, "openai = claims_openai:PROVIDER", ECHO)
    assert available_providers() == before
    with pytest.warns(UserWarning, match=name.lower().replace("_", "-")):
        provider = load_provider("openai")
    assert provider.name == "openai"
    assert "claims_openai" not in sys.modules
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_provider("anthropic").name == "anthropic"
        assert load_provider("openai") is provider


def test_two_distributions_with_one_provider_name_are_an_error_that_names_both(
    install: Callable[..., None],
) -> None:
    install("first-plugin", "echo = first_echo:PROVIDER", ECHO)
    install("second-plugin", "echo = second_echo:PROVIDER", ECHO)
    install("third-plugin", "echo-alone = third_echo:PROVIDER", ECHO)
    with pytest.raises(ProviderError, match=r"'(first|second)-plugin' and '(first|second)-plugin'"):
        load_provider("echo")
    assert "echo" in available_providers()
    assert load_provider("echo-alone").name == "echo"
    for name in ("openai", "gemini"):
        assert load_provider(name).name == name


FAILURES = {
    "SyntaxError": "def (:\n",
    "ValueError": "raise ValueError('no such region')\n",
    "ZeroDivisionError": "1 / 0\n",
    "SystemExit": "import sys\nsys.exit(3)\n",
    "RecursionError": "def deeper(): deeper()\ndeeper()\n",
    "KeyError": "{}['key']\n",
    "BaseException": "raise BaseException\n",
    "OptionError": ECHO + "Provider('broken', EchoFormatter, EchoFormatter, models=3)\n",
    "ModuleNotFoundError": "import no_such_module\n",
}


def test_an_error_in_one_provider_module_affects_only_that_provider(install: Callable[..., None]) -> None:
    for kind, module in FAILURES.items():
        install(f"{kind}-plugin", f"broken-{kind} = broken_{kind}:PROVIDER", module)
    for kind in FAILURES:
        with pytest.raises(ProviderError, match=rf"'broken-{kind}': .* cannot be imported \({kind}") as caught:
            load_provider(f"broken-{kind}")
        assert type(caught.value.__cause__).__name__ == kind
    assert load_provider("openai").name == "openai"
    with pytest.raises(ProviderError, match="Did you mean 'openai'"):
        load_provider("opanai")


@pytest.mark.parametrize("metadata", [None, b"\xff\xfe\n", b"Version: 1.0\n"])
def test_a_damaged_installation_does_not_affect_built_in_providers(
    metadata: bytes | None, install: Callable[..., None], tmp_path: Path
) -> None:
    install("damaged", "openai = damaged_echo:PROVIDER", ECHO)
    file = tmp_path / "damaged-1.0.dist-info" / "METADATA"
    file.unlink() if metadata is None else file.write_bytes(metadata)
    invalidate_caches()
    with pytest.warns(
        UserWarning, match=r"'unknown \(damaged_echo:PROVIDER\)' cannot replace the built-in provider 'openai'"
    ):
        assert load_provider("openai").name == "openai"


@each_case(
    ("field", "value"),
    [
        ("name", None),
        ("chat_formatter", None),
        ("chat_formatter", lambda: None),
        ("multi_agent_formatter", int),
        ("parser", 3),
        ("endpoint", EchoFormatter),
        ("load_native", "log"),
        ("models", 3),
    ],
)
def test_a_field_of_a_provider_with_another_type_is_an_error(field: str, value: Any) -> None:
    with pytest.raises(OptionError, match=rf"^provider\.{field}: expected "):
        dataclasses.replace(Provider("echo", EchoFormatter, EchoFormatter), **{field: value})


def test_a_provider_name_that_is_not_a_text_is_an_error() -> None:
    with pytest.raises(OptionError, match="provider: expected str, got None"):
        load_provider(None)


HALF = ECHO + "import dataclasses\nPROVIDER = dataclasses.replace(PROVIDER, models='(')\n"
FAILS_LATE = (
    "from agentkit.provider_kit import Provider\nfrom tests.conftest import EchoFormatter\n"
    "class Late(EchoFormatter):\n    async def plan(self, *given, **named): raise KeyError('late')\n"
    "class Early(EchoFormatter):\n    def __init__(self, *given, **named): raise KeyError('early')\n"
    "PROVIDER = Provider('late', Late, Early)\n"
)


def test_an_invalid_model_pattern_affects_only_its_provider(install: Callable[..., None]) -> None:
    install("half-plugin", "half = half_plugin:PROVIDER", HALF)
    with pytest.raises(ProviderError, match="openai:gpt-4o"):
        load_provider("gpt-4o")


@pytest.mark.parametrize(("options", "lines"), [((), ()), (("--multi-agent",), ("--lines",))])
def test_format_all_reports_a_broken_provider_and_continues(
    options: tuple[str, ...], lines: tuple[str, ...], install: Callable[..., None], capsys: Any, tmp_path: Path
) -> None:
    install("broken-plugin", "broken = broken_plugin:PROVIDER", FAILURES["ValueError"])
    install("late-plugin", "late = late_plugin:PROVIDER", FAILS_LATE)
    output = tmp_path / "said.json"
    output.write_text('[{"name": "Bob", "role": "user", "content": "hi"}]')
    code = run(["format", "--all", *options, *lines, str(output)])
    out, err = capsys.readouterr()
    assert set(json.loads(out)) == set(MESSAGE_PROVIDERS)
    assert code == 0
    assert "provider 'broken': the package cannot be imported (ValueError: no such region)" in err
    assert "provider 'late': the formatter failed (KeyError" in err
    assert run(["format", "--provider", "late", *options, str(output)]) == 2
