"""`PromptTemplates`: reads templates and data files from folders, and renders prompts.

A line `!<assistant>` in a template ends the prompt. The text after this line is the priming: the beginning of the
reply, which the request contains as an assistant message. Only a line of a template has this effect. The same line
in the value of a variable is ordinary text, so that an input cannot forge an assistant message.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from agentkit.argument_checks import check_option
from agentkit.errors import MissingExtraError, OptionError, TemplateError, TemplateNotFoundError
from agentkit.jinja_environments import prompt_environment
from agentkit.jinja_environments.template_errors import find_template_line
from agentkit.prompts.template_values import as_template_value
from agentkit.reprs import as_one_line

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["PromptTemplates"]

_PRIMING_LINE: Final = "!<assistant>"
_PRIMING: Final = re.compile(r"^[ \t]*!<assistant>[ \t]*$", re.MULTILINE)
_DATA_SUFFIX: Final = ".data.yaml"


class PromptTemplates:
    """Templates of prompts. The constructor reads all files, so that rendering needs no file access.

    The template with the name `Judge` and the kind `system` is the file `Judge.system.jinja`. The first folder
    that has the file is used. A template can include or import only the `*.jinja` files of the folders. The name
    of such a file is its path in the folder, as in `{% include "parts/rules.jinja" %}`.

    An undefined name in a template is an error (see `prompt_environment`). Pydantic models and dataclasses in
    variables become dicts, so that templates have no access to Python objects. `data.NAME` in a template is the
    content of the file `NAME.data.yaml` in the data folders. If two data folders have a file of the same name,
    both files must contain a list, and the lists are concatenated.

    Attributes:
        folders: Folders with templates.
        data_folders: Folders with data files.
    """

    def __init__(self, *folders: str | Path, data: str | Path | Sequence[str | Path] = ()) -> None:
        """Reads the templates and the data files.

        Args:
            folders: Folders with templates. Subfolders contain templates for `include` and `import`.
            data: Folders with data files. Data files in subfolders are not read.

        Raises:
            MissingExtraError: A package of the extra `prompts` is not installed.
            OptionError: A folder does not exist, a file cannot be read, or two data files of the same name do not
                both contain a list.
        """
        self.folders = tuple(Path(folder) for folder in _check_folders("folders", folders))
        check_option("data", data, str | Path | Sequence, "Pass the path of a folder, or a list of paths.")
        data_folders = [data] if isinstance(data, str | Path) else data
        self.data_folders = tuple(Path(folder) for folder in _check_folders("data", data_folders))
        # The values of variables cannot contain this line, because the line is random.
        self._priming_line = f"!<assistant {secrets.token_hex(16)}>"
        self._sources = {name: self._mark_priming(text) for name, text in _read_templates(self.folders).items()}
        self._environment = prompt_environment(_create_loader(self._sources))
        self._data = _read_data(self.data_folders)
        self._compile = lru_cache(256)(self._compile_text)

    def __repr__(self) -> str:
        arguments = [repr(str(folder)) for folder in self.folders]
        if self.data_folders:
            arguments.append(f"data={[str(folder) for folder in self.data_folders]!r}")
        return f"PromptTemplates({', '.join(arguments)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (partial(PromptTemplates, data=self.data_folders), self.folders)

    def has_template(self, name: str, kind: str) -> bool:
        """Returns True if a folder has the file `{name}.{kind}.jinja`."""
        return f"{name}.{kind}.jinja" in self._sources

    def render(self, name: str, kind: str, variables: Mapping[str, object], *, default: str | None = None) -> str:
        """Renders the template with a name and a kind.

        Args:
            name: Name of the signature.
            kind: Kind of the prompt, such as `system`.
            variables: Values by name. Pydantic models, dataclasses and JSON values are allowed.
            default: Text of the template if no folder has the file `{name}.{kind}.jinja`.

        Raises:
            TemplateNotFoundError: No folder has the file, and `default` is None.
            TemplateError: The template is invalid, a variable or an included template is missing, or the template
                calls `fail`.
            OptionError: A variable has the name `data`, or a value that JSON cannot represent.
        """
        return self._render(name, kind, variables, default).replace(self._priming_line, _PRIMING_LINE)

    def render_with_priming(
        self, name: str, kind: str, variables: Mapping[str, object], *, default: str | None = None
    ) -> tuple[str, str | None]:
        """Renders a template as `render` does. Returns the texts before and after the line `!<assistant>`.

        The text after the line is the priming. The priming is None if the template has no such line, or if only
        white space follows the line.
        """
        rendered = self._render(name, kind, variables, default)
        text, _, priming = rendered.partition(self._priming_line)
        if not priming.strip():
            return text.removesuffix("\n"), None
        return text.removesuffix("\n"), priming.removeprefix("\n").replace(self._priming_line, _PRIMING_LINE)

    def _mark_priming(self, source: str) -> str:
        lines = source.replace("\r\n", "\n").replace("\r", "\n")  # jinja changes the line breaks in the same way
        return _PRIMING.sub(self._priming_line, lines)

    def _render(self, name: str, kind: str, variables: Mapping[str, object], default: str | None) -> str:
        check_option("default", default, str | None)
        file = f"{name}.{kind}.jinja"
        if file not in self._sources and default is None:
            raise TemplateNotFoundError(file, [str(folder) for folder in self.folders])
        values = {**_convert_variables(variables), "data": self._data}
        label = file if file in self._sources else f"{name}.{kind} (default text)"
        try:
            if file in self._sources:
                return self._environment.get_template(file).render(values)
            return self._compile(self._mark_priming(default or ""), label).render(values)
        except Exception as error:  # a template can raise any error
            raise self._as_template_error(error, label) from error

    def _compile_text(self, source: str, label: str) -> Template:
        """Compiles a text as a template. Errors and tracebacks show the label as the name of the template."""
        environment = self._environment
        code = environment.compile(source, label, label)
        return environment.template_class.from_code(environment, code, environment.make_globals(None))

    def _as_template_error(self, error: Exception, label: str) -> TemplateError:
        """Converts an error of jinja or of an expression in a template to a `TemplateError`."""
        from jinja2 import TemplateSyntaxError

        if isinstance(error, TemplateSyntaxError):
            return TemplateError(error.name or label, error.message or "invalid syntax", error.lineno)
        file, line = find_template_line(error, {label, *self._sources})
        return TemplateError(file or label, _describe(error), line)


def _describe(error: Exception) -> str:
    from jinja2 import TemplateError as JinjaError
    from jinja2 import TemplateNotFound

    if isinstance(error, TemplateNotFound):
        return f"no folder has the template {', '.join(map(str, error.templates))}"
    if isinstance(error, JinjaError):
        return error.message or type(error).__name__
    return f"{type(error).__name__}: {error}"


def _convert_variables(variables: Mapping[str, object]) -> dict[str, Any]:
    check_option("variables", variables, Mapping, "Pass a dict of values by name.")
    if "data" in variables:
        reason = "the name `data` is reserved for the data files"
        raise OptionError("variables.data", reason, "Use another name, or put the values into a data file.")
    return {name: as_template_value(value, f"variables.{name}") for name, value in variables.items()}


def _create_loader(sources: Mapping[str, str]) -> Any:
    """Returns a loader of templates that are already in memory."""
    try:
        from jinja2 import FunctionLoader
    except ImportError:
        raise MissingExtraError("jinja2", "prompts", "Rendering a prompt template") from None

    def load(name: str) -> tuple[str, str, None] | None:
        return (sources[name], name, None) if name in sources else None

    return FunctionLoader(load)


# -- files ----------------------------------------------------------------------------------------------------


def _check_folders(option: str, folders: Iterable[str | Path]) -> list[str | Path]:
    checked = list(folders)
    for index, folder in enumerate(checked):
        check_option(f"{option}[{index}]", folder, str | Path, "Pass the path of a folder.")
        if not Path(folder).is_dir():
            reason = f"{str(folder)!r} is not an existing folder"
            raise OptionError(f"{option}[{index}]", reason, "Pass the path of an existing folder.")
    return checked


def _read_templates(folders: Iterable[Path]) -> dict[str, str]:
    """Returns a dict that maps the path of each template in its folder to the text of the template.

    If several folders have a template with the same path, the template of the first folder is used.
    """
    sources: dict[str, str] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.jinja")):
            name = path.relative_to(folder).as_posix()
            if name not in sources and path.is_file():
                sources[name] = _read_text(path)
    return sources


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot be read ({error})"
        raise OptionError(str(path), reason, "Use a file with UTF-8 text, or remove the file.") from None


def _read_data(folders: Iterable[Path]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for folder in folders:
        for path in sorted(folder.glob(f"*{_DATA_SUFFIX}")):
            name = path.name.removesuffix(_DATA_SUFFIX)
            value = _read_yaml(path)
            data[name] = _concatenate(data[name], value, path) if name in data else value
    return data


def _concatenate(first: object, second: object, path: Path) -> list[Any]:
    if not isinstance(first, list) or not isinstance(second, list):
        reason = "another data folder has a file of this name, but at least one of the two files contains no list"
        raise OptionError(str(path), reason, "Rename one of the files, or use a list in both files.")
    return [*cast("list[Any]", first), *cast("list[Any]", second)]


def _read_yaml(path: Path) -> Any:
    import yaml

    text = _read_text(path)
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise OptionError(str(path), f"invalid YAML ({as_one_line(str(error))})", "Fix the file.") from None
    return as_template_value(value, str(path))
