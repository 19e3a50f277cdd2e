"""Architecture: the direction of imports, provider keys in the core, packaging, public names, light imports."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast, get_args

import pytest

import agentkit
from agentkit import Msg, MultiAgentHistory, ToolChoice, Usage, available_providers, load_provider
from agentkit.formatting.formatter import RequestOptions
from agentkit.models.model_options import ModelOptions
from agentkit.provider_kit import Block, FormatterBase, OpaqueState, OptionLayout, Provider, Source, WireLayout
from tests.cases import each_case

ROOT: Final = Path(__file__).resolve().parent.parent
CORE: Final = ROOT / "agentkit"
PROVIDERS: Final = ROOT / "providers"

IMPORT_ORDER: Final[tuple[tuple[str, ...], ...]] = (
    ("reprs", "loggers", "event_loop", "lazy_names"),
    ("errors",),
    ("argument_checks", "json_values", "jinja_environments"),
    ("messages", "credentials"),
    ("tools", "capabilities", "ledger"),
    ("history", "repair", "media"),
    ("legalize", "tokens", "replies"),
    ("budget",),
    ("formatting",),
    ("models",),
    ("logs", "comparison", "prompts", "chat_templates"),
    ("training", "testing"),
    ("cli",),
)
"""The packages and top-level modules of the core. Each imports earlier rows only, never its own row."""

PROVIDER_IDS: Final = (
    "anthropic",
    "azure",
    "compatible",
    "dashscope",
    "dashscope-compatible",
    "deepseek",
    "gemini",
    "llamacpp",
    "mistral",
    "ollama",
    "ollama-raw",
    "openai",
    "openai-completions",
    "openai-responses",
    "openrouter",
    "vllm",
)
LARGE_PACKAGES: Final = frozenset(
    {"openai", "anthropic", "google", "ollama", "dashscope"}
    | {"httpx", "httpx2", "requests", "aiohttp", "urllib3", "websocket"}
    | {
        "splintr",
        "tiktoken",
        "tokenizers",
        "typer",
        "click",
        "rich",
        "numpy",
        "jinja2",
        "yaml",
        "json_repair",
        "PIL",
        "torch",
        "transformers",
    }
)

OPTIONAL_DEPENDENCIES: Final[dict[str, set[str]]] = {
    "cli": {"typer", "click", "rich", "tokenizers"},
    "tools": {"docstring_parser"},
    "media": {"httpx2", "PIL"},
    "prompts": {"jinja2", "yaml", "json_repair", "typing_extensions"},  # typing_extensions: for type checkers only
    "jinja_environments": {"jinja2", "yaml"},
    "chat_templates": {"gguf", "regex"},
    "models": {"httpx2"},
    "tokens": {"splintr", "tiktoken", "tokenizers", "jinja2"},
}
"""Optional dependencies that a package of the core may import.

