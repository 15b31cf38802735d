"""Seconds of ``fourstage plan`` in a wide recipe and an old store: ``python -m benchmarks.plan``.

The store is made in a temporary folder: every step of the recipe, and older versions of each.
Seconds of the processor are those of the command's process, so that they hold on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.flows.own_project import document
from tests.tasks.crowded_store import age, make_small, wide_project


def main() -> None:
    """Print wall and processor seconds: nothing changed, and every source changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=300)
    parser.add_argument("--artifacts", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="print one object")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["FOURSTAGE_HOME"] = str(folder / "home")
        found = measure(folder, options.sources, options.artifacts)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{found['sources']} sources, {found['artifacts']:,} artifacts, {os.cpu_count()} cores")
    for name in ("unchanged", "changed"):
        print(
            f"{name:>10}: {found[name]['seconds']:.2f} s, {found[name]['processor']:.2f} s of CPU"
        )


def measure(folder: Path, sources: int, artifacts: int) -> dict:
    """Make the store under the home, plan, change every source, plan again."""
    from tasks.planning.plan import plan_recipe
    from tasks.store.artifacts import Store

    project, recipe = wide_project(folder / "project", sources)
    store = Store(Path(os.environ["FOURSTAGE_HOME"]))
    made = make_small(store, list(plan_recipe(str(recipe)).steps.values()))
    age(store, made.values(), -(-artifacts // len(made)) - 1)
    count = sum(1 for _ in store.root.glob("*/*/manifest.json"))
    found: dict = {"sources": sources, "artifacts": count, "unchanged": plan(recipe)}
    for number in range(sources):
        project.lines(f"notes{number:03d}.jsonl", [document(50_000 + number)])
    return {**found, "changed": plan(recipe)}


def plan(recipe: Path) -> dict[str, float]:
    """Seconds of the command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    command = [sys.executable, "-m", "fourstage.command", "plan", str(recipe), "--json"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(seconds, 2), "processor": round(spent, 2)}


if __name__ == "__main__":
    main()
