"""Every field is bounded, explained and frozen, and the pages made from them are current."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from settings_helpers import GOOD, ROOT, load

from ccwm.settings.agent import Env
from ccwm.settings.reference import allowed, json_schema, known_keys, reference_page
from ccwm.settings.schema import Settings

BOUNDS = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}


def sections() -> dict[str, type[BaseModel]]:
    """All sections by name; `variants` is a mapping and no section."""
    return {
        name: field.annotation
        for name, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }


def fields() -> list[tuple[str, str]]:
    return [(name, field) for name, section in sections().items() for field in section.model_fields]


def parts(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A field's schema and, where it holds lists, mappings or alternatives, those of its values."""
    yield node
    below = [*node.get("anyOf", ()), *node.get("prefixItems", ()), *node.get("patternProperties", {}).values()]
    below += [node["items"]] if "items" in node else []
    for part in below:
        yield from parts(part)


def is_bounded(part: Mapping[str, Any]) -> bool:
    if part.keys() & {"enum", "const", "anyOf", "$ref"}:
        return True
    match part["type"]:
        case "string":
            return "pattern" in part or part.keys() >= {"minLength", "maxLength"}
        case "integer" | "number":
            return bool(BOUNDS & part.keys())
        case "array":
            return "minItems" in part
        case "object":
            return "patternProperties" in part
    return part["type"] in ("boolean", "null")


def test_all_sections_but_variants_are_models() -> None:
    assert Settings.model_fields.keys() - sections().keys() == {"variants"}


@pytest.mark.parametrize(("section", "field"), fields())
def test_a_field_has_bounds_and_a_sentence(section: str, field: str) -> None:
    schema = sections()[section].model_json_schema()["properties"][field]
    assert all(is_bounded(part) for part in parts(schema)), schema
    assert re.fullmatch(r"\S+( \S+){2,}\.", schema["description"]), "a sentence of three words or more"


@pytest.mark.parametrize("section", sections().values(), ids=lambda section: section.__name__)
def test_a_section_has_a_sentence_of_its_own(section: type[BaseModel]) -> None:
    assert (section.__doc__ or "").endswith(".")
    assert section.__doc__ != (section.__base__ or object).__doc__


def test_an_unbounded_number_would_be_found() -> None:
    assert not is_bounded({"type": "integer"})
    assert not is_bounded({"type": "string"})
    assert not all(is_bounded(part) for part in parts({"type": "array", "minItems": 1, "items": {"type": "number"}}))


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Env().size = 32  # type: ignore[misc]


def test_whole_numbers_may_stand_for_numbers(tmp_path: Any) -> None:
    content = {**GOOD, "retrace": {**GOOD["retrace"], "weight": 0}}
    assert load(tmp_path, content).retrace.weight == 0.0


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (("env", "action_repeat"), "a whole number from 1 to 16"),
        (("actor_critic", "discount"), "a number above 0 and below 1"),
        (("retrace", "weight"), "a number of at least 0"),
        (("retrace", "detach"), "`none` or `original`"),
        (("truncation", "lookback"), "a whole number from 0 to 1000 or `null`"),
        (("trainer", "devices"), "a whole number from 1 to 64"),
        (("model", "continues"), "`true` or `false`"),
        (("transfer", "friction", 0), "a list of 3, each a number above 0"),
        (("transfer", "friction", 0, 2), "a number above 0"),
        (("report", "colours", "ccwm"), "a colour as `#rrggbb`"),
    ],
)
def test_what_a_key_allows_in_words(path: tuple[str | int, ...], words: str) -> None:
    assert allowed(path) == words


def test_the_keys_of_a_section() -> None:
    assert known_keys(["env"]) == list(Env.model_fields)
    assert known_keys([]) == list(Settings.model_fields)


def test_the_reference_page_is_current() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == reference_page(), "run `ccwm params docs --write`"
    assert all(f"| `{section}.{field}` |" in page for section, field in fields())


def test_the_schema_file_is_current() -> None:
    written = (ROOT / "docs" / "params.schema.json").read_text(encoding="utf-8")
    assert written == json_schema(), "run `ccwm params schema --write`"
