"""The families, objectives and heads that exist, and those that are planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from fourstage.errors import UnknownNameError
from models import catalogue

ARTICLES = catalogue.KINDS

# Names that are part of the design. Those with a file are available; the others are refused as
# "not supported yet" rather than as unknown.
PLANNED = {
    "families": (
        "albert", "bart", "bert", "distilbert", "electra", "elmo", "ernie", "fasttext", "glove",
        "gpt", "gpt2", "lstm", "lxmert", "mass", "ngram", "nnlm", "roberta", "seq2seq", "spanbert",
        "structbert", "t5", "transformer", "transformer_xl", "unilm", "uniter", "vilbert",
        "visualbert", "vl_bert", "word2vec", "xlnet",
    ),
    "objectives": (
        "bidirectional_lm", "causal_lm", "denoising", "distillation", "entity_denoising",
        "knowledge_masking", "masked_lm", "masked_seq2seq", "next_sentence", "permutation_lm",
        "prefix_lm", "region_masking", "replaced_token_detection", "sentence_order",
        "sentence_structure", "skip_gram", "span_boundary", "span_denoising", "translation_lm",
        "word_structure",
    ),
    "heads": (
        "generation", "multiple_choice", "question_answering", "regression", "retrieval",
        "sequence_classification", "span_classification", "token_classification",
        "visual_question_answering",
    ),
}  # fmt: skip


def available(kind: str, folders: Sequence[Path]) -> list[str]:
    """Names with a file; the project's own are searched first."""
    return list(catalogue.names(kind, folders))


def file_of(kind: str, name: str, folders: Sequence[Path]) -> Path:
    """The file of an available name; the project's own hides a built-in one."""
    return catalogue.file_of(kind, name, folders)


def unknown(where: str, name: str, kind: str, folders: Sequence[Path]) -> UnknownNameError | None:
    """The fault of a name that neither has a file nor is planned."""
    there = available(kind, folders)
    if name in there or name in PLANNED[kind]:
        return None
    return UnknownNameError(where, name, ARTICLES[kind], there, _planned_hint(name, kind, there))


def is_missing(name: str, kind: str, folders: Sequence[Path]) -> bool:
    """Whether a name is planned but has no file yet."""
    return name in PLANNED[kind] and name not in available(kind, folders)


def _planned_hint(name: str, kind: str, there: Iterable[str]) -> str:
    near = get_close_matches(name.casefold(), sorted({*PLANNED[kind], *there}), n=1, cutoff=0.6)
    if not near or near[0] in there:
        return ""
    return f"{near[0]!r} is planned but not supported yet."
