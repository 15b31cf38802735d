"""What a flow hands to a flow or task that it calls, and Prefect passes on unread.

Prefect looks into every argument for results of other tasks, and its server stores those of a flow
as JSON. One that is `handed` is not looked into, and the run's page shows ``<InMemory>`` for it. A
parameter of type `Handed` is not on a deployment's form: whoever starts the flow by itself gives
plain JSON.
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
    """Quotes an object for Prefect, and refuses to be turned into JSON."""

    def __iter__(self) -> Iterator[Never]:
        """Refuse.

        Raises:
            TypeError: Always; Prefect then stores this class's name.
        """
        raise TypeError("an object in memory is not stored")


def handed(it: T) -> T:
    """An object as an argument of a flow or task; what is called gets the object itself."""
    return cast(T, InMemory(it))
