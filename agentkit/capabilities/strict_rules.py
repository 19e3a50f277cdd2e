"""`StrictRules`, the rules of an API for JSON schemas in strict mode."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.reprs import bounded_repr

__all__ = ["StrictRules"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrictRules:
    """Rules of a target for a schema with `strict: true`. All targets require `additionalProperties: false`.

    Attributes:
        keywords: JSON Schema keywords that the target accepts. Other keywords that are only annotations are
            omitted.
        formats: Values of `format` that the target accepts.
        can_omit_properties: True if a schema may have optional properties, which `required` does not list.
        can_recurse: True if a definition may refer to itself.
        max_depth: Maximum number of levels of nested objects and arrays. 0 if no limit is known.
        has_output_flag: True if the API has the flag `strict` for response formats too.
        is_request_wide: True if the request has one flag for all its tools. The flag is set only if all tools are
            strict.

    """

    keywords: frozenset[str]
    formats: frozenset[str]
    can_omit_properties: bool = False
    can_recurse: bool = True
    max_depth: int = 0
    has_output_flag: bool = False
    is_request_wide: bool = False

    __repr__ = bounded_repr
