"""Parts that families share: attention, blocks, embeddings; written with keras.ops."""
