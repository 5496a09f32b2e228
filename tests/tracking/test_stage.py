"""A stage sees just what it declares, and leaves a record of its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccwm.cells import STAGES
from ccwm.settings.loading import load_settings
from ccwm.settings.schema import Settings
from ccwm.tracking.stage import for_stage

SMOKE = Path(__file__).parents[2] / "presets" / "smoke.yaml"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_sees_just_the_sections_that_it_declares(stage: str) -> None:
    settings = load_settings(SMOKE)
    view = for_stage(settings, stage)
    for section in Settings.model_fields:
        if section in (*STAGES[stage], "tracking"):
            assert getattr(view, section) == getattr(settings, section)
        else:
            with pytest.raises(AttributeError, match=section):
                getattr(view, section)
