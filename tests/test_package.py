"""`import ccwm`."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_importing_ccwm_loads_nothing_heavy() -> None:
    code = "import sys, ccwm; print(sorted({'torch', 'mlflow', 'lightning', 'mujoco'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_an_unknown_name_of_the_package_is_an_attribute_error() -> None:
    import ccwm

    with pytest.raises(AttributeError, match="'load_agents'"):
        ccwm.load_agents  # noqa: B018
