"""MLflow's registered models: versions, lineage and evidence, the gate, promotion, prediction."""
