"""Resolves a network's arguments from its family and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fourstage.errors import UnknownNameError
from fourstage.recipe import part_settings
from fourstage.recipe.ledger import Ledger
from models import catalogue
from models.signatures import settings_of


@dataclass(frozen=True)
class ResolvedNetwork:
    """A network that a stage trains.

    Attributes:
        family: Name of its file.
        arguments: All its arguments except vocabulary size and dtype.
        defaults: The default arguments in its file.
    """

    family: str
    arguments: Mapping[str, Any]
    defaults: Mapping[str, Any]


def resolve_network(
    ledger: Ledger, family: str, size: str | Mapping[str, Any], place: str
) -> ResolvedNetwork:
    """A network with every argument explicit.

    Args:
        ledger: Collects faults and origins.
        family: Name of its file.
        size: Name of a size in that file, or the network's own arguments.
        place: Path of the size, such as ``size`` or ``stages[1].size``.
    """
    known = settings_of(catalogue.file_of("families", family, ledger.folders))
    literals = catalogue.literals("families", family, ledger.folders)
    sizes = literals.get("SIZES", {})
    fallback = {s.name: s.default for s in known.values() if not s.required}
    if isinstance(size, str):
        if size not in sizes:
            ledger.faults.append(
                UnknownNameError(
                    f"{ledger.recipe.where}: {place}",
                    size,
                    f"a size of family {family!r}",
                    sizes,
                    "A mapping of the network's own arguments is allowed too.",
                )
            )
            return ResolvedNetwork(family, fallback, fallback)
        given = sizes[size]
    else:
        given = size
        ledger.settings(place, given, known, f"an argument of family {family!r}")
    for name in known:
        if name not in given:
            ledger.origins[f"{place}.{name}"] = f"default of {family}"
        elif isinstance(size, str):
            ledger.origins[f"{place}.{name}"] = f"size {size} of {family}"
    whole = {**fallback, **given}
    for heads, width in (("num_heads", "hidden_dim"), ("entity_heads", "entity_dim")):
        many, wide = whole.get(heads), whole.get(width)
        if "head_dim" in known or not (isinstance(many, int) and isinstance(wide, int)):
            continue  # heads have a width of their own, or there are none
        if many > 0 and wide % many:
            ledger.fault(
                place, f"expected {width} to be a multiple of {heads}, got {wide} and {many}"
            )
        elif many > 0 and literals.get("EVEN_HEADS") and wide // many % 2:
            ledger.fault(
                place,
                f"{family} expects an even {width} / {heads}, got {wide} / {many} = {wide // many}",
            )
    return ResolvedNetwork(
        family, {**fallback, **part_settings.as_declared(given, known)}, fallback
    )
