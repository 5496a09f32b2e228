"""What stands in the place of the studies of a world model where an agent has none: empty tables, and the flag."""

from __future__ import annotations

from pathlib import Path

from ccwm.files import write_csv, write_json
from ccwm.readers import BadResult, read_object
from ccwm.studies.images import PICTURES

FLAG = "has_world_model"
TABLES = ("errors.csv", "horizons.csv", "components.csv", "retracing.csv", "embeddings.csv", "truncation.csv")


def write_without_model(folder: Path) -> None:
    """Write the files that DVC expects of rollout-viz, without a line."""
    write_json(folder / "metrics.json", {FLAG: False})
    for name in TABLES:
        write_csv(folder / name, [])
    (folder / PICTURES).mkdir()


def has_world_model(folder: Path) -> bool:
    """Whether the results of rollout-viz are those of an agent with a world model, as far as they can be read."""
    try:
        return read_object(folder / "metrics.json").get(FLAG) is not False
    except BadResult:
        return True
