"""Layers shared by families: attention, blocks, embeddings; written with keras.ops."""
