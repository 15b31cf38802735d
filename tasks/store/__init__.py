"""The artifact store: steps and their cache keys, entries and manifests, lineage."""
