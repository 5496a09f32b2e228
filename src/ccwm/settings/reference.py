"""The settings in words, from their JSON schema: what a key allows, and the reference page of all keys."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ccwm.settings.schema import Settings
from ccwm.settings.section import COLOUR, DOTTED, NAME, STORAGE, VARIANT

Node = Mapping[str, Any]
"""A part of a JSON schema."""

PATTERNS = {
    NAME: "a name of up to 80 letters, digits, `_`, `.`, `:` and `-` that starts with a letter or a digit",
    VARIANT: "a name of up to 80 letters, digits, `_` and `-` that starts with a letter or a digit",
    COLOUR: "a colour as `#rrggbb`",
    DOTTED: "a key as `section.field`",
    STORAGE: "an address as `postgresql://user@host/database`",
}
NUMBERS = {"integer": "a whole number", "number": "a number"}
BOUNDS = {
    "minimum": "of at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "of at most {}",
    "exclusiveMaximum": "below {}",
}
KEY = "[key]"
"""How pydantic ends the path of a problem that a mapping's key has, and not its value."""

PREFACE = """\
# Settings

Every key of `params.yaml`, written by `ccwm params docs --write` from `src/ccwm/settings/`: edit that, not this page.
`ccwm params check` holds a file against it, and `docs/params.schema.json` lets an editor do so while you type.

A file names every key, so that no default in the code can make a result. The default is what to write where you do
not know better: the paper's value wherever the paper names one (where it differs, the sentence says so).
"Environment steps" are simulator frames: actions × `env.action_repeat`.
"""


def known_path(path: Sequence[str | int]) -> tuple[str | int, ...]:
    """The part of a problem's path that stands in the file, without pydantic's names of a union's branches."""
    return tuple(path[: _follow(path)[1]])


def known_keys(path: Sequence[str | int]) -> list[str]:
    """The keys of the section at ``path``; none where any name may stand."""
    return list(_follow(path)[0].get("properties", {}))


def allowed(path: Sequence[str | int]) -> str:
    """What may stand at ``path``: ``("env", "action_repeat")`` → `a whole number from 1 to 16`."""
    if path[-1] == KEY:
        return PATTERNS[next(iter(_follow(path[:-2])[0]["patternProperties"]))]
    return _describe(_follow(path)[0])


def json_schema() -> str:
    """The JSON schema of ``params.yaml``, which editors read."""
    return json.dumps(_schema(), indent=2, ensure_ascii=False) + "\n"


def reference_page() -> str:
    """Every key with its range, default and meaning, as Markdown."""
    lines = [PREFACE]
    for section, node in _schema()["properties"].items():
        lines += [f"## {section}", ""]
        if "properties" not in _resolve(node):
            lines += [f"{node['description']} Allowed: {_describe(node)}.", ""]
            continue
        lines += [
            _resolve(node)["description"],
            "",
            "| key | allowed | default | meaning |",
            "| --- | --- | --- | --- |",
        ]
        for name, field in _resolve(node)["properties"].items():
            default = f"`{json.dumps(field['default'])}`" if "default" in field else "none"
            lines.append(f"| `{section}.{name}` | {_describe(field)} | {default} | {field['description']} |")
        lines.append("")
    return "\n".join(lines)


@functools.cache
def _schema() -> Node:
    return Settings.model_json_schema()


def _resolve(node: Node) -> Node:
    """The definition that a reference points to, or the node itself."""
    if "$ref" not in node:
        return node
    definition: Node = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
    return definition


def _follow(path: Sequence[str | int]) -> tuple[Node, int]:
    """The schema where a path ends, and how many of its parts lead there."""
    node = _schema()
    for depth, part in enumerate(path):
        below = _child(node, part)
        if below is None:
            return node, depth
        node = _resolve(below)
    return node, len(path)


def _child(node: Node, part: str | int) -> Node | None:
    if isinstance(part, int):
        return node["prefixItems"][part] if "prefixItems" in node else node.get("items")
    if part in node.get("properties", {}):
        child: Node = node["properties"][part]
        return child
    return next(iter(node.get("patternProperties", {}).values()), None) if part != KEY else None


def _describe(node: Node) -> str:
    node = _resolve(node)
    if "anyOf" in node:
        return " or ".join(_describe(branch) for branch in node["anyOf"])
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        *others, last = (f"`{value}`" for value in node["enum"])
        return f"{', '.join(others)} or {last}"
    match node.get("type"):
        case "integer" | "number":
            return _number(node)
        case "string":
            return PATTERNS[node["pattern"]] if "pattern" in node else _text(node)
        case "array":
            return _list(node)
        case "object":
            return _mapping(node)
        case "boolean":
            return "`true` or `false`"
        case "null":
            return "`null`"
    return "any value"


def _number(node: Node) -> str:
    words = NUMBERS[node["type"]]
    if "minimum" in node and "maximum" in node:
        return f"{words} from {node['minimum']} to {node['maximum']}"
    bounds = [text.format(node[bound]) for bound, text in BOUNDS.items() if bound in node]
    return f"{words} {' and '.join(bounds)}"


def _text(node: Node) -> str:
    return f"text of {node['minLength']} to {node['maxLength']} characters"


def _list(node: Node) -> str:
    if "prefixItems" in node:
        return f"a list of {len(node['prefixItems'])}, each {_describe(node['prefixItems'][0])}"
    return f"a list of one or more, each {_describe(node['items'])}"


def _mapping(node: Node) -> str:
    if "properties" in node:
        return f"a section with the keys {', '.join(node['properties'])}"
    if "patternProperties" not in node:
        return "`{key: value}` pairs"
    ((pattern, value),) = node["patternProperties"].items()
    return f"`{{name: value}}` pairs, with {PATTERNS[pattern]}; each value {_describe(value)}"
