"""Learn the wide part of a head from a dataset's training rows.

It depends on the rows and the vocabulary alone, so that all families, settings and seeds share it.
"""

from __future__ import annotations

from pathlib import Path

from tasks.steps.durable import durable
from tasks.steps.tokens import ROWS, load_tokenizer
from tasks.store.artifacts import Findings
from tasks.store.steps import Bound


@durable()
def learn_wide(step: Bound, folder: Path) -> Findings:
    """Count the n-grams of the training rows and learn a linear machine from them."""
    from corpora.prepared import prepared_groups
    from corpora.shards import TokenisedRows
    from models.catalogue import answers_of, find
    from models.inputs.rows import mark_ids
    from models.linear_machine import FOLDS
    from models.protocols import Context

    head, folders = step.step.settings["head"], step.step.given["folders"]
    tokens, tokenizer = step.inputs["rows"], load_tokenizer(step.inputs["tokenizer"])
    rows = TokenisedRows(tokens.path(ROWS), "train")
    names = answers_of(head, folders).names(rows.answers)
    marks = mark_ids(tokenizer, tuple(tokens.facts["markings"]))
    context = Context(tokenizer, 0, names, rows, folders, marks)
    wide = find("heads", head, folders)(context, wide=True).wide
    # What rows share with others of their group, such as an abstract, is not unseen either.
    of_row = prepared_groups(step.inputs["dataset"].folder) if "dataset" in step.inputs else {}
    groups = [of_row[name] for name in rows.ids] if of_row else []
    machine = wide.learned(rows, groups) if len(set(groups)) >= FOLDS else wide.machine
    machine.write(folder)
    facts = {"rows": len(rows), "labels": len(names), "ngrams": int((machine.idf > 0).sum())}
    if machine.alike is not None:
        facts["compared"] = True  # the two texts of each row
    return Findings(facts)
