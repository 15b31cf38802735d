"""What is known of a trained model: its stages in order, what was measured after each, its scores.

All of it is read from the manifests of its ancestry, in the store or from MLflow alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.store.ancestry import Ancestry, Manifest, gather, join
from tasks.store.artifacts import Store
from tasks.store.step_names import tokens_step


@dataclass(frozen=True)
class ModelFacts:
    """A model's stages with their measurements, and its evaluation.

    Attributes:
        ancestry: All that it was made from, evaluation and measurements among it.
        stages: Those that trained its network, first to last; no teacher is there.
        measurements: What was measured after a stage, by the stage's key.
        evaluation: Its scores, None where there are no labels.
        probes: What its network knew of each dataset before it was fine-tuned.
    """

    ancestry: Ancestry
    stages: tuple[Manifest, ...]
    measurements: Mapping[str, Manifest]
    evaluation: Manifest | None
    probes: tuple[Manifest, ...] = ()

    @property
    def family(self) -> str:
        """The network's; empty where it came from elsewhere and nothing was trained since."""
        return str(self.stages[-1].settings.get("family", ""))

    @property
    def dataset(self) -> Manifest | None:
        """The rows it was scored on."""
        return self.dataset_of(self.evaluation) if self.evaluation else None

    def dataset_of(self, scores: Manifest) -> Manifest | None:
        """The rows of an evaluation or a probe."""
        return self._input(scores, "dataset")

    @property
    def scores(self) -> Mapping[str, Any]:
        """What the evaluation found; empty where there is none."""
        if self.evaluation is None:
            return {}
        return {**self.evaluation.facts, "latency_ms": self.evaluation.notes.get("latency_ms", {})}

    @property
    def package(self) -> Manifest | None:
        """The served model."""
        return next(iter(self.ancestry.of_kind("package")), None)

    def measured(self) -> Iterator[tuple[Manifest, Manifest]]:
        """Each stage that was measured, with what was found."""
        for stage in self.stages:
            if stage.key in self.measurements:
                yield stage, self.measurements[stage.key]

    def corpora(self, measurement: Manifest) -> dict[str, tuple[Manifest, float | None]]:
        """The texts that a stage's held-out loss was measured on, by name.

        Returns:
            Each with the loss of guessing by frequency, None where it was not measured.
        """
        found = {}
        for name in measurement.facts["heldout_loss"]:
            tokens = self._input(measurement, tokens_step(name))
            text = self._input(tokens, "data") if tokens else None
            if tokens and text:
                found[name] = text, tokens.facts.get("unigram_loss")
        return found

    def _input(self, manifest: Manifest, role: str) -> Manifest | None:
        reference = manifest.inputs.get(role)
        return self.ancestry.manifests.get(reference["key"]) if reference else None


def facts_in_store(store: Store, stage: Mapping[str, str]) -> ModelFacts | None:
    """The facts of a stage in the store, with what was measured of it there.

    Args:
        store: The store.
        stage: Its kind and key.

    Raises:
        BrokenLineage: If the stage is not there.
    """
    whole = gather(store.root, stage)
    for kind in ("measurement", "evaluation"):
        for entry in store.entries(kind):
            if entry.inputs.get("stage", {}).get("key") in whole.manifests:
                whole = join(whole, gather(store.root, entry))
    return facts_of(whole)


def facts_of(ancestry: Ancestry) -> ModelFacts | None:
    """The facts of the stage that an ancestry leads to; None where it holds no stage.

    Args:
        ancestry: Of a package, an evaluation, a measurement or a stage.
    """
    last = ancestry.artifact if ancestry.artifact.stage else ancestry.parent_stage()
    if last is None:
        return None
    stages = [last]
    while (before := stages[0].inputs.get("stage before")) is not None:
        stages.insert(0, ancestry.manifests[before["key"]])
    measurements = {each.inputs["stage"]["key"]: each for each in ancestry.of_kind("measurement")}
    evaluations = ancestry.of_kind("evaluation")
    evaluation = evaluations[-1] if evaluations else None
    probes = tuple(ancestry.of_kind("probe"))
    return ModelFacts(ancestry, tuple(stages), measurements, evaluation, probes)
