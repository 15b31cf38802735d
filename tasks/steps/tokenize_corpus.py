"""From text to memory-mapped token shards, and the profile the token contract is held against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from corpora.identity import normal_form
from corpora.prepared import PreparedRow
from tasks.steps.durable import durable
from tasks.store.artifacts import Artifact, Findings, Input
from tasks.store.kept import kept_rows, kept_texts
from tasks.store.steps import Bound

DOCUMENTS = "documents.arrow"
ROWS = "rows.arrow"
PROFILE = "profile.parquet"
HELDOUT = "heldout"
BATCH = 1000  # documents tokenised at a time: memory stays flat, tensorflow-text stays busy


@durable()
def tokenize_corpus(step: Bound, folder: Path) -> Findings:
    """Tokenise a corpus by sentence; quarantined documents stay out, and those ``seen`` before."""
    corpus = step.inputs["data"]
    kept = kept_texts(corpus, step.inputs["contract"])
    if "seen" in step.inputs:
        kept = _new_texts(kept, corpus, step.inputs["seen"])
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    return Findings(tokenize(folder, tokenizer, _pieces(step, tokenizer), kept))


@durable()
def tokenize_dataset(step: Bound, folder: Path) -> Findings:
    """Tokenise labelled rows, and once more their distinct texts as a corpus for the task stage.

    Training rows' text becomes training documents, dev rows' text held-out ones, labels dropped;
    test rows are in no corpus (Gururangan et al. 2020 adapt on the training text alone).
    """
    from corpora.shards import RowWriter

    dataset = step.inputs["data"]
    tokenizer = load_tokenizer(step.inputs["tokenizer"])
    labels = {name: i for i, name in enumerate(dataset.facts["labels"])}
    rows = list(kept_rows(dataset, step.inputs["contract"]))
    with RowWriter(folder / ROWS) as writer:
        for some in batches(rows, BATCH):
            first = tokenizer.encode([row.text for row in some])
            second = tokenizer.encode([row.text_pair or "" for row in some])
            for row, ids, pair_ids in zip(some, first, second, strict=True):
                pair = None if row.text_pair is None else pair_ids
                writer.add_row(row.id, row.split, ids, pair, labels.get(row.label, -1))
    markings = step.step.settings.get("markings", [])
    documents = unlabelled(rows, markings)
    facts = tokenize(folder, tokenizer, _pieces(step, tokenizer), documents)
    # Rows hold numbers of labels; whose names these are, the digest has to cover.
    labels = dataset.facts["labels"]
    return Findings({**facts, "rows": len(rows), "labels": labels, "markings": markings})


def unlabelled(
    rows: Sequence[PreparedRow], markings: Sequence[str] = ()
) -> Iterator[tuple[str, str, str]]:
    """The text of labelled rows as documents for pre-training, each text once.

    Rows often share a text: a sentence with other entities marked, a premise with other hypotheses.
    They stand side by side, so that a network could copy a hidden word from the next line instead
    of predicting it. Of texts that differ in markings, marks or case alone the first is taken;
    train wins over dev.

    Args:
        rows: Of every split; those of ``test`` are left out.
        markings: Strings in the texts that mark something, such as entities.

    Yields:
        (id, text, ``train`` or ``heldout``).
    """
    seen: set[str] = set()
    for split, role in (("train", "train"), ("dev", "heldout")):
        for row in rows:
            if row.split != split:
                continue
            parts = []
            for text in (row.text, row.text_pair):
                if not text:
                    continue
                same = normal_form(text, markings) or text
                if same not in seen:
                    seen.add(same)
                    parts.append(text)
            if parts:
                yield row.id, " ".join(parts), role


def load_tokenizer(artifact: Input) -> Any:
    """The tokenizer of an artifact."""
    from models.tokenizers import loading

    return loading.load_tokenizer(artifact.folder)


def unigram_losses(made: Mapping[str, Artifact], corpora: Iterable[str]) -> dict[str, float]:
    """By corpus, nats a held-out token by frequencies alone; not of what has no held-out text.

    Args:
        made: Artifacts by step name.
        corpora: Names of corpora and datasets.
    """
    tokens = {name: made.get(f"tokens {name}") for name in corpora}
    losses = {name: found.facts["unigram_loss"] for name, found in tokens.items() if found}
    return {name: loss for name, loss in losses.items() if loss is not None}


def a_character(
    losses: Mapping[str, float], made: Mapping[str, Artifact | Input]
) -> dict[str, float]:
    """By corpus, nats a character: unlike those a token they compare over tokenizers.

    Args:
        losses: Nats a held-out token.
        made: Tokenised corpora by name.
    """
    found = {}
    for name, loss in losses.items():
        facts = made[name].facts
        found[name] = loss * facts["tokens"][HELDOUT] / facts["characters"][HELDOUT]
    return found


def batches(items: Iterable, size: int) -> Iterator[list]:
    """Lists of `size` items, the last one shorter."""
    iterator = iter(items)
    while some := list(islice(iterator, size)):
        yield some


def _pieces(step: Bound, tokenizer: Any) -> Pieces:
    settings = step.step.settings
    return Pieces(
        tokenizer,
        settings["language"],
        settings.get("segmenter", {}).get("name"),
        step.step.given["gazetteer"] if "gazetteer" in settings else None,
        settings.get("case", False),
        settings.get("sentences", "rules") == "lines",
    )


class Pieces:
    """Texts cut into sentences, sentences into tokens, and what starts at each token.

    Args:
        tokenizer: The recipe's.
        language: Of the texts; decides where sentences end.
        segmenter: Finds words where blanks do not; None for the tokenizer's own.
        gazetteer: File of phrases and entities; None for none.
        case: Whether to say which words began with a capital.
        lines: Whether each line is a sentence, whatever the language's rules say.
    """

    def __init__(
        self,
        tokenizer: Any,
        language: str,
        segmenter: str | None = None,
        gazetteer: Path | None = None,
        case: bool = False,
        lines: bool = False,
    ):
        from corpora.gazetteer import Gazetteer, read_gazetteer

        self.tokenizer = tokenizer
        self.language = language
        self.segmenter = segmenter
        self.case = case
        self.lines = lines
        self.gazetteer = None
        if gazetteer is not None:
            names = read_gazetteer(gazetteer)
            # As the tokenizer reads texts, so that case and accents count where they do there.
            normal = tokenizer.encode_with_places([name for name, _ in names])
            self.gazetteer = Gazetteer(
                (text.strip(), kind) for (text, *_), (_, kind) in zip(normal, names, strict=True)
            )

    def of(self, texts: Sequence[str]) -> Iterator[list[tuple[np.ndarray, np.ndarray]]]:
        """(ids, unit starts) of each sentence of each text."""
        sentences = [_with_blanks(text, self._sentences(text)) for text in texts]
        encoded = iter(self._encoded([part for parts in sentences for part in parts]))
        return ([next(encoded) for _ in parts] for parts in sentences)

    def _sentences(self, text: str) -> list[str]:
        from corpora.sentences import split_lines, split_sentences

        return split_lines(text) if self.lines else split_sentences(text, self.language)

    def _encoded(self, sentences: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        from corpora.units import case_starts, unit_starts, word_starts
        from corpora.words import word_numbers

        tokenizer = self.tokenizer
        if self.segmenter is None and self.gazetteer is None and not self.case:
            return [(ids, tokenizer.unit_starts(ids)) for ids in tokenizer.encode(sentences)]
        placed = tokenizer.encode_with_places(sentences)
        numbers: list[np.ndarray | None] = [None] * len(placed)
        if self.segmenter is not None:
            numbers = list(word_numbers([text for text, *_ in placed], self.segmenter))
        as_written = [text for text, *_ in placed]
        if self.case and tokenizer.lowercase:
            as_written = tokenizer.with_case(sentences)
        found = []
        for (text, ids, starts, ends), number, written in zip(
            placed, numbers, as_written, strict=True
        ):
            basic = tokenizer.unit_starts(ids)
            words = basic if number is None else word_starts(basic, starts, number)
            if self.gazetteer is not None:
                names = self.gazetteer.matches(text)
                words = unit_starts(basic, words, starts, ends, names)
            if self.case:
                words = words.astype(np.uint8) + case_starts(basic, starts, written)
            found.append((ids, words))
        return found


def _with_blanks(text: str, sentences: Sequence[str]) -> list[str]:
    """Sentences with the blanks before them: byte-level BPE spells a word after a blank otherwise.

    Joined, they have the tokens of the whole text but where a sign begins a sentence behind
    another one with no blank between. To WordPiece blanks are nothing.
    """
    parts, end = [], 0
    for sentence in sentences:
        start, end = end, text.index(sentence, end) + len(sentence)
        parts.append(text[start:end])
    return parts


def tokenize(
    folder: Path, tokenizer: Any, pieces: Pieces, documents: Iterable[tuple[str, str, str]]
) -> dict:
    """Write the shards and the profile of documents, in memory that does not grow with them.

    Args:
        folder: Where to.
        tokenizer: The recipe's.
        pieces: Cuts texts into sentences and tokens.
        documents: (id, text, split).

    Returns:
        Number of documents, tokens and characters of each split, share of unknown tokens, nats a
        held-out token by the frequencies of training alone; with a gazetteer, the shares of tokens
        in its phrases and entities.
    """
    from corpora.arrow_files import TableWriter
    from corpora.shards import TOKEN_PROFILE, TokenWriter
    from corpora.units import ENTITY, PHRASE, covered
    from models.evaluation.unigram import unigram_loss

    count = unknown = 0
    often = {s: np.zeros(tokenizer.vocabulary_size, np.int64) for s in ("train", "heldout")}
    in_names = dict.fromkeys(("phrase", "entity"), 0)
    characters = dict.fromkeys(often, 0)
    with (
        TokenWriter(folder / DOCUMENTS) as writer,
        TableWriter(folder / PROFILE, TOKEN_PROFILE) as profile,
    ):
        for some in batches(documents, BATCH):
            encoded = pieces.of([text for _, text, _ in some])
            for (name, text, split), parts in zip(some, encoded, strict=True):
                characters[split] += len(text)
                ids, units, lengths = _joined(parts)
                writer.add_document(name, split, ids, lengths, units)
                if pieces.gazetteer is not None:
                    in_names["phrase"] += covered(units, PHRASE)
                    in_names["entity"] += covered(units, ENTITY)
                unknown_here = int(np.count_nonzero(ids == tokenizer.unknown_id))
                words = int(tokenizer.unit_starts(ids).sum())
                profile.add(
                    {
                        "id": name,
                        "split": split,
                        "num_tokens": len(ids),
                        "unknown_share": unknown_here / max(1, len(ids)),
                        "pieces_per_word": len(ids) / max(1, words),
                    }
                )
                count += 1
                unknown += unknown_here
                np.add.at(often[split], ids, 1)
    tokens = {split: int(times.sum()) for split, times in often.items() if times.any()}
    total = max(1, sum(tokens.values()))
    facts: dict[str, Any] = {
        "documents": count,
        "tokens": dict(sorted(tokens.items())),
        "characters": {split: characters[split] for split in sorted(tokens)},
        "unknown_share": unknown / total,
        "unigram_loss": unigram_loss(often["train"], often["heldout"]),
    }
    if pieces.gazetteer is not None:
        facts["coverage"] = {kind: inside / total for kind, inside in in_names.items()}
    return facts


def _new_texts(
    texts: Iterable[tuple[str, str, str]], corpus: Input, seen: Input
) -> Iterator[tuple[str, str, str]]:
    """Those whose text an earlier version of the corpus had not."""
    import pandas

    def digests(artifact: Input) -> dict[str, str]:
        profile = pandas.read_parquet(artifact.path(PROFILE), columns=["id", "digest"])
        return dict(zip(profile["id"], profile["digest"], strict=True))

    now, before = digests(corpus), set(digests(seen).values())
    return (text for text in texts if now[text[0]] not in before)


def _joined(
    sentences: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, unit starts and sentence lengths of a document, empty sentences left out."""
    sentences = [sentence for sentence in sentences if len(sentence[0])]
    if not sentences:
        return np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int32)
    ids, starts = (np.concatenate(parts) for parts in zip(*sentences, strict=True))
    return ids, starts, np.array([len(part) for part, _ in sentences], np.int32)
