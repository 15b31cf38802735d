"""What the work of a choice takes, charged to it while it goes on."""

from __future__ import annotations

from tasks.comparison.model_choice import PREPARED, ModelChoice


class Meter:
    """Charges a choice with the seconds that pass, step by step, so that a killed attempt is paid.

    The first step is also charged with what has passed since the last charge.

    Args:
        choice: The choice.
        name: The candidate; empty for what is outside the rounds.
        to: Without a candidate, ``prepared`` or ``judged``.
    """

    def __init__(self, choice: ModelChoice, name: str = "", to: str = PREPARED):
        self._choice, self._name, self._to, self._step = choice, name, to, ""

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *failed: object) -> None:
        self.lap()

    def begin(self, step: str) -> None:
        """Say whose seconds the next ones are."""
        self._step = step

    def lap(self, least: float = 0.0) -> float:
        """Charge the seconds since the last lap to the step that was begun.

        Args:
            least: What the step has cost at least, in all attempts.

        Returns:
            The seconds.
        """
        passed = self._choice.clock.take()
        self._choice.charge(self._step, passed, least, name=self._name, to=self._to)
        return passed
