"""What is made and kept: steps and their keys, entries and manifests, what was made from what."""
