"""Keras's operations."""

from __future__ import annotations

from typing import Any

import keras

# Keras annotates its operations as if each could return None.
ops: Any = keras.ops
