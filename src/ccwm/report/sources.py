"""The studies that the report's ledger reads: the project's own, and every one that is kept in ``evidence/``."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from ccwm.cells import PARAMS
from ccwm.errors import UserError
from ccwm.report.claims import Tiers
from ccwm.report.results import Results
from ccwm.settings.parsing import read_yaml
from ccwm.settings.schema import Settings, Study

EVIDENCE = Path("evidence")
OWN = "this study"


class Source(NamedTuple):
    """A study by name, its results, and what of its settings decides which questions it can be asked."""

    name: str
    results: Results
    observation: str
    """`env.observation`."""
    units: str
    """`transfer.units`."""

    def is_of(self, tiers: Tiers, tier: str) -> bool:
        """Whether the study belongs to the tier."""
        return bool(getattr(tiers, tier).observation == self.observation)


def own_source(root: Path, settings: Settings) -> Source:
    """The project's own study."""
    return Source(OWN, Results(root, settings.study), settings.env.observation, settings.transfer.units)


def evidence_sources(root: Path) -> list[Source]:
    """Every study below ``evidence/`` that has settings, by name; its results lie as the project's own do."""
    return [read_source(path.parent) for path in sorted((root / EVIDENCE).glob(f"*/{PARAMS}"))]


def all_sources(root: Path, settings: Settings) -> list[Source]:
    """The project's own study first, then those in ``evidence/``."""
    return [own_source(root, settings), *evidence_sources(root)]


def read_source(folder: Path) -> Source:
    """One study; of its settings just what is needed, so that a key that came later does not shut it out."""
    content = read_yaml(folder / PARAMS)
    try:
        study = Study.model_validate(content["study"])
        return Source(folder.name, Results(folder, study), content["env"]["observation"], content["transfer"]["units"])
    except (KeyError, TypeError, ValidationError) as error:
        raise UserError(f"{folder / PARAMS} is no file of settings ({error})") from None
