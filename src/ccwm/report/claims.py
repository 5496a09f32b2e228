"""What the paper claims and the numbers that it prints: ``claims.yaml``, checked whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from ccwm.errors import UserError
from ccwm.settings.parsing import read_yaml
from ccwm.settings.section import Fraction, Name, Section, VariantName

Text = Annotated[str, Field(min_length=1, max_length=400)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]


NEEDS = {
    "comparable": {"margin"},
    "no_worse": {"margin"},
    "at_least": {"value"},
    "below": {"value"},
    "tally": {"ahead", "behind"},
}
"""The fields that a rule of each kind must have."""


class BadClaims(UserError, ValueError):
    """claims.yaml is refused; the message names each key."""


Observation = Literal["pixels", "state"]
"""What agents see, as `env.observation` has it."""


class Tier(Section):
    """A scale at which claims are judged; below its least numbers everything is undecided."""

    title: Text
    """As the page says it."""
    observation: Observation
    """A study belongs to the tier whose `env.observation` is its own."""
    seeds: int = Field(ge=2)
    """Seeds that must have run."""
    budget: Fraction
    """Share of the budget in environment steps that must have been trained."""
    env_steps: int | None = Field(default=None, ge=1)
    """The budget; null means each claim's own."""
    preset: Name | None = None
    """The preset that runs what a claim needs, where the claim names none."""


class Tiers(Section):
    """The paper's own scale, and ours."""

    paper: Tier
    states: Tier


class Measure(Section):
    """What is computed for each seed: of its learning curve, or a number of metrics.json or of another table."""

    curve: Literal["area", "end"] | None = None
    """`area` is the curve's mean height, `end` the mean of its last tenth, both up to the claim's `env_steps`."""
    stage: Literal["train", "evaluate", "rollout-viz", "transfer"] | None = None
    """The stage whose files hold the number."""
    key: Text | None = None
    """Where it stands in metrics.json, as in `return_mean` or `rows/R+M/mean`; or a column of `table`."""
    table: Text | None = None
    """A CSV file of the stage, in the place of metrics.json."""
    row: Text | None = None
    """The row of `table`, by its first column."""
    minus: Text | None = None
    """Another key or column whose number is taken away."""

    @model_validator(mode="after")
    def _one_way(self) -> Measure:
        if (self.curve is None) == (self.stage is None) or (self.stage is None) != (self.key is None):
            raise ValueError("needs either `curve`, or `stage` and `key`")
        if (self.table is None) != (self.row is None) or (self.curve is not None and (self.table or self.minus)):
            raise ValueError("`table` and `row` go together, and with `stage` and `key`")
        return self


class Rule(Section):
    """When our interval agrees with the claim; docs/claims.md has each in words."""

    kind: Literal["greater", "comparable", "no_worse", "at_least", "below", "tally"]
    margin: Fraction = 0.0
    """Share of the other's value, or of `value`, within which two count as the same."""
    value: float | None = None
    """The paper's number that `at_least` and `below` compare with."""
    ahead: int | None = Field(default=None, ge=0)
    """`tally`: on how many tasks at least the first must be ahead."""
    behind: int | None = Field(default=None, ge=0)
    """`tally`: on how many tasks at most it may be behind."""

    @model_validator(mode="after")
    def _complete(self) -> Rule:
        needed = NEEDS.get(self.kind, set())
        optional = {"margin"} if "value" in needed else set()
        given = self.model_fields_set
        if missing := sorted(needed - given):
            raise ValueError(f"kind `{self.kind}` needs `{missing[0]}`")
        if unused := sorted(given - needed - optional - {"kind"}):
            raise ValueError(f"kind `{self.kind}` does not read `{unused[0]}`")
        return self


class Reduced(Section):
    """What differs in a claim where it is put to agents that see states; or why it cannot be."""

    why: Text | None = None
    """Why the claim cannot be put there; then nothing else stands here."""
    says: Text | None = None
    tasks: list[Name] | None = None
    """Of a `tally` alone: the tasks that are counted."""
    quoted: Text | None = None
    rule: Rule | None = None
    budget: Fraction | None = None
    preset: Name | None = None

    @model_validator(mode="after")
    def _why_alone(self) -> Reduced:
        if self.why is not None and len(self.model_fields_set) > 1:
            raise ValueError("`why` stands alone: a claim that cannot be put has no rule")
        return self


class Claim(Section):
    """One thing that the paper says, and how our results are held against it."""

    id: Slug
    says: Text
    """The claim in a sentence."""
    where: Text
    """Section, figure or table of the paper."""
    printed: Text
    """The paper's numbers as printed; or that it prints none."""
    tasks: list[Name] = Field(min_length=1)
    """The claim is judged on each of them by itself, by a `tally` on all together."""
    of: VariantName
    """The variant that the claim is about."""
    than: VariantName | None = None
    """The variant that it is compared with; ours is the difference, paired by seed."""
    quoted: Text | None = None
    """The quoted method that it is compared with instead."""
    measure: Measure
    rule: Rule
    env_steps: int = Field(ge=1)
    """Environment steps of training that the paper's statement is about."""
    confidence: float = Field(0.95, gt=0.5, lt=1)
    """Of our t interval over seeds."""
    preset: Name
    """The preset that runs what the claim needs."""
    budget: Fraction | None = None
    """Share of `env_steps` that must have been trained; null means the tier's."""
    units: Literal["factor", "absolute"] | None = None
    """`transfer.units` that a study must have to be asked, where the claim is about changed environments."""
    states: Reduced = Reduced()
    """What differs where agents see states."""

    @model_validator(mode="after")
    def _compared_with_one(self) -> Claim:
        others = [other for other in (self.than, self.quoted, self.rule.value) if other is not None]
        if len(others) != 1:
            raise ValueError("needs exactly one of `than`, `quoted` and `rule.value` to compare with")
        return self

    @property
    def variants(self) -> list[str]:
        """The variants that must have run."""
        return [self.of] if self.than is None else [self.of, self.than]


