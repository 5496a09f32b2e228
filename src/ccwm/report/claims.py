"""What the paper claims and the numbers that it prints: ``claims.yaml``, checked whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from ccwm.errors import UserError
from ccwm.settings.parsing import read_yaml
from ccwm.settings.section import Fraction, Name, Section, VariantName

Text = Annotated[str, Field(min_length=1, max_length=400)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]


class BadClaims(UserError, ValueError):
    """claims.yaml is refused; the message names each key."""


class Scale(Section):
    """From which scale on a verdict is given; below it everything is undecided."""

    seeds: int = Field(ge=2)
    """Seeds that must have run."""
    budget: Fraction
    """Share of the paper's environment steps that must have been trained."""


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
    ahead: int | None = Field(None, ge=0)
    """`tally`: on how many tasks at least the first must be ahead."""
    behind: int | None = Field(None, ge=0)
    """`tally`: on how many tasks at most it may be behind."""

    @model_validator(mode="after")
    def _complete(self) -> Rule:
        needs = {"comparable": {"margin"}, "no_worse": {"margin"}, "tally": {"ahead", "behind"}}
        needed = needs.get(self.kind, {"value"} if self.kind in ("at_least", "below") else set())
        optional = {"kind", "margin"} if self.kind in ("at_least", "below") else {"kind"}
        given = self.model_fields_set
        if missing := sorted(needed - given):
            raise ValueError(f"kind `{self.kind}` needs `{missing[0]}`")
        if unused := sorted(given - needed - optional):
            raise ValueError(f"kind `{self.kind}` does not read `{unused[0]}`")
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

    @model_validator(mode="after")
    def _compared_with_one(self) -> Claim:
        others = [other for other in (self.than, self.quoted, self.rule.value) if other is not None]
        if len(others) != 1:
            raise ValueError("needs exactly one of `than`, `quoted` and `rule.value` to compare with")
        return self

    @property
    def variants(self) -> list[str]:
        """The variants that must have run."""
        return [self.of, *([self.than] if self.than is not None else [])]


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
    scale: Scale
    quoted: list[Quoted]
    transfer: PaperTransfer
    claims: list[Claim]

    @model_validator(mode="after")
    def _names_fit(self) -> Paper:
        methods = {of.method: of.returns for of in self.quoted}
        for claim in self.claims:
            if claim.quoted is not None and not {*claim.tasks} <= methods.get(claim.quoted, {}).keys():
                raise ValueError(f"claim {claim.id!r}: `quoted` {claim.quoted!r} has no return for all of its tasks")
        ids = [claim.id for claim in self.claims]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"claims: the id {twice[0]!r} stands twice")
        return self

    def quoted_on(self, task: str, best_possible: float | None = None) -> dict[str, float]:
        """The published return of every method that has one for the task, of episodes like ours."""
        return {of.method: of.returns[task] for of in self.quoted if of.speaks_of(task, best_possible)}


def load_claims(path: Path) -> Paper:
    """Read and check the whole file."""
    content = read_yaml(path)
    try:
        return Paper.model_validate_json(json.dumps(content))
    except ValidationError as error:
        problems = list(_problems(error))
        raise BadClaims(
            f"{path}: {problems[0]}" if len(problems) == 1 else "\n  ".join([f"{path}:", *problems])
        ) from None


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        key = ".".join(map(str, problem["loc"])) or "the file"
        yield f"{key}: {problem['msg'].removeprefix('Value error, ')}"
