"""The model registry: versions, lineage, evidence, the gate, promotion, prediction."""
