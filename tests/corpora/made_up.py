"""Made-up text of fixed seeds, shaped as the records of faults.md are."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

_WORDS = (
    "zqxcanary patient trial dose drug placebo group week result effect blood risk study".split()
)
_FILM = "zqxcanary good bad fine poor film plot actor scene long short".split()
_HAN = "今天天气很好我们去公园散步看见许多花草树木心里非常高兴回家以后写了一篇日记"


def documents(count: int, seed: int = 1) -> list[dict[str, str]]:
    rng = random.Random(seed)
    return [
        {"id": f"d{seed}-{i}", "text": " ".join(rng.choice(_WORDS) for _ in range(60)) + "."}
        for i in range(count)
    ]


def rows(count: int, seed: int = 2) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {
            "id": f"r{seed}-{i}",
            "text": " ".join(rng.choice(_FILM) for _ in range(14))
            + (" lovely" if i % 2 else " awful"),
            "label": "pos" if i % 2 else "neg",
        }
        for i in range(count)
    ]


def chinese(count: int, seed: int = 3) -> list[dict[str, str]]:
    rng = random.Random(seed)
    return [
        {
            "id": f"z{seed}-{i}",
            "text": "。".join("".join(rng.choice(_HAN) for _ in range(18)) for _ in range(4))
            + "。",
        }
        for i in range(count)
    ]


def lines_of(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write(path: Path, records: list[dict[str, Any]], encoding: str = "utf-8") -> Path:
    path.write_bytes(lines_of(records).encode(encoding))
    return path
