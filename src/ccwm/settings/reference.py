"""The settings in words, from their JSON schema: what a key allows, and the reference page of all keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ccwm.settings.schema import Settings
from ccwm.settings.section import COLOUR, DOTTED, NAME, STORAGE, VARIANT

Node = Mapping[str, Any]
"""A part of a JSON schema."""

SCHEMA: Node = Settings.model_json_schema()

PATTERNS = {
    NAME: "a name of up to 80 letters, digits, `_`, `.`, `:` and `-` that starts with a letter or a digit",
    VARIANT: "a name of up to 80 letters, digits, `_` and `-` that starts with a letter or a digit",
    COLOUR: "a colour as `#rrggbb`",
    DOTTED: "a key as `section.field`",
    STORAGE: "an address as `postgresql://user@host/database`",
}
BOUNDS = {"minimum": "of at least", "exclusiveMinimum": "above", "maximum": "of at most", "exclusiveMaximum": "below"}
KEY = "[key]"
"""How pydantic ends the path of a problem that a mapping's key has, and not its value."""


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
    return json.dumps(SCHEMA, indent=2, ensure_ascii=False) + "\n"


def reference_page() -> str:
    """Every key with its range, default and meaning, as Markdown; the docstring of Settings opens the page."""
    lines = ["# Settings", "", SCHEMA["description"], ""]
    for section, node in SCHEMA["properties"].items():
        lines += [f"## {section}", "", _resolve(node)["description"]]
        if keys := _resolve(node).get("properties"):
            lines += ["", "| key | allowed | default | meaning |", "| --- | --- | --- | --- |"]
            for name, field in keys.items():
                default = f"`{json.dumps(field['default'])}`" if "default" in field else "none"
                lines.append(f"| `{section}.{name}` | {_describe(field)} | {default} | {field['description']} |")
        else:
            lines.append(f"Allowed: {_describe(node)}.")
        lines.append("")
    return "\n".join(lines)


def _resolve(node: Node) -> Node:
    """The definition that a reference points to, or the node itself."""
    name = node.get("$ref", "").rpartition("/")[2]
    definition: Node = SCHEMA["$defs"][name] if name else node
    return definition


def _follow(path: Sequence[str | int]) -> tuple[Node, int]:
    """The schema where a path ends, and how many of its parts lead there."""
    node = SCHEMA
    for depth, part in enumerate(path):
        match node:
            case {"prefixItems": items} if isinstance(part, int):
                below = items[part]
            case {"items": below} if isinstance(part, int):
                pass
            case {"properties": keys} if part in keys:
                below = keys[part]
            case {"patternProperties": named} if part != KEY:
                (below,) = named.values()
            case _:
                return node, depth
        node = _resolve(below)
    return node, len(path)


def _describe(node: Node) -> str:
    """What a part of the schema allows, in words."""
    match _resolve(node):
        case {"anyOf": branches}:
            return " or ".join(map(_describe, branches))
        case {"const": value}:
            return f"`{value}`"
        case {"enum": [*others, last]}:
            return f"{', '.join(f'`{value}`' for value in others)} or `{last}`"
        case {"pattern": pattern}:
            return PATTERNS[pattern]
        case {"type": "string", "maxLength": most}:
            return f"text of {node.get('minLength', 0)} to {most} characters"
        case {"type": "integer" | "number" as kind}:
            return _number("a whole number" if kind == "integer" else "a number", node)
        case {"prefixItems": [first, *_] as items}:
            return f"a list of {len(items)}, each {_describe(first)}"
        case {"items": item}:
            return f"a list of one or more, each {_describe(item)}"
        case {"properties": keys}:
            return f"a section with the keys {', '.join(keys)}"
        case {"patternProperties": named}:
            ((pattern, value),) = named.items()
            return f"`{{name: value}}` pairs, with {PATTERNS[pattern]}; each value {_describe(value)}"
        case {"type": "object"}:
            return "`{key: value}` pairs"
        case {"type": "boolean"}:
            return "`true` or `false`"
        case {"type": "null"}:
            return "`null`"
    return "any value"


def _number(words: str, node: Node) -> str:
    if "minimum" in node and "maximum" in node:
        return f"{words} from {node['minimum']} to {node['maximum']}"
    return f"{words} {' and '.join(f'{text} {node[bound]}' for bound, text in BOUNDS.items() if bound in node)}"
