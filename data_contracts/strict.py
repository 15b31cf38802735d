"""What every part of a written contract has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """A mapping in a source, suite or reference: no unknown keys, no type coercion, immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
