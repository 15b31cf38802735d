"""In-memory arguments of flows and tasks, which Prefect neither inspects nor stores.

Prefect searches every argument for results of other tasks, and its server stores a flow's arguments
as JSON. An argument wrapped by `handed` is not searched, and the run's page shows ``<InMemory>``
for it. A parameter of type `Handed` is not on a deployment's form, which takes plain JSON only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Never, TypeVar, cast

from prefect.utilities.annotations import quote
from pydantic import InstanceOf
from pydantic.json_schema import SkipJsonSchema

T = TypeVar("T")

Handed = SkipJsonSchema[InstanceOf[T] | None]


class InMemory(quote[Any]):
    """An object quoted for Prefect that refuses serialisation to JSON."""

    def __iter__(self) -> Iterator[Never]:
        """Refuse serialisation.

        Raises:
            TypeError: Always; Prefect then stores this class's name.
        """
        raise TypeError("an object in memory is not stored")


def handed(it: T) -> T:
    """Wrap an object as an argument of a flow or task, which receives the object itself."""
    return cast(T, InMemory(it))
