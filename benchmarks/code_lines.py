"""Count the lines of code in ``src/``: no blank lines, comments or docstrings.  ``python benchmarks/code_lines.py``"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src" / "ccwm"
PASSED_OVER = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Lines that hold code; a string that stands alone, as docstrings do, is none."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in PASSED_OVER:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def main() -> None:
    """Print the lines of every package, largest first, and their sum."""
    packages: Counter[str] = Counter()
    for path in SOURCES.rglob("*.py"):
        parts = path.relative_to(SOURCES).parts
        packages[parts[0] if len(parts) > 1 else "(top level)"] += code_lines(path.read_text(encoding="utf-8"))
    for package, lines in packages.most_common():
        print(f"{lines:6,} {package}")
    print(f"{packages.total():6,} in all")


if __name__ == "__main__":
    main()
