"""Facts about a trained model: its stages in order, the measurement after each, its scores.

They are read from the manifests of its ancestry, which come from the store or from MLflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.store.ancestry import Ancestry, Manifest, gather, join
from tasks.store.artifacts import Store
from tasks.store.step_names import STAGE_BEFORE, tokens_step

START = "start of "  # before the part, the role of a stage that it starts from


@dataclass(frozen=True)
class ModelFacts:
    """A model's stages with their measurements, and its evaluation.

    Attributes:
        ancestry: Its ancestry, including evaluation and measurements.
        stages: Stages that trained its network, first to last, without teachers.
        measurements: Measurement of each stage, by the stage's key.
        evaluation: Its evaluation; None if there are no labels.
    """

    ancestry: Ancestry
    stages: tuple[Manifest, ...]
    measurements: Mapping[str, Manifest]
    evaluation: Manifest | None

    @property
    def family(self) -> str:
        """Family of the network; empty for an imported network without further training."""
        return str(self.stages[-1].settings.get("family", ""))

    @property
    def starts(self) -> dict[str, str]:
        """By part of its network, what the part started from, in words."""
        found = {}
        for stage in self.stages:
            for part, digests in stage.settings.get("starts_from", {}).items():
                file = isinstance(digests, str)
                version = stage.notes.get("versions", {}).get(part)
                found[part] = (
                    "a file of word vectors"
                    if file
                    else f"{version or 'a folder'}, whose texts are not here"
                )
            for role, reference in stage.inputs.items():
                if role.startswith(START):
                    parent = self.ancestry.manifests[reference["key"]]
                    found[role.removeprefix(START)] = (
                        f"stage {parent.stage}"
                        if parent.kind == "stage"
                        else f"vectors of {parent.settings['family']}, learned from the same text"
                    )
        return found

    @property
    def weights_from(self) -> list[Manifest]:
        """Its stages, and those that its parts started from with the ones before, parents first."""
        keys, waiting = set(), list(self.stages)
        while waiting:
            stage = waiting.pop()
            keys.add(stage.key)
            waiting += [
                self.ancestry.manifests[reference["key"]]
                for role, reference in stage.inputs.items()
                if reference["kind"] == "stage" and (role == STAGE_BEFORE or role.startswith(START))
            ]
        return [each for key, each in self.ancestry.manifests.items() if key in keys]

    @property
    def dataset(self) -> Manifest | None:
        """The dataset of its evaluation."""
        return self.dataset_of(self.evaluation) if self.evaluation else None

    def dataset_of(self, scores: Manifest) -> Manifest | None:
        """The dataset of an evaluation, a probe, ranks or answers from a prompt."""
        return self._input(scores, "dataset")

    @property
    def scores(self) -> Mapping[str, Any]:
        """Facts of the evaluation and its latency; empty without an evaluation."""
        if self.evaluation is None:
            return {}
        return {**self.evaluation.facts, "latency_ms": self.evaluation.notes.get("latency_ms", {})}

    def measured(self) -> Iterator[tuple[Manifest, Manifest]]:
        """Each measured stage with its measurement."""
        for stage in self.stages:
            if stage.key in self.measurements:
                yield stage, self.measurements[stage.key]

    def corpora(self, measurement: Manifest) -> dict[str, tuple[Manifest, float | None]]:
        """The texts that a stage's held-out loss was measured on, by name.

        Returns:
            Each text with its unigram loss; None if that was not measured, or if the held-out loss
            is no cross-entropy of tokens, which has none a character either.
        """
        found = {}
        of_tokens = measurement.facts.get("heldout_loss_a_character")
        for name in measurement.facts["heldout_loss"]:
            tokens = self._input(measurement, tokens_step(name))
            text = self._input(tokens, "data") if tokens else None
            if tokens and text:
                comparable = of_tokens is None or name in of_tokens
                found[name] = text, tokens.facts.get("unigram_loss") if comparable else None
        return found

    def _input(self, manifest: Manifest, role: str) -> Manifest | None:
        reference = manifest.inputs.get(role)
        return self.ancestry.manifests.get(reference["key"]) if reference else None


def facts_in_store(store: Store, stage: Mapping[str, str]) -> ModelFacts | None:
    """The facts of a stage in the store, with the newest of its measurements and evaluations.

    The stages before it come with their measurements; evaluations of those are not the stage's.

    Args:
        store: The store.
        stage: Its kind and key.

    Raises:
        BrokenLineage: The stage is not in the store.
    """
    whole = gather(store.root, stage)
    own = {"evaluation": {stage["key"]}, "measurement": {*whole.manifests}}
    for kind, stages in own.items():
        for entry in reversed([*store.entries(kind)]):  # `join` places what it adds first
            if entry.inputs.get("stage", {}).get("key") in stages:
                whole = join(whole, gather(store.root, entry))
    return facts_of(whole)


def facts_of(ancestry: Ancestry) -> ModelFacts | None:
    """The facts of an ancestry's last stage; None if it has no stage.

    Args:
        ancestry: Ancestry of a package, an evaluation, a measurement or a stage.
    """
    last = ancestry.artifact if ancestry.artifact.stage else ancestry.parent_stage()
    if last is None:
        return None
    stages = [last]
    while (before := stages[0].inputs.get(STAGE_BEFORE)) is not None:
        stages.insert(0, ancestry.manifests[before["key"]])
    measurements = {each.inputs["stage"]["key"]: each for each in ancestry.of_kind("measurement")}
    evaluations = ancestry.of_kind("evaluation")
    evaluation = evaluations[-1] if evaluations else None
    return ModelFacts(ancestry, tuple(stages), measurements, evaluation)
