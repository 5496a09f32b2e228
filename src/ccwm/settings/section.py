"""The base of every section of settings, and the types that fields share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,79}$"
VARIANT = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$"
COLOUR = r"^#[0-9a-fA-F]{6}$"
DOTTED = r"^[a-z_]+\.[a-z_]+$"
STORAGE = r"^postgresql(\+psycopg)?://.+$"

Name = Annotated[str, Field(pattern=NAME)]
"""A task, layout or experiment name: it becomes part of paths, so it cannot hold a slash or start with a dot."""

VariantName = Annotated[str, Field(pattern=VARIANT)]
"""A variant's name: DVC follows `variants.<name>` dot by dot, so it cannot hold a dot."""

Key = Annotated[str, Field(pattern=DOTTED)]
"""A setting as `section.field`."""

Fraction = Annotated[float, Field(ge=0, le=1)]
LearningRate = Annotated[float, Field(gt=0, le=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class Section(BaseModel):
    """A frozen group of settings that refuses unknown keys, wrong types, inf and NaN."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )
