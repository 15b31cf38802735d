"""Segments: which stretch of text makes an example, and the clean row it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from fourstage.errors import ContractViolation, RecipeError
from models import features as keys
from models.protocols import Batch, Context, Index, TokenisedCorpus

SHORT_SHARE = 0.1  # of pairs are packed to a shorter target, so that short texts are seen too


def window_index(corpus: TokenisedCorpus, sequence_length: int) -> Index:
    """Full windows over the corpus read as one stream, documents joined by [SEP].

    Windows follow each other without overlap; only the last one reaches back so that it is full
    too, and every token is in some window. A corpus shorter than one window gives a single padded
    row.

    Args:
        corpus: Tokenised documents.
        sequence_length: T; a window holds T - 2 tokens of the stream, between [CLS] and [SEP].

    Returns:
        Entries (document, first token in it); a first token equal to the document's length is the
        [SEP] behind it.
    """
    room = room_for(sequence_length, 2)
    ends = np.cumsum(corpus.lengths.astype(np.int64) + 1)  # one more for the [SEP] behind it
    total = int(ends[-1]) - 1 if len(ends) else 0  # the window brings the last one's own [SEP]
    if not total or not corpus.num_tokens:
        raise ContractViolation("masked windows: the corpus has no tokens")
    starts = np.arange(0, max(total - room, 0) + 1, room, dtype=np.int64)
    if starts[-1] + room < total:
        starts = np.append(starts, total - room)
    document = np.searchsorted(ends, starts, side="right")
    offset = starts - (ends[document] - corpus.lengths[document] - 1)
    lengths = np.minimum(room, total - starts) + 2
    return Index(
        np.stack([document, offset], axis=1),
        lengths,
        details={"padding": 1.0 - float(lengths.mean()) / sequence_length},
    )


def document_index(corpus: TokenisedCorpus, sequence_length: int) -> Index:
    """Windows that never leave their document, as SpanBERT's blocks.

    As `window_index`, but the last window of each document reaches back; a document shorter than a
    window gives a padded row.

    Args:
        corpus: Tokenised documents.
        sequence_length: T.

    Returns:
        Entries (document, first token in it).
    """
    room = room_for(sequence_length, 2)
    lengths = corpus.lengths.astype(np.int64)
    counts = -(-lengths // room)  # none of an empty document
    if not counts.any():
        raise ContractViolation("masked windows: the corpus has no tokens")
    document = np.repeat(np.arange(len(lengths)), counts)
    place = np.arange(len(document)) - np.repeat(np.cumsum(counts) - counts, counts)
    held = np.minimum(lengths[document], room)
    start = np.minimum(place * room, lengths[document] - held)
    return Index(
        np.stack([document, start], axis=1),
        held + 2,
        details={"padding": 1.0 - float((held + 2).mean()) / sequence_length},
    )


def windows(
    corpus: TokenisedCorpus, entries: np.ndarray, context: Context, *, joined: bool = True
) -> Batch:
    """The rows of `window_index` or `document_index`: [CLS] stream [SEP], all of segment 0.

    Args:
        corpus: Tokenised documents.
        entries: (B, 2).
        context: What is fixed for the stage.
        joined: Whether a row goes on with the next document where one ends.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) int32; unit_starts (B, T) uint8.
    """
    batch = empty_rows(len(entries), context)
    ids, starts = batch[keys.TOKEN_IDS], batch[keys.UNIT_STARTS]
    room = context.sequence_length - 2
    for row, (document, offset) in enumerate(entries.tolist()):
        at = 1
        ids[row, 0] = context.tokenizer.cls_id
        while True:
            tokens, _, unit_starts = corpus.document(document)
            piece = tokens[offset : offset + room + 1 - at]
            ids[row, at : at + len(piece)] = piece
            starts[row, at : at + len(piece)] = unit_starts[offset : offset + len(piece)]
            at += len(piece)
            document, offset = document + 1, 0
            if not joined or at > room or document >= len(corpus):
                break
            ids[row, at] = context.tokenizer.sep_id
            at += 1
            if at > room:
                break
        ids[row, at] = context.tokenizer.sep_id
        batch[keys.PADDING_MASK][row, : at + 1] = 1
    return batch


NEXT, RANDOM, PREVIOUS, APART = 0, 1, 2, 3  # how the second segment of a pair stands to the first


def pair_index(corpus: TokenisedCorpus, sequence_length: int, rng: np.random.Generator) -> Index:
    """BERT's pairs: consecutive sentences packed to a target length, half of them torn apart.

    Sentences of a document are collected until they fill the target; a random cut makes segment A;
    segment B is what follows or, half of the time and whenever there is only one sentence, a
    stretch from a random place of another document, and the sentences left over are used again.
    Over-long pairs lose tokens from the longer side, front or back by chance.

    Args:
        corpus: Tokenised documents with sentence lengths.
        sequence_length: T; A and B have room for T - 3 tokens.
        rng: Source of chance.

    Returns:
        Entries (document A, first, end, document B, first, end, is random), tokens in documents.

    Differs from the paper:
        The shorter target (one pair in ten) is drawn for each pair; Google's code draws it once a
        document, which makes a corpus of few long documents all short or not at all.

    Raises:
        ContractViolation: If fewer than two documents have text, so that there is no other one.

    Reference:
        ``create_pretraining_data.py`` of google-research/bert; arXiv 1810.04805, 3.1 task 2.
    """
    usable = several_documents(corpus, "next_sentence")

    def relation(collected: int, chance: Chance) -> int:
        return RANDOM if collected == 1 or chance.uniform() < 0.5 else NEXT

    pairs = _pack(corpus, usable, sequence_length, rng, relation)
    return _pair_index(pairs, sequence_length, {"random_pairs": float(pairs[:, 6].mean())})


def ordered_pair_index(
    corpus: TokenisedCorpus, sequence_length: int, rng: np.random.Generator
) -> Index:
    """ALBERT's pairs: as BERT's, but B always follows A in its document; half of them swapped.

    A last sentence that would stand alone is paired with the one before it once more; a document
    of one sentence has no pair.

    Returns:
        Entries as in `pair_index`, the last column 1 where the two are swapped.

    Differs from the paper:
        ALBERT's code gives a lone sentence a partner from another document, which is no question
        of order.

    Raises:
        ContractViolation: If no document has two sentences.

    Reference:
        Lan et al. 2020, arXiv 1909.11942, 3.1; ``create_pretraining_data.py`` of
        google-research/albert.
    """
    usable = np.flatnonzero(corpus.lengths > 0)

    def relation(collected: int, chance: Chance) -> int:
        return PREVIOUS if chance.uniform() < 0.5 else NEXT

    pairs = _pack(corpus, usable, sequence_length, rng, relation, alone=False)
    if not len(pairs):
        raise ContractViolation(
            "sentence_order: needs documents of two sentences or more; the corpus has none"
        )
    pairs[:, 6] = pairs[:, 6] == PREVIOUS
    return _pair_index(pairs, sequence_length, {"swapped_pairs": float(pairs[:, 6].mean())})


def three_way_pair_index(
    corpus: TokenisedCorpus, sequence_length: int, rng: np.random.Generator
) -> Index:
    """StructBERT's pairs: B follows A, comes before it, or is from another document; a third each.

    As in `pair_index`, a sentence alone gets a random partner, so that those are a little more.

    Returns:
        Entries as in `pair_index`, the last column 0 = next, 1 = previous, 2 = random.

    Raises:
        ContractViolation: If fewer than two documents have text.

    Reference:
        Wang et al. 2020, arXiv 1908.04577, 2.2.2.
    """
    usable = several_documents(corpus, "sentence_structure")

    def relation(collected: int, chance: Chance) -> int:
        return RANDOM if collected == 1 else (NEXT, PREVIOUS, RANDOM)[chance.below(3)]

    pairs = _pack(corpus, usable, sequence_length, rng, relation)
    pairs[:, 6] = np.array([0, 2, 1])[pairs[:, 6]]  # next, random, previous → their labels
    shares = np.bincount(pairs[:, 6], minlength=3) / len(pairs)
    details = zip(("next_pairs", "previous_pairs", "random_pairs"), shares.tolist(), strict=True)
    return _pair_index(pairs, sequence_length, dict(details))


def distance_pair_index(
    corpus: TokenisedCorpus, sequence_length: int, rng: np.random.Generator
) -> Index:
    """ERNIE 2.0's pairs: B follows A, is from elsewhere in its document, or from another one.

    A third each, as far as documents have an elsewhere: where one has not, and where a sentence is
    alone, the partner is from another document.

    Returns:
        Entries as in `pair_index`, the last column 0 = adjacent, 1 = same document, 2 = other.

    Raises:
        ContractViolation: If fewer than two documents have text.

    Reference:
        Sun et al. 2020, arXiv 1907.12412, 4.2.2.
    """
    usable = several_documents(corpus, "sentence_distance")

    def relation(collected: int, chance: Chance) -> int:
        how = (NEXT, APART, RANDOM)[chance.below(3)]
        return RANDOM if collected == 1 and how == NEXT else how

    pairs = _pack(corpus, usable, sequence_length, rng, relation)
    pairs[:, 6] = np.array([0, 2, -1, 1])[pairs[:, 6]]
    shares = np.bincount(pairs[:, 6], minlength=3) / len(pairs)
    details = zip(("adjacent_pairs", "apart_pairs", "random_pairs"), shares.tolist(), strict=True)
    return _pair_index(pairs, sequence_length, dict(details))


def several_documents(corpus: TokenisedCorpus, objective: str) -> np.ndarray:
    """Documents with text, two or more."""
    usable = np.flatnonzero(corpus.lengths > 0)
    if len(usable) < 2:
        raise ContractViolation(
            f"{objective}: needs two documents or more, so that a second segment can come from "
            f"another one; the corpus has {len(usable)} with text"
        )
    return usable


def _pair_index(pairs: np.ndarray, sequence_length: int, details: dict[str, float]) -> Index:
    """Entries with their lengths."""
    lengths = pairs[:, 2] - pairs[:, 1] + pairs[:, 5] - pairs[:, 4] + 3
    padding = 1.0 - float(lengths.mean()) / sequence_length
    return Index(pairs, lengths, details={"padding": padding, **details})


def _pack(
    corpus: TokenisedCorpus,
    usable: np.ndarray,
    sequence_length: int,
    rng: np.random.Generator,
    relation: Callable[[int, Chance], int],
    *,
    alone: bool = True,
) -> np.ndarray:
    """Pairs of segments, packed from sentences and cut to the room of a row.

    Args:
        corpus: Tokenised documents.
        usable: Those with text.
        sequence_length: T.
        rng: Source of chance.
        relation: `NEXT`, `RANDOM`, `PREVIOUS` or `APART`, from the number of sentences collected;
            what cannot be `APART` becomes `RANDOM`.
        alone: Whether a single sentence may be segment A (`relation` may not answer `NEXT` then);
            else it is joined by the one before it, or passed over where there is none.

    Returns:
        (pairs, 7) int64: document A, first, end, document B, first, end, relation.
    """
    room = room_for(sequence_length, 3, least=2)
    # Chance is drawn in blocks: a call for each number would cost more than all the rest.
    chance = Chance(rng)
    sentence_ends = [sentence_ends_of(corpus, int(document)) for document in usable]
    entries: list[tuple[int, int, int, int, int, int, int]] = []
    for here, ends in enumerate(sentence_ends):
        document = int(usable[here])
        first, num_sentences = 0, len(ends) - 1
        while first < num_sentences:
            target = room if chance.uniform() >= SHORT_SHARE else 2 + chance.below(room - 1)
            # One sentence at least, then as many as it takes to reach the target.
            last = min(int(np.searchsorted(ends, ends[first] + target, side="left")), num_sentences)
            last = max(last, first + 1)
            if last == first + 1 and not alone:
                if last < num_sentences:
                    last += 1
                elif first:
                    first -= 1
                else:
                    break
            collected = last - first
            cut = first + (1 + chance.below(collected - 1) if collected > 1 else 1)
            start, middle, end = int(ends[first]), int(ends[cut]), int(ends[last])
            how = relation(collected, chance)
            # Sentences of the document before and behind A, those right beside it left out.
            before, behind = max(first - 1, 0), max(num_sentences - cut - 1, 0)
            if how == APART and not before + behind:
                how = RANDOM
            if how in (RANDOM, APART):
                there, limit = here, num_sentences
                if how == RANDOM:
                    there = (here + 1 + chance.below(len(usable) - 1)) % len(usable)
                    limit = len(sentence_ends[there]) - 1
                    sentence = chance.below(limit)
                else:
                    sentence = chance.below(before + behind)
                    if sentence < before:
                        limit = before
                    else:
                        sentence += cut + 1 - before
                other = sentence_ends[there]
                other_first = int(other[sentence])
                wanted = max(1, target - (middle - start))
                reached = int(np.searchsorted(other, other_first + wanted, side="left"))
                other_end = int(other[min(reached, limit)])
                entries.append(
                    (document, start, middle, int(usable[there]), other_first, other_end, how)
                )
                first = cut
                continue
            if how == NEXT:
                entries.append((document, start, middle, document, middle, end, how))
            else:
                entries.append((document, middle, end, document, start, middle, how))
            first = last
    return _cut_to_room(np.array(entries, np.int64).reshape(-1, 7), room, rng)


def pairs(corpus: TokenisedCorpus, entries: np.ndarray, context: Context, labels: str) -> Batch:
    """The rows of an index of pairs: [CLS] A [SEP] B [SEP], B and its [SEP] of segment 1.

    Returns:
        token_ids, segment_ids, padding_mask (B, T) int32; unit_starts (B, T) uint8; under the key
        `labels` the last column of the entries, (B,) int32.
    """
    batch = empty_rows(len(entries), context)
    for row, (doc_a, a, a_end, doc_b, b, b_end, _) in enumerate(entries.tolist()):
        end = write_row(batch, row, corpus, [(doc_a, a, a_end), (doc_b, b, b_end)], context)
        batch[keys.SEGMENT_IDS][row, 2 + a_end - a : end] = 1
    batch[labels] = entries[:, 6].astype(np.int32)
    return batch


def write_row(
    batch: Batch,
    row: int,
    corpus: TokenisedCorpus,
    pieces: Iterable[tuple[int, int, int]],
    context: Context,
) -> int:
    """Write [CLS] and pieces (document, first, end), a [SEP] behind each; the row's length."""
    ids, starts = batch[keys.TOKEN_IDS], batch[keys.UNIT_STARTS]
    ids[row, 0] = context.tokenizer.cls_id
    at = 1
    for document, first, end in pieces:
        tokens, _, unit_starts = corpus.document(document)
        behind = at + end - first
        ids[row, at:behind] = tokens[first:end]
        starts[row, at:behind] = unit_starts[first:end]
        ids[row, behind] = context.tokenizer.sep_id
        at = behind + 1
    batch[keys.PADDING_MASK][row, :at] = 1
    return at


