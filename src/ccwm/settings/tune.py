"""The settings of a search."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from ccwm.settings.section import STORAGE, Key, Name, Section, Seed, VariantName

Bound = Annotated[float, Field(ge=-1e12, le=1e12)]


class Parameter(Section):
    """One setting that a search may change, and how far."""

    kind: Literal["float", "int", "choice"]
    """`float` and `int` have bounds, `choice` has a list."""
    low: Bound | None = None
    """Least value."""
    high: Bound | Key | None = None
    """Greatest value, or the key of another parameter that this one must not exceed."""
    log: bool = False
    """Whether values are drawn evenly over orders of magnitude."""
    choices: list[bool | int | float | Annotated[str, Field(max_length=200)] | None] | None = None
    """The values of a `choice`."""

    @model_validator(mode="after")
    def _is_whole(self) -> Parameter:
        if self.kind == "choice":
            if not self.choices or self.low is not None or self.high is not None or self.log:
                raise ValueError("must have `choices`, at least one, and neither bounds nor log, as its kind is choice")
            return self
        if self.low is None or self.high is None or self.choices is not None:
            raise ValueError(f"must have `low` and `high` and no choices, as its kind is {self.kind}")
        bounds = [self.low] if isinstance(self.high, str) else [self.low, self.high]
        if self.kind == "int" and any(bound != int(bound) for bound in bounds):
            raise ValueError("must have whole numbers as bounds, as its kind is int")
        if self.log and (isinstance(self.high, str) or self.low <= 0):
            raise ValueError("must have a number above 0 as its low and a number as its high, as its scale is log")
        if not isinstance(self.high, str) and self.low >= self.high:
            raise ValueError("must have a low that is below its high")
        return self


class Tune(Section):
    """The search for better settings; trials, hours, top, storage, heartbeat and keep may change when it is resumed."""

    study: VariantName = "truncation"
    """Name of the search: processes that give the same name work on the same one."""
    task: Name
    """The environment in which trials are trained."""
    variant: VariantName = "ccwm-truncated"
    """The entry of `variants` that is tuned; `ccwm tune apply` writes the winner into its overrides."""
    space: dict[Key, Parameter] = Field(min_length=1)
    """What is searched: a setting's key, its kind, and its bounds or choices."""
    overrides: dict[Key, JsonValue] = Field({})
    """Settings of every trial that the pipeline does not have, such as a smaller `train.env_steps`."""
    measure: Literal["auc", "final", "truncation_f1"] = "auc"
    """What is maximised: mean height of the learning curve, its last return, or in a maze the truncation's F1."""
    seeds: list[Seed] = Field([0, 1, 2], min_length=1)
    """Seeds of every trial, one after the other; its value is the mean over them."""
    fresh_seeds: list[Seed] = Field([100, 101, 102], min_length=1)
    """Seeds on which the best trials are trained again before a winner is named."""
    top: int = Field(3, ge=1, le=1000)
    """How many of the best trials are trained again on the fresh seeds; the default settings always are."""
    sampler: Literal["tpe", "grid", "random"] = "tpe"
    """How points are proposed."""
    pruner: Literal["median", "hyperband", "none"] = "median"
    """How hopeless trials are pruned: `median` at equal steps, Optuna's `hyperband`, or not at all."""
    startup: int = Field(5, ge=1, le=10_000)
    """Trials before `tpe` models the measure (until then it draws at random) and before `median` prunes."""
    grid: int = Field(5, ge=2, le=1000)
    """Points that `grid` lays over each float or int."""
    trials: int | None = Field(30, ge=1)
    """Trials of the whole study, those of other processes included; null leaves the end to hours."""
    hours: float | None = Field(None, gt=0)
    """Hours after which this process starts no further trial; null leaves the end to trials."""
    storage: Annotated[str, Field(pattern=STORAGE)] | None = None
    """`postgresql://user@host/database` for several hosts; null is a journal in `.work/tune`, for one host."""
    heartbeat: int = Field(30, ge=1, le=3600)
    """Seconds between a process's heartbeats on PostgreSQL; its trial is retried when four have been missed."""
    keep: Literal["best", "all", "none"] = "best"
    """Whose trained agents stay in `.work/tune`: the best trial's, every trial's, or none."""

    @model_validator(mode="after")
    def _is_sound(self) -> Tune:
        listed = [*self.seeds, *self.fresh_seeds]
        if len(set(listed)) != len(listed):
            raise ValueError("must not name a seed twice; fresh_seeds are none of seeds, or they would not be fresh")
        if self.trials is None and self.hours is None:
            raise ValueError("must have trials, hours or both, or the search would never end")
        return self