Each is imported inside the function that needs it, or in a module that such a function imports.
"""


@cache
def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _core_modules() -> list[Path]:
    doors = {CORE / "__init__.py", CORE / "provider_kit.py"}
    return sorted(path for path in CORE.rglob("*.py") if path not in doors)


def _packages() -> list[Path]:
    return sorted(path.parent for path in PROVIDERS.glob("*/__init__.py"))


def _provider_modules() -> list[Path]:
    return sorted(path for package in _packages() for path in package.rglob("*.py"))


def _get_package(path: Path) -> str:
    """Returns the package or top-level module of the core that a file belongs to."""
    return path.relative_to(CORE).parts[0].removesuffix(".py")


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Returns the modules that a file imports. The flag is True for imports at module level."""
    imports: list[tuple[str, bool]] = []
    pending: list[tuple[ast.AST, bool]] = [(_parse(path), True)]
    for node, at_module_level in pending:
        imports += ((name, at_module_level) for name in _list_imported_modules(node))
        is_outside = at_module_level and not _is_function(node)
        # an expression contains no import
        pending += ((inner, is_outside) for inner in ast.iter_child_nodes(node) if not isinstance(inner, ast.expr))
    return tuple(imports)


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def _list_imported_modules(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        yield node.module or ""


def _relative_path(path: Path) -> str:
    return str(path.relative_to(ROOT))


# -- imports ---------------------------------------------------------------------------------------


def test_the_provider_kit_lists_all_its_names_by_task() -> None:
    import agentkit.provider_kit as kit

    names = re.findall(r"`(\w+)`", kit.__doc__ or "")
    public = _public_names(kit.__name__)
    assert sorted(names.count(name) for name in public) == [1] * len(public)


def test_every_package_of_the_core_is_in_the_order() -> None:
    placed = {package_name for row in IMPORT_ORDER for package_name in row}
    assert {_get_package(path) for path in _core_modules()} <= placed


def test_a_module_imports_only_packages_of_earlier_rows() -> None:
    rows = {package_name: number for number, row in enumerate(IMPORT_ORDER) for package_name in row}
    for path in _core_modules():
        own_package = _get_package(path)
        for name, _ in _imports(path):
            top, _, rest = name.partition(".")
            other_package = rest.partition(".")[0]
            if top == "agentkit" and other_package != own_package:
                assert other_package, f"{path} imports the agentkit package itself"
                assert rows[other_package] < rows[own_package], f"{path} imports {other_package}"


def test_the_core_imports_no_provider_and_no_sdk() -> None:
    allowed = {"agentkit", "anyio", "pydantic", "pydantic_core"} | sys.stdlib_module_names
    for path in (*_core_modules(), CORE / "__init__.py"):
        tops = {name.partition(".")[0] for name, _ in _imports(path)}
        assert tops - allowed <= OPTIONAL_DEPENDENCIES.get(_get_package(path), set()), path


@each_case("package", {_relative_path(package): package for package in _packages()})
def test_a_provider_imports_only_the_provider_kit_and_agentkit_openai(package: Path) -> None:
    base = sys.stdlib_module_names | {"anyio", "pydantic", "pydantic_core"}
    for path in package.rglob("*.py"):
        is_testing = path.name == "testing.py"
        doors = {"agentkit.provider_kit", "agentkit_openai"}
        doors |= {"agentkit.testing", "agentkit_openai.testing"} if is_testing else set()
        for name, at_module_level in _imports(path):
            top = name.partition(".")[0]
            if top.startswith("agentkit"):
                assert top == package.name or name in doors, f"{path} imports {name}"
            elif at_module_level:
                assert top in base, f"{path} imports {name} at module level"


def test_only_testing_modules_import_the_testing_module_of_a_provider() -> None:
    users = [
        path
        for path in (*_core_modules(), *_provider_modules())
        for name, _ in _imports(path)
        if name.startswith("agentkit_") and name.endswith(".testing") and path.name != "testing.py"
    ]
    assert users == []


def test_no_module_is_called_utils() -> None:
    stems = {path.stem for path in (*_core_modules(), *_provider_modules())}
    assert not stems & {"utils", "helpers", "common", "manager", "misc"}


# -- keys of providers -----------------------------------------------------------------------------

KEYS_IN_FORMATS: Final = {
    "capabilities/wire_layout.py": "defaults of a layout",
    "chat_templates": "messages and replies in the form of Hugging Face's chat templates",
    "jinja_environments/chat_variables.py": "variables of Hugging Face's chat templates",
    "logs": "formats of AgentScope and LangChain",
    "messages/log_checks.py": "content keys of logged messages",
    "messages/log_recognition.py": "recognizes the format of a log for the error of the wrong loader",
    "messages/mcp_results.py": "results of MCP",
    "prompts/examples.py": "demonstrations of Delphyne and demos of DSPy",
    "prompts/history_rows.py": "tool calls and results as DSPy stores them",
    "prompts/tool_call_values.py": "tool calls in the text of a reply",
    "prompts/tool_texts.py": "tool calls as DSPy writes them",
    "replies/error_bodies.py": "errors of FastAPI servers",
    "tokens/hugging_face.py": "variables of Hugging Face's chat templates",
    "tools/choices.py": "tool choices that users copy from other libraries",
    "tools/tool.py": "tools that users copy from other libraries, or get from MCP",
    "training": "rows of data sets of other libraries",
}
"""Modules and packages of the core that read or write a foreign format, each with the format."""

SHARED_WORDS: Final = {
    "arguments": "word of error places",
    "audio": "media kind",
    "config": "option of SDK clients",
    "document": "media kind",
    "file": "URL scheme",
    "format": "keyword of JSON schemas",
    "image": "media kind",
    "index": "field of scripted events",
    "instructions": "text of a signature",
    "message": "field of errors",
    "messages": "field of agentkit's stored conversations",
    "prompt": "text that a chat template wrote, and a word for the way to ask for JSON",
    "response": "attribute of HTTP errors",
    "result": "word of error places",
    "tool": "mode of a ToolChoice",
    "tool_result": "type of a block",
    "video": "media kind",
}
"""Words of the core that some provider also uses as a key."""


@cache
def _declared_keys(*names: str) -> frozenset[str]:
    """Returns all keys that the layouts of the providers declare, or only those in some fields of the layouts."""
    layouts: list[WireLayout | OptionLayout] = [load_provider(name).layout for name in PROVIDER_IDS]
    layouts += [layout.options for layout in layouts if isinstance(layout, WireLayout) and not names]
    values = [
        getattr(layout, item.name)
        for layout in layouts
        for item in fields(layout)
        if item.init and item.name != "object_formats"  # values, not keys
    ]
    chosen = [getattr(layout, name) for layout in layouts for name in names]
    return frozenset(key for value in (chosen if names else values) for key in _split_keys(value)) - {""}


def _split_keys(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from value.split(".")
    elif isinstance(value, Mapping):
        for pair in cast("Mapping[str, object]", value).items():
            yield from _split_keys(pair)
    elif isinstance(value, tuple | frozenset):
        for item in cast("tuple[object, ...]", value):
            yield from _split_keys(item)


def _own_words() -> set[str]:
    """Returns the words of agentkit's messages and options."""
    unions = [get_args(union)[0] for union in (Block, Source)]  # without the annotation
    classes = (Msg, OpaqueState, Usage, ToolChoice, *(item for union in unions for item in get_args(union)))
    names = {item.name for owner in classes for item in fields(owner)}
    options = {*ModelOptions.__annotations__, *RequestOptions.__annotations__, "model"}
    return names | options | {"user", "assistant", "system"}


def _is_format(path: Path) -> bool:
    name = path.relative_to(CORE).as_posix()
    return name in KEYS_IN_FORMATS or _get_package(path) in KEYS_IN_FORMATS


def test_the_core_names_no_key_of_a_provider() -> None:
    keys = _declared_keys() - _own_words() - set(SHARED_WORDS)
    paths = [path for path in _core_modules() if not _is_format(path)]
    assert [(path, text) for path in paths for text in _literals(path) if text in keys] == []


@cache
def _walk(path: Path) -> tuple[ast.AST, ...]:
    """Returns all nodes of a module, without `__all__`."""
    return tuple(
        node
        for statement in _parse(path).body
        if not (isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__")
        for node in ast.walk(statement)
    )


@cache
def _literals(path: Path) -> tuple[str, ...]:
    """Returns the string literals of a module, without `__all__`."""
    values = [node.value for node in _walk(path) if isinstance(node, ast.Constant)]
    return tuple(value for value in values if isinstance(value, str))


def test_the_core_reads_turns_and_parts_with_the_keys_of_a_layout() -> None:
    keys = _declared_keys("turns", "prompt", "parts", "type", "role", "name", "texts", "media", "json")
    paths = [
        path
        for path in _core_modules()
        if _get_package(path) in {"budget", "capabilities", "formatting", "models", "tokens"}
        and not _is_format(path)
        and path.name != "tiktoken_counter.py"  # writes the JSON schemas of tools as TypeScript
    ]
    assert [(path, key) for path in paths for key in _list_read_keys(path) if key in keys] == []


def _list_read_keys(path: Path) -> Iterator[object]:
    """Yields the constants that a module reads from mappings: `x` for `value["x"]` and for `value.get("x")`."""
    for node in _walk(path):
        keys: list[ast.expr] = []
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            keys = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            keys = node.args[:1]
        yield from (key.value for key in keys if isinstance(key, ast.Constant))


PROVIDER_NAMES: Final = {
    "capabilities/local_model_rules.py": "the call ids that Mistral's chat templates accept",
    "chat_templates": "names of chat templates",
    "cli/export.py": "formats of training data",
    "messages/foreign_block_dicts.py": "issuers of signatures in blocks of AgentScope",
    "messages/log_recognition.py": "names the loader of a log in errors",
    "logs": "issuers of signatures in logs of AgentScope and LangChain",
    "prompts/adapter.py": "the format of training data",
    "testing/scripted.py": "default provider of a ScriptedModel",
    "tokens/model_encodings.py": "patterns of model names",
    "tokens/media_tokens.py": "patterns of model names",
    "training/rows/row_formats.py": "formats of training data",
}
"""Modules and packages of the core that name a provider, each with the reason."""


def test_the_core_names_no_provider() -> None:
    paths = [path for path in _core_modules() if not set(PROVIDER_IDS).isdisjoint(_literals(path))]
    others = [path for path in paths if _get_package(path) not in PROVIDER_NAMES]
    assert {path.relative_to(CORE).as_posix() for path in others} == set(PROVIDER_NAMES) - {
        "chat_templates",
        "logs",
    }


@each_case("name", [*KEYS_IN_FORMATS])
def test_each_format_of_the_core_is_needed(name: str) -> None:
    keys = _declared_keys() - _own_words() - set(SHARED_WORDS)
    paths = [path for path in _core_modules() if name in {path.relative_to(CORE).as_posix(), _get_package(path)}]
    assert any(text in keys for path in paths for text in _literals(path))


# -- packaging -------------------------------------------------------------------------------------


def test_the_wheel_contains_the_core_and_every_provider() -> None:
    wheel = _project()["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["agentkit", *(f"providers/{package.name}" for package in _packages())]
    assert wheel["dev-mode-dirs"] == [".", "providers"]


def test_every_provider_package_is_an_entry_point() -> None:
    points = cast("dict[str, str]", _project()["project"]["entry-points"]["agentkit.providers"])
    assert tuple(points) == PROVIDER_IDS
    assert {re.split("[.:]", target)[0] for target in points.values()} == {path.name for path in _packages()}


def test_all_providers_are_installed() -> None:
    assert set(PROVIDER_IDS) <= set(available_providers())


@each_case("name", PROVIDER_IDS)
def test_a_provider_loads_under_its_name(name: str) -> None:
    provider = load_provider(name)
    assert isinstance(provider, Provider)
    assert provider.name == name
    assert issubclass(provider.chat_formatter, FormatterBase)
    assert issubclass(provider.multi_agent_formatter, provider.chat_formatter)
    assert provider.multi_agent_formatter.default_history is MultiAgentHistory
    assert provider.chat_formatter.__name__.endswith("Formatter")
    assert provider.multi_agent_formatter.__name__.endswith("MultiAgentFormatter")


@each_case("package", [CORE, *_packages()])
def test_every_package_has_a_py_typed_file(package: Path) -> None:
    assert (package / "py.typed").is_file()


def test_mypy_checks_all_folders() -> None:
    assert _project()["tool"]["mypy"]["files"] == ["agentkit", "providers", "tests", "examples"]


# -- public names ----------------------------------------------------------------------------------


def _module_name(path: Path) -> str:
    base = CORE.parent if path.is_relative_to(CORE) else PROVIDERS
    return ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__")


def _lazy_modules() -> dict[str, Path]:
    """Returns the packages and modules whose names are imported on first use, with their files."""
    paths = (CORE / "__init__.py", CORE / "provider_kit.py", *PROVIDERS.glob("*/__init__.py"))
    return {_module_name(path): path for path in paths if "import_on_first_use(" in path.read_text("utf-8")}


def _public_names(module: str) -> list[str]:
    return cast("list[str]", vars(import_module(module))["__all__"])


def _typed_names(path: Path) -> dict[str, str]:
    """Returns the names that a module exports to type checkers with `import X as X`, with their modules."""
    return {
        alias.name: node.module or ""
        for node in ast.walk(_parse(path))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }


def test_the_core_and_the_packages_with_an_own_api_import_their_names_on_first_use() -> None:
    names = ("anthropic", "dashscope", "gemini", "ollama", "openai")
    assert set(_lazy_modules()) == {"agentkit", "agentkit.provider_kit", *(f"agentkit_{name}" for name in names)}


@each_case("module", [*_lazy_modules()])
def test_type_checkers_and_python_see_the_same_public_names(module: str) -> None:
    names = _public_names(module)
    assert names == sorted(_typed_names(_lazy_modules()[module]))
    assert set(names) <= set(dir(import_module(module)))


@each_case("module", [*_lazy_modules()])
def test_each_public_name_is_the_object_of_its_module(module: str) -> None:
    for name, home_name in _typed_names(_lazy_modules()[module]).items():
        home = import_module(home_name)
        assert getattr(import_module(module), name) is getattr(home, name), name
        assert name in home.__all__


def test_an_unknown_public_name_is_an_error_for_python_and_for_mypy() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Massage'"):
        print(agentkit.Massage)  # type: ignore[attr-defined]  # mypy reports an unused comment


def test_each_module_has_a_docstring_and_a_sorted_all_whose_names_exist() -> None:
    for path in (*_core_modules(), *_provider_modules()):
        module = import_module(_module_name(path))
        assert module.__doc__, path
        assert list(module.__all__) == sorted(set(module.__all__)), path
        assert [name for name in module.__all__ if not hasattr(module, name)] == [], path


@each_case("package", _packages())
def test_a_provider_package_exports_all_names_that_it_imports_from_its_modules(package: Path) -> None:
    tree = _parse(package / "__init__.py")
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package.name}.")
        for alias in node.names
    }
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    module = import_module(package.name)
    providers = {name for name, value in vars(module).items() if isinstance(value, Provider)}
    assert imported | classes | providers <= set(module.__all__)


@each_case("name", PROVIDER_IDS)
def test_a_provider_package_exports_its_formatters(name: str) -> None:
    provider = load_provider(name)
    package = import_module(provider.chat_formatter.__module__.partition(".")[0])
    is_row = _project()["project"]["entry-points"]["agentkit.providers"][name].startswith(
        "agentkit_openai.vendors:"
    )
    for formatter in (provider.chat_formatter, provider.multi_agent_formatter):
        assert formatter.__doc__
        if not is_row:  # the formatters of a row are created at run time
            assert formatter.__name__ in package.__all__
            assert getattr(package, formatter.__name__) is formatter


# -- light imports ---------------------------------------------------------------------------------


_STAGES: Final = {
    "agentkit": "import agentkit",
    "a message": "from agentkit import Msg\nmsg = Msg('Bob', 'hi', 'user')",
    "typed prompts": "from agentkit.prompts import ChatAdapter, Signature, ask\n"
    "ChatAdapter().format(Signature('question -> answer: int'), {'question': 'Why?'})",
    "all formatters": "\n".join(
        [
            *(f"import {package.name}" for package in _packages()),
            "from agentkit import Budget, load_provider",
            *(
                f"load_provider({name!r}).multi_agent_formatter(budget=Budget(1000)).lower([msg])"
                for name in PROVIDER_IDS
                if not load_provider(name).layout.is_rendered  # these formatters need jinja2
            ),
        ]
    ),
}
"""Programs that one process runs in this order."""


@cache
def _list_loaded_modules() -> dict[str, set[str]]:
    """Returns the modules and packages that are loaded after each stage."""
    show = "print(*{name.partition('.')[0] for name in sys.modules})"
    script = "\n".join(["import sys", *(f"{program}\n{show}" for program in _STAGES.values())])
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return {stage: {*line.split()} for stage, line in zip(_STAGES, run.stdout.splitlines(), strict=True)}


def test_importing_agentkit_loads_no_dependency() -> None:
    assert not _list_loaded_modules()["agentkit"] & (LARGE_PACKAGES | {"pydantic", "anyio", "asyncio"})


def test_a_message_loads_only_pydantic() -> None:
    loaded = _list_loaded_modules()["a message"]
    assert "pydantic" in loaded
    assert not loaded & (LARGE_PACKAGES | {"anyio", "asyncio", "trio"})


def test_typed_prompts_load_no_model_before_the_first_call() -> None:
    loaded = _list_loaded_modules()["typed prompts"]
    assert "pydantic" in loaded
    assert not loaded & (LARGE_PACKAGES | {"anyio", "asyncio", "trio"})


def test_all_formatters_together_load_no_sdk_and_no_http_client() -> None:
    assert not _list_loaded_modules()["all formatters"] & (LARGE_PACKAGES | {"trio"})


# -- the repository --------------------------------------------------------------------------------

_TOP_LEVEL: Final = frozenset(
    [
        "pyproject.toml",
        "agentkit",
        "providers",
        "tests",
        "examples",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        ".ci",
        ".gitignore",
    ]
)
# Joined from parts, because the test also searches this file.
_HOMES: Final = "|".join([r"(?:home|Users|work)/\w", r"(?:root|tmp)(?![\w-])", "var/folders/"])
_MACHINE_PATH: Final = re.compile(rf"(?:(?<=file://)|(?<![\w.:/@<{{}}*\-]))/(?:{_HOMES})|[A-Z]:\\Users\\")
_REGISTRY: Final = re.compile(
    "|".join([r"pypi\." + "org", "python" + "hosted", r"registry\." + "npmjs", "crates" + r"\.io"])
)


@cache
def _list_files() -> tuple[str, ...]:
    """Returns all files except those in `.gitignore`. Works without git, in an unpacked archive."""
    ignored = (ROOT / ".gitignore").read_text("utf-8").split()
    patterns = [".git", *(pattern.rstrip("/") for pattern in ignored)]
    paths: list[str] = []
    for folder, folders, files in os.walk(ROOT):
        kept = [name for name in (*folders, *files) if not any(fnmatch(name, pattern) for pattern in patterns)]
        folders[:] = [name for name in folders if name in kept]
        paths += [(Path(folder) / name).relative_to(ROOT).as_posix() for name in files if name in kept]
    return tuple(paths)


def test_the_search_includes_all_folders_of_the_repository() -> None:
    assert {"README.md", ".ci/run", "agentkit/__init__.py", "tests/test_architecture.py"} <= {*_list_files()}


def test_the_top_level_has_only_these_entries() -> None:
    assert {name.partition("/")[0] for name in _list_files()} <= _TOP_LEVEL


@each_case(
    ("line", "is_machine_path"),
    [
        ("see /" + "tmp/x", True),
        ("file:///" + "home/ada/x.png", True),
        ("'/" + "root'", True),
        ("https://example.com/home/x", False),
        ("a/" + "root/b and </tmp>", False),
        ("/v1/chat", False),
    ],
)
def test_machine_paths_are_recognized(line: str, is_machine_path: bool) -> None:
    assert bool(_MACHINE_PATH.search(line)) is is_machine_path


def test_no_text_file_contains_a_machine_path_or_a_registry() -> None:
    lines: list[str] = []
    for name in _list_files():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if not (_MACHINE_PATH.search(text) or _REGISTRY.search(text)):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if _MACHINE_PATH.search(line) or _REGISTRY.search(line):
                lines.append(f"{name}:{number}: {line.strip()[:120]}")
    assert lines == []


# -- dependencies ----------------------------------------------------------------------------------


def test_the_base_dependencies_are_anyio_and_pydantic() -> None:
    names = [re.split(r"[^\w-]", line)[0] for line in _project()["project"]["dependencies"]]
    assert sorted(names) == ["anyio", "pydantic"]


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    project = _project()["project"]
    extras = cast("dict[str, list[str]]", project["optional-dependencies"])
    base = cast("list[str]", project["dependencies"])
    lines = [*base, *(line for group in extras.values() for line in group)]
    outside = [line for line in lines if not line.startswith("agentkit-middleware[")]
    assert [line for line in outside if not re.search(r">=[\d.]+,<[\d.]+", line)] == []