def _cut_to_room(entries: np.ndarray, room: int, rng: np.random.Generator) -> np.ndarray:
    """Take tokens from the longer side, each from front or back by chance, until a pair fits.

    The closed form of cutting one by one: the longer side shrinks to the other's length, then both
    in turn, B first.
    """
    a, b = entries[:, 2] - entries[:, 1], entries[:, 5] - entries[:, 4]
    surplus = np.maximum(a + b - room, 0)
    from_longer = np.minimum(surplus, np.abs(a - b))
    rest = surplus - from_longer
    cut_a = np.where(a > b, from_longer, 0) + rest // 2
    cut_b = np.where(a > b, 0, from_longer) + (rest + 1) // 2
    result = entries.copy()
    for cut, start, end in ((cut_a, 1, 2), (cut_b, 4, 5)):
        front = rng.binomial(cut, 0.5)
        result[:, start] += front
        result[:, end] -= cut - front
    return result


def sentence_ends_of(corpus: TokenisedCorpus, document: int) -> np.ndarray:
    """Where sentences begin and end in the document, empty ones left out: (sentences + 1,)."""
    lengths = corpus.document(document)[1]
    return np.concatenate(([0], np.cumsum(lengths[lengths > 0], dtype=np.int64)))


def empty_rows(num_rows: int, context: Context) -> Batch:
    """A batch of padding."""
    shape = (num_rows, context.sequence_length)
    return {
        keys.TOKEN_IDS: np.full(shape, context.tokenizer.pad_id, np.int32),
        keys.SEGMENT_IDS: np.zeros(shape, np.int32),
        keys.PADDING_MASK: np.zeros(shape, np.int32),
        keys.UNIT_STARTS: np.zeros(shape, np.uint8),
    }


def room_for(sequence_length: int, special: int, least: int = 1) -> int:
    """Tokens of text a row has room for."""
    if sequence_length < special + least:
        raise RecipeError(
            f"sequence_length: {sequence_length} leaves no room for text beside {special} special "
            f"tokens; at least {special + least} are needed"
        )
    return sequence_length - special


class Chance:
    """Uniform numbers from one generator, drawn in blocks."""

    def __init__(self, rng: np.random.Generator, block: int = 1 << 14):
        self._rng, self._block = rng, block
        self._numbers: Iterator[float] = iter(())

    def uniform(self) -> float:
        """In [0, 1)."""
        number = next(self._numbers, None)
        if number is None:
            self._numbers = iter(self._rng.random(self._block).tolist())
            number = next(self._numbers)
        return number

    def below(self, limit: int) -> int:
        """An integer in [0, limit)."""
        return int(self.uniform() * limit)

    def sample(self, limit: int, count: int) -> list[int]:
        """So many different integers in [0, limit), rising."""
        chosen: list[int] = []
        for number in range(limit - count, limit):  # Floyd's: each set is as likely as another
            drawn = self.below(number + 1)
            chosen.append(number if drawn in chosen else drawn)
        return sorted(chosen)
