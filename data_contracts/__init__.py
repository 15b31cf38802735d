"""Data contracts: where text comes from, and what it must fulfil before a stage may read it."""
