"""`find_template`: names, paths and objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentkit import Msg, OptionError
from agentkit.chat_templates import ChatTemplate
from agentkit.chat_templates.template_arguments import find_template
from tests.cases import each_case
from tests.chat_templates.test_template_files import write_gguf

USER = Msg("Bob", "Hi", "user")


def test_a_template_is_found_by_name_path_or_object(tmp_path: Path) -> None:
    source = "{{ messages[0].content }}!"
    (tmp_path / "chat_template.jinja").write_text(source)
    write_gguf(tmp_path / "model.gguf", source, {})
    template = ChatTemplate(source)
    assert find_template(template) is template
    assert find_template("chatml").jinja == ChatTemplate.builtin("im_start").jinja
    paths = (tmp_path, tmp_path / "chat_template.jinja", tmp_path / "model.gguf")
    sources: list[Path | str] = [*paths, *map(str, paths)]
    for path in sources:
        assert find_template(path).render([USER]).text == "Hi!"


@each_case(
    ("source", "reason"),
    [
        (None, "expected a chat template, none was passed"),
        (3, "expected a chat template, got 3"),
        ("zephir", "there is no built-in template and no file 'zephir'"),
        ("missing.gguf", "^template: the file 'missing.gguf' does not exist"),
        ("", "there is no built-in template and no file ''"),
        ("x" * 5_000, "there is no built-in template and no file 'xxx"),
        ("a\0b", "there is no built-in template and no file"),
    ],
)
def test_other_values_are_errors(source: Any, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        find_template(source)
