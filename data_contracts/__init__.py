"""The promises: where text comes from, and what must hold of it before a stage may read it."""
