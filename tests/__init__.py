"""The proof: mirrors the tree, with conformance, architecture and parity beside it."""
