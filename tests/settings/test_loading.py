"""A file is read exactly as DVC reads it, and one that is no file of settings is refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from dvc.utils.serialize import load_yaml

from ccwm.settings.loading import load_settings
from ccwm.settings.parsing import BadParams, read_yaml

TRICKY = """\
plain: 1e-4
signed: -1e+4
capital: 1E5
dotted: 1.0e-07
word: no
other: [yes, on, off, No, y]
truth: [true, True, FALSE]
nothing: [null, ~, ]
octal: [010, 0o10, 0x10, 1_000]
time: 12:30:45
infinite: [.inf, -.inf]
quoted: ["1", '1e-4']
section: {a: 1}
"""


def test_numbers_and_words_are_read_as_dvc_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(TRICKY)
    ours = read_yaml(path)
    assert ours == load_yaml(path)
    assert (ours["plain"], ours["word"]) == (0.0001, "no")  # PyYAML says "1e-4" and False


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("study: 1\nenv: 2\nstudy: 3\n", 'line 3: found duplicate key "study"'),
        ("env:\n  size: 32\n  size: 64\n", 'line 3: found duplicate key "size"'),
        ("env: [1, 2\n", "is no valid YAML"),
        ("", "must hold sections such as `study:`, it holds NoneType"),
        ("- study\n", "must hold sections such as `study:`, it holds list"),
        ("study: 2026-01-01\n", "date is not JSON serializable; settings are numbers, text, lists and sections"),
        ("study: &a [*a]\n", "line 1: *a: settings have no aliases"),
        ("a: !!python/object:os.system {}\n", "is no valid YAML"),
    ],
    ids=["section twice", "field twice", "torn", "empty", "list", "date", "circle", "object"],
)
def test_a_file_that_holds_no_settings(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    with pytest.raises(BadParams) as caught:
        load_settings(path)
    assert str(caught.value).startswith(str(path))
    assert told in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_bytes(b"study: \xff\xfe\n")
    with pytest.raises(BadParams, match="is no valid YAML"):
        load_settings(path)


def test_a_missing_file_names_the_cure(tmp_path: Path) -> None:
    with pytest.raises(BadParams, match=r"params\.yaml is missing: .*`ccwm preset`"):
        load_settings(tmp_path / "params.yaml")