class Quoted(Section):
    """Asymptotic returns that other work published; the paper quotes them, and so do we."""

    method: Text
    inputs: Text
    env_steps: int = Field(ge=1)
    source: Text
    best_possible: float = Field(gt=0)
    """The best possible return of the episodes behind them; returns of other episodes are not put beside them."""
    returns: dict[Name, float]

    def speaks_of(self, task: str, best_possible: float | None) -> bool:
        """Whether there is a return for the task, of episodes like those with this best possible return."""
        return task in self.returns and best_possible in (None, self.best_possible)


class Published(Section):
    """Mean returns at a few environment steps that another project published with its code."""

    method: Text
    inputs: Observation
    source: Text
    best_possible: float = Field(gt=0)
    steps: list[int] = Field(min_length=1)
    returns: dict[Name, list[float | None]]
    """By task, one for each of `steps`; null where none is published."""

    @model_validator(mode="after")
    def _as_many(self) -> Published:
        if odd := [task for task, of in self.returns.items() if len(of) != len(self.steps)]:
            raise ValueError(f"returns.{odd[0]}: must have one number for each of `steps`")
        return self

    def points(self, task: str, best_possible: float | None) -> dict[int, float]:
        """The returns on a task by environment steps; none of episodes unlike ours."""
        if best_possible not in (None, self.best_possible):
            return {}
        found = zip(self.steps, self.returns.get(task, []), strict=False)
        return {steps: value for steps, value in found if value is not None}


class Normal(Section):
    """When a baseline of ours counts as normal beside a published one."""

    variant: VariantName
    method: Text
    margin: Fraction
    """Share of the published return by which ours may be lower."""
    nearness: Fraction
    """Share by which our environment steps may differ from the published ones."""


class PaperRow(Section):
    """A row of the paper's transfer table: mean and standard deviation of both agents, and its p."""

    ccwm: tuple[float, float]
    dreamer: tuple[float, float]
    p: float = Field(ge=0, le=1)


class PaperTransfer(Section):
    """The paper's transfer table."""

    task: Name
    where: Text
    rows: dict[str, PaperRow]


class Paper(Section):
    """All of claims.yaml."""

    title: Text
    tiers: Tiers
    quoted: list[Quoted]
    published: list[Published]
    normal: tuple[Normal, ...]
    transfer: PaperTransfer
    claims: list[Claim]

    @model_validator(mode="after")
    def _names_fit(self) -> Paper:
        for claim in self.claims:
            if claim.states.tasks is not None and claim.rule.kind != "tally":
                raise ValueError(
                    f"claim {claim.id!r}: `states.tasks` is for a tally; other claims are put task by task"
                )
            for tier in Tiers.model_fields:
                asked = self.asked(claim, tier)
                if isinstance(asked, Claim) and None in [self.level(asked, tier, task) for task in asked.tasks]:
                    raise ValueError(f"claim {claim.id!r}: {asked.quoted!r} has no return for all of its tasks")
        ids = [claim.id for claim in self.claims]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"claims: the id {twice[0]!r} stands twice")
        return self

    def asked(self, claim: Claim, tier: str) -> Claim | str:
        """The claim as it is put at a tier; where it cannot be put there, the sentence that says why."""
        if tier == "paper":
            return claim
        if claim.states.why is not None:
            return claim.states.why
        changed = {name: of for name in Reduced.model_fields if (of := getattr(claim.states, name)) is not None}
        defaults = {"preset": self.tiers.states.preset or claim.preset, "states": Reduced()}
        steps = {"env_steps": min(claim.env_steps, self.tiers.states.env_steps or claim.env_steps)}
        return Claim.model_validate({**dict(claim), **defaults, **steps, **changed})

    def level(self, claim: Claim, tier: str, task: str, best_possible: float | None = None) -> float | None:
        """The number that a claim compares with; 0 where it compares with a variant, None where none is published."""
        if claim.quoted is None:
            return claim.rule.value or 0.0
        inputs = getattr(self.tiers, tier).observation
        found = self.published_on(task, inputs, best_possible).get(claim.quoted, {})
        return found.get(claim.env_steps, self.quoted_on(task, best_possible).get(claim.quoted))

    def published_on(self, task: str, inputs: str, best_possible: float | None = None) -> dict[str, dict[int, float]]:
        """Returns on a task by method and environment steps, of agents that see the same, in episodes like ours."""
        of_inputs = {of.method: of.points(task, best_possible) for of in self.published if of.inputs == inputs}
        return {method: points for method, points in of_inputs.items() if points}

    def quoted_on(self, task: str, best_possible: float | None = None) -> dict[str, float]:
        """The published return of every method that has one for the task, of episodes like ours."""
        return {of.method: of.returns[task] for of in self.quoted if of.speaks_of(task, best_possible)}


def load_claims(path: Path) -> Paper:
    """Read and check the whole file."""
    content = read_yaml(path)
    try:
        return Paper.model_validate_json(json.dumps(content))
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, of['loc'])) or 'the file'}: {of['msg'].removeprefix('Value error, ')}"
            for of in error.errors()
        ]
        raise BadClaims(f"{path}: " + "\n  ".join(problems)) from None
