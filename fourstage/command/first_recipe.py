"""The first recipe of a project: settings that work on two cores, scaled to data and minutes.

The reasons are in the recipe's own comments, the measurements behind them in docs/results.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from corpora.survey import Survey
from fourstage.errors import RecipeError
from fourstage.languages import main_language
from fourstage.recipe.from_nothing import (
    BETA_2,
    FAMILY,
    FINETUNE_RATE,
    GENERAL_RATE,
    LENGTHS,
    MASK_RATE,
    NETWORK,
    SLOWER,
    SUMMARY,
    VECTORS,
    VOCABULARY,
    VOCABULARY_OF_CHARACTERS,
    batch_size,
    phases,
    told_what_texts_share,
    vocabulary_size,
)
from models.catalogue import answers_of, provided, providing
from models.evaluation.rivals import names
from models.metrics import PERPLEXITY

HEADS = {  # the head for each kind of answer, with its settings
    "label": ("sequence_classification", "{dropout: 0.0, wide: true}"),
    "label_set": ("multi_label_classification", "{dropout: 0.0, threshold: dev, wide: true}"),
    "number": ("sequence_regression", "{dropout: 0.0, wide: true}"),
    "spans": ("token_classification", "{dropout: 0.0, crf: true}"),
    "extract": ("span_extraction", "{}"),
    "choice": ("multiple_choice", "{dropout: 0.0, wide: true}"),
    "text": ("sequence_to_sequence", "{target_length: TARGET, label_smoothing: 0.1, beams: 4}"),
}
IN_PARTS = ("spans", "extract")  # whose long rows are read in parts, not truncated
SUMMED_UP = ("label", "label_set", "number", "choice")  # what is answered from one vector a row
SPLIT_SHARE = 0.8  # of rows we split: the rest are dev and test rows
OVERHEAD = 60.0  # fixed seconds of a run
TRAINING_SHARE = 0.75  # of the other seconds; the rest goes to data, measurements and evaluation
# Microseconds of counting n-grams beside the network, and for the cheap baseline: a token of a
# training row, and for each label beyond two that is told from the others. Of one AMD EPYC core,
# as runs of tasks/sst2, fewrel and chemprot print them.
COUNTED_TOKEN, COUNTED_LABEL = 100.0, 18.0
LEAST_ADAPTED = 200_000  # tokens of its own text that a pre-trained network should read, or none
LEAST_GENERAL = 1_000_000  # tokens that such a network needs to learn which tokens co-occur
MOST_PASSES = 20  # over a text; new masks make later passes useful
DOMAIN_SHARE, TASK_SHARE, FINETUNE_SHARE = 0.6, 0.1, 0.3  # at most; of pre-training, and of all
WRITING_SHARE, MOST_WRITING_EPOCHS = 0.7, 40  # at most, where answers are written and text is read
BYTES = 261  # pieces of a vocabulary of bytes alone
PIECES_PER_SIGN = 1.5  # that make most characters of several bytes a piece, and leave few for words
TOKENS_PER_PIECE = 25  # of text, for pieces of several characters to be frequent enough
LONGEST_TARGET = 128  # tokens of a text that is written
PADDED = 1.5  # tokens of a batch of texts and answers, padding included, for each of theirs
MOST_EPOCHS = 10  # of fine-tuning a pre-trained network
BATCH_SIZE = 16  # of fine-tuning, if there are as many rows
UPDATES = 800  # approximate updates of fine-tuning, if there are enough rows
CHINESE = """\
# - Each Chinese character is a token, so the vocabulary is larger; at most half of it are single
#   characters. Masking whole words, like BERT-wwm, takes longer to learn:
#   `units: {segmenter: rjieba}` next to `tokenizer`, and `masked_lm: {rate: 0.3, unit: word}`.
"""


@dataclass(frozen=True)
class Shape:
    """A network size that is known to work.

    Attributes:
        network: Its arguments.
        name: Its name in messages.
        general: Peak learning rate of the first stage.
        finetune: Peak learning rate of fine-tuning.
        longest: Most tokens of a window.
        family: Its family.
        vocabulary: Pieces of its tokenizer.
        objective: What its first trained stage learns, with settings.
        init: Where its weights come from; None: they are trained.
        summary: What a row is summed up by: ``mean``, or ``network``.
        schedule: Settings of fine-tuning's optimizer beside the rate.
    """

    network: Mapping[str, float]
    name: str
    general: float
    finetune: float
    longest: int
    family: str = FAMILY
    vocabulary: int = VOCABULARY
    objective: str = f"masked_lm: {{rate: {MASK_RATE}}}"
    init: str | None = None
    summary: str = "network"
    schedule: str = "warmup: 0.1"


SMALL = Shape(
    NETWORK,
    summary=SUMMARY,
    name="2 layers of 128",
    general=GENERAL_RATE,
    finetune=FINETUNE_RATE,
    longest=128,
)
LARGER = Shape(
    dict(num_layers=4, hidden_dim=256, num_heads=4, intermediate_dim=1024, dropout=0.0),
    summary=SUMMARY,
    name="4 layers of 256",
    general=1.0e-3,
    finetune=3.0e-4,
    longest=256,
)
LARGER_FROM = 6_000_000  # tokens that must fit into the time for the larger network
# Networks that write: encoder–decoders that learn to repair a damaged text.
REPAIR = "text_infilling: {infill_rate: 0.3, permute_rate: 0.0}"
# A lower rate that falls linearly made one write the same for every row (docs/results.md).
NOAM = "warmup: 0.1, decay: inverse_square_root, weight_decay: 0.0, beta_2: 0.98"
SMALL_WRITER = Shape(
    {**NETWORK, "num_decoder_layers": 2, "dropout": 0.1},
    name="2 + 2 layers of 128",
    general=GENERAL_RATE,
    finetune=2.0e-3,
    longest=128,
    family="transformer",
    objective=REPAIR,
    schedule=NOAM,
)
LARGER_WRITER = Shape(
    {**LARGER.network, "num_layers": 3, "num_decoder_layers": 3, "dropout": 0.1},
    name="3 + 3 layers of 256",
    general=1.0e-3,
    finetune=1.0e-3,
    longest=256,
    family="transformer",
    objective=REPAIR,
    schedule=NOAM,
)


@dataclass(frozen=True)
class Budgets:
    """How the minutes of a recipe are spent.

    Attributes:
        shape: The network.
        minutes: Minutes of the whole run.
        corpora: Shares by source for each stage before the labels, by kind of stage, in order.
        tokens: Budget of each of these stages.
        epochs: Epochs of fine-tuning; 0 without rows.
        batch_size: Rows of an update of fine-tuning.
        length: Tokens of the longest window.
        answers: The rows' kind of answer.
        head: The head's settings.
        metrics: Those of the evaluation; the first is the gate's.
        margin: By how much a new version may be worse: the least that the dev rows can decide.
        told: Sentences about it for the user.
    """

    shape: Shape
    minutes: float
    corpora: Mapping[str, Mapping[str, float]]
    tokens: Mapping[str, int]
    epochs: int
    batch_size: int
    length: int
    answers: str
    head: str
    metrics: tuple[str, ...]
    margin: float
    told: tuple[str, ...] = field(default=())


def budgets(
    text: Survey | None,
    rows: Survey | None,
    general: str | None,
    language: str,
    minutes: float,
    home: Path,
    start: Shape | None = None,
) -> Budgets:
    """Divide the minutes among the stages.

    Args:
        text: The corpus, if any.
        rows: The labelled rows, if any.
        general: Name of a source of general text, if one is available.
        language: That of the texts; a network from nothing has a vocabulary for it.
        minutes: Minutes of the whole run.
        home: The home whose earlier stages tell the speed of this machine.
        start: The pre-trained network to start from, if any.

    Raises:
        RecipeError: The answers are to be written, and the network that is given can't write.
    """
    counting = _counting(rows)
    seconds = max(60.0, TRAINING_SHARE * (60 * minutes - OVERHEAD - counting))
    writes = rows is not None and rows.answers == "text"
    if start and writes and "generation" not in provided(start.family):
        raise RecipeError(
            f"--init: expected a network that writes, as the answers are texts; {start.family} does"
            f" not. These do: {', '.join(providing('generation'))}."
        )
    small, large = (SMALL_WRITER, LARGER_WRITER) if writes else (SMALL, LARGER)
    pieces = vocabulary_size(language)
    if rows and writes and pieces == VOCABULARY_OF_CHARACTERS:
        pieces = _pieces_between_no_blanks(rows, text, pieces)
    shape = start or replace(large, vocabulary=pieces)
    speed, measured = _speed(shape, home)
    if not start and seconds * speed < LARGER_FROM:
        shape = replace(small, vocabulary=pieces)
        speed, measured = _speed(shape, home)
    total = seconds * speed
    train_rows, row_tokens = _train(rows)
    epochs = wanted = 0
    if rows:
        most, share = (MOST_EPOCHS, 1.0) if start else (20, FINETUNE_SHARE)
        wanted = min(most, max(3, round(UPDATES * BATCH_SIZE / train_rows)))
        row_tokens *= PADDED if writes else 1.0
        if rows.answers not in IN_PARTS:
            row_tokens = min(row_tokens, train_rows * _length(rows, shape))
        if writes and not start:
            wanted, share = MOST_WRITING_EPOCHS, WRITING_SHARE if text else 1.0
        epochs = max(1, min(wanted, round(share * total / row_tokens)))
    left = max(total - epochs * row_tokens, 0.0 if start else 0.2 * total)
    divide = _after_pretrained if start else _for_writing if writes else _from_nothing
    tokens, corpora = divide(left, text, general, row_tokens if rows else 0.0)
    kinds = [kind for kind in ("general", "domain", "task") if kind in corpora]
    rounded = {kind: _round(tokens[kind]) for kind in kinds}
    source = "measured in this home" if measured else "an estimate for two cores"
    does = f"reads about {_round(sum(rounded.values())):,} tokens before the labels"
    if not kinds:
        least = wanted * row_tokens + LEAST_ADAPTED
        needed = math.ceil((least / speed / TRAINING_SHARE + OVERHEAD) / 60)
        does = f"learns the labels only; --minutes {needed} lets it read text of their kind first"
        if writes and not start:
            does = "learns to write the answers only; with --corpus it reads text first"
    fast = f"{speed:,.0f} tokens/s ({source})"
    told = [f"network: {shape.name}, {fast}; in {minutes:g} minutes it {does}"]
    if counting > 15 * minutes:
        told.append(
            f"counting n-grams of {train_rows:,.0f} rows takes about {counting / 60:.0f} minutes,"
            " once; limits.minutes does not end it"
        )
    if kinds and not start and rounded[kinds[0]] < LEAST_GENERAL:
        needed = math.ceil(minutes * LEAST_GENERAL / max(rounded[kinds[0]], 1))
        why = (
            f"such a network needs {LEAST_GENERAL:,} to learn from; --minutes {needed} is enough"
            if kinds[0] == "general" and (general or _enough(text))
            else "there is no more text; add some with --corpus, or start from a trained network"
            " (--init)"
        )
        told.append(f"stage {kinds[0]} reads {rounded[kinds[0]]:,} tokens: {why}")
    return Budgets(
        shape,
        minutes,
        {kind: corpora[kind] for kind in kinds},
        rounded,
        epochs,
        _batch_size(rows),
        _length(rows, shape),
        rows.answers if rows else "label",
        _settings(rows, shape),
        _metrics(rows),
        _margin(rows),
        tuple(told),
    )


def _from_nothing(
    left: float, text: Survey | None, general: str | None, row_tokens: float
) -> tuple[dict[str, float], dict[str, Mapping[str, float]]]:
    """Tokens and corpora of the stages before the labels, of a network that has read nothing.

    Args:
        left: Tokens that there is time for.
        text: The corpus, if any.
        general: Name of a source of general text, if one is available.
        row_tokens: Tokens of the training rows, 0 without rows.
    """
    tokens: dict[str, float] = {}
    corpora: dict[str, Mapping[str, float]] = {}
    if row_tokens:
        share = TASK_SHARE if general or text else 1.0
        tokens["task"] = min(share * left, MOST_PASSES * row_tokens)
        corpora["task"] = {}
    if text and general:
        beyond = left - LEAST_GENERAL - tokens.get("task", 0.0)
        share = max(DOMAIN_SHARE / 2 * left, min(DOMAIN_SHARE * left, beyond))
        tokens["domain"] = min(share, MOST_PASSES * text.tokens / 0.9)
        corpora["domain"] = {"my_text": 0.9, general: 0.1}
    if general or text:
        tokens["general"] = left - sum(tokens.values())
        corpora["general"] = {general or "my_text": 1.0}
    if text and not general:
        tokens["general"] = min(tokens["general"], MOST_PASSES * text.tokens)
    return tokens, corpora


def _for_writing(
    left: float, text: Survey | None, general: str | None, row_tokens: float
) -> tuple[dict[str, float], dict[str, Mapping[str, float]]]:
    """As `_from_nothing`, of a network that writes: your text alone, if there is any.

    Passes over the answers teach such a small network more than other text does (docs/results.md).
    """
    if text is None:
        return {}, {}
    return {"general": min(left, MOST_PASSES * text.tokens)}, {"general": {"my_text": 1.0}}


def _after_pretrained(
    left: float, text: Survey | None, general: str | None, row_tokens: float
) -> tuple[dict[str, float], dict[str, Mapping[str, float]]]:
    """As `_from_nothing`, of a pre-trained network: your text and the rows', if there is time."""
    tokens: dict[str, float] = {}
    corpora: dict[str, Mapping[str, float]] = {}
    if row_tokens and left < LEAST_ADAPTED:
        return tokens, corpora
    if row_tokens:
        tokens["task"] = min((TASK_SHARE if text else 1.0) * left, MOST_PASSES * row_tokens)
        corpora["task"] = {}
    if text:
        tokens["domain"] = min(left - tokens.get("task", 0.0), MOST_PASSES * text.tokens / 0.9)
        corpora["domain"] = {"my_text": 0.9, general: 0.1} if general else {"my_text": 1.0}
    return tokens, corpora


def first_recipe(planned: Budgets, language: str) -> str:
    """The recipe as YAML, with its reasons in comments."""
    shape, kinds = planned.shape, list(planned.corpora)
    stages = [_stage(planned, kind, kind == kinds[0]) for kind in kinds]
    read = [name for shares in planned.corpora.values() for name in shares]
    measured = next((name for name in read if name != "my_text"), "")
    if shape.init:
        head = _head_of_pretrained(planned)
    elif planned.answers == "text":
        head = _head_of_writer(planned)
    else:
        head = _head(planned, language)
    parts = [head, *stages]
    if planned.epochs:
        parts.append(_finetune(planned))
    after = "then it stops; the same command continues"
    parts.append(f"limits: {{minutes: {2 * planned.minutes:g}}}      # {after}")
    if planned.epochs:
        slices = "length, label" if planned.answers == "label" else "length"
        parts.append(
            f"evaluate: {{metrics: [{', '.join(planned.metrics)}], slices: [{slices}],"
            f" forgetting_on: [{measured}]}}"
        )
        parts.append(_gate(planned))
    elif measured:
        parts.append(f"evaluate: {{forgetting_on: [{measured}]}}")
    return "\n".join(parts) + "\n"


def _head(planned: Budgets, language: str) -> str:
    network = ", ".join(f"{name}: {value}" for name, value in planned.shape.network.items())
    pieces = vocabulary_size(language)
    vocabulary = f"scheme: wordpiece, vocabulary_size: {pieces}, lowercase: true"
    minutes, chinese = f"{planned.minutes:g}", CHINESE if main_language(language) == "zh" else ""
    return f"""\
# A first recipe for about {minutes} minutes on two processor cores. Its settings follow from that:
# - RoFormer: BERT's network, but attention knows how far apart tokens are. From a few million
#   tokens it learns much more than BERT, which has to learn each pair of positions.
# - Vectors of its tokens are learned first, from the same text, in seconds (word2vec's skip-gram,
#   Mikolov et al. 2013, arXiv 1310.4546): so it learns in a minute what else takes it two or three.
# - Windows of 16 tokens first: so it learns a little more in as many tokens.
# - 30 % of the tokens masked (Wettig et al. 2022, arXiv 2202.08005), no sentence pairs (Liu et al.
#   2019, arXiv 1907.11692), a small vocabulary, and no dropout, which with so few updates costs
#   more than it gains.
# - Rows are summed up by the mean of their tokens. No stage before the labels trains [CLS].
# - Budgets are in tokens. If you have more time, let the stages before the labels read more.
{chinese}# Papers: Devlin et al. 2019 (arXiv 1810.04805); Su et al. 2021 (arXiv 2104.09864);
#   Gururangan et al. 2020 (arXiv 2004.10964).
name: first
family: {planned.shape.family}
size: {{{network}}}
tokenizer: {{{vocabulary}}}
seed: 17
stages:"""


def _head_of_writer(planned: Budgets) -> str:
    reads = ", after it has learned to repair damaged text" if planned.corpora else ""
    network = ", ".join(f"{name}: {value}" for name, value in planned.shape.network.items())
    return f"""\
# A first recipe for about {planned.minutes:g} minutes on two processor cores: an encoder–decoder
# that learns to write your answers{reads}. What helps most are
# more rows and minutes, or a network that was trained elsewhere (--init).
# Papers: Vaswani et al. 2017 (arXiv 1706.03762); Lewis et al. 2020 (arXiv 1910.13461).
name: first
family: {planned.shape.family}
size: {{{network}}}
tokenizer: {{scheme: byte_bpe, vocabulary_size: {planned.shape.vocabulary}}}
seed: 17
stages:"""


def _head_of_pretrained(planned: Budgets) -> str:
    shape = planned.shape
    return f"""\
# A first recipe for about {planned.minutes:g} minutes on two processor cores. A network that was
# trained elsewhere reads your text and learns your labels. The rates are usual for its width
# (Devlin et al. 2019, arXiv 1810.04805, A.3; Turc et al. 2019, arXiv 1908.08962). A stage before
# the labels that could not read {LEAST_ADAPTED:,} tokens is left out; `fourstage new` with more
# minutes writes it. Why they help: Gururangan et al. 2020 (arXiv 2004.10964).
name: first
family: {shape.family}
seed: 17
stages:
  # Taken as it is, with its tokenizer.
  - {{stage: general, init: {json.dumps(shape.init, ensure_ascii=False)}}}"""


def _stage(planned: Budgets, kind: str, begins: bool) -> str:
    first = begins and not planned.shape.init
    rate = planned.shape.general / (1 if first else SLOWER[kind])
    shares = planned.corpora[kind]
    about = {
        "general": "Its language: general text." if "my_text" not in shares else "Your text.",
        "domain": "Your text, and a tenth of general text against forgetting.",
        "task": "The text of your labelled rows, without labels.",
    }[kind]
    lines = [f"  # {about}", f"  - stage: {kind}"]
    if shares:
        lines.append(f"    corpora: {{{', '.join(f'{name}: {x}' for name, x in shares.items())}}}")
    if kind == "task" and first:
        lines.append("    corpora: {my_rows: 1.0}")
    elif first and planned.answers != "text":
        lines.append(f"    starts_from: {{embeddings: {VECTORS}}}")
    if begins:
        lines.append(f"    objectives: {{{planned.shape.objective}}}")
    lines += _windows(planned, kind, first)
    lines.append(f"    budget: {{tokens: {planned.tokens[kind]}}}")
    lines.append(
        f"    optimizer: {{adamw: {{peak_learning_rate: {_rate(rate)}, beta_2: {BETA_2}}}}}"
    )
    return "\n".join(lines)


def _windows(planned: Budgets, kind: str, first: bool) -> list[str]:
    """Short windows first; the longest as long as the labelled rows."""
    longest = planned.length
    if planned.answers == "text":
        longest = min(longest, planned.shape.longest)
        return [f"    sequence_length: {longest}", f"    batch_size: {batch_size(longest)}"]
    if first:
        extra = LENGTHS[0] if "domain" in planned.corpora else longest
        lengths = {of["sequence_length"]: of["share"] for of in phases(extra)}
    elif kind == "domain" and longest > 64:
        lengths = {64: 0.5, longest: 0.5}
    else:
        return [f"    sequence_length: {longest}", f"    batch_size: {batch_size(longest)}"]
    return [
        "    phases:",
        *(
            f"      - {{sequence_length: {n}, batch_size: {batch_size(n)}, share: {share:g}}}"
            for n, share in lengths.items()
        ),
    ]


def _finetune(planned: Budgets) -> str:
    how = "read in parts" if planned.answers in IN_PARTS else "truncated"
    long = f"longer rows are {how}"
    rate, what, by = _rate(planned.shape.finetune), "labels", planned.metrics[0]
    if planned.answers == "text":  # nothing need be written to choose by the likelihood
        what, by, long = "answers", PERPLEXITY, f"of both texts; {long}"
    wide = "      # and TF-IDF's n-grams beside the network" if "wide" in planned.head else ""
    return f"""\
  # Your {what}; the weights of the best epoch are kept.
  - stage: finetune
    dataset: my_rows
    sequence_length: {planned.length}      # {long}
    head: {{{HEADS[planned.answers][0]}: {planned.head}}}{wide}
    batch_size: {planned.batch_size}
    budget: {{epochs: {planned.epochs}}}
    optimizer: {{adamw: {{peak_learning_rate: {rate}, {planned.shape.schedule}}}}}
    select: {{metric: {by}, split: dev}}"""


def _gate(planned: Budgets) -> str:
    return f"""\
promote:
  model: first
  require:
    {planned.metrics[0]}:
      above: cheap_baseline      # {names(planned.answers)[0]}; if it is as good, deploy it
      not_below_champion_by: {planned.margin:g}      # about the least the dev rows can decide"""


def _pieces_between_no_blanks(rows: Survey, text: Survey | None, most: int) -> int:
    """Pieces of a vocabulary of bytes for texts without blanks between words.

    There a piece may be as long as a clause. With more pieces than the text has frequent ones, an
    answer that stands in its row's text is a piece of its own, which no other row has.
    """
    tokens = rows.tokens + (text.tokens if text else 0)
    enough = max(BYTES + PIECES_PER_SIGN * rows.signs, tokens / TOKENS_PER_PIECE)
    return min(most, _round(enough))


def _speed(shape: Shape, home: Path) -> tuple[float, bool]:
    from tasks.planning.forecast import tokens_per_second
    from tasks.store.artifacts import Store

    stages = list(Store(home).entries("stage"))
    return tokens_per_second(shape.family, shape.network, shape.vocabulary, stages)


def _train(rows: Survey | None) -> tuple[float, float]:
    """The number of training rows and of their tokens."""
    if rows is None:
        return 1.0, 1.0
    share = rows.splits["train"] / rows.records if rows.splits else SPLIT_SHARE
    return max(1.0, share * rows.records), max(1.0, share * rows.tokens)


def _counting(rows: Survey | None) -> float:
    """Seconds that n-grams of the training rows take to be counted and learned from."""
    if rows is None or "wide" not in HEADS[rows.answers][1]:
        return 0.0
    _, tokens = _train(rows)
    told_apart = len(rows.labels) - 2 if rows.answers in ("label", "label_set") else 0
    return 1e-6 * tokens * (COUNTED_TOKEN + COUNTED_LABEL * max(0, told_apart))


def _batch_size(rows: Survey | None) -> int:
    """Rows of an update, no more than there are to train on.

    Dev rows that no file has are drawn by their ids, so how many are left is known only roughly:
    of few rows half as many are safe.
    """
    train = int(_train(rows)[0])
    drawn = rows is None or "dev" not in rows.splits
    return min(BATCH_SIZE, max(1, train // 2) if drawn else train)


def _enough(text: Survey | None) -> bool:
    return text is not None and MOST_PASSES * text.tokens >= LEAST_GENERAL


def _length(rows: Survey | None, shape: Shape) -> int:
    """Tokens of the longest window: enough for nine of ten rows, if there is time for it."""
    if rows is None:
        return 64
    fitting = 1 << math.ceil(math.log2(rows.long + 2))  # two special tokens
    length = min(max(fitting, 64), shape.longest)
    return length + _target_length(rows) if rows.answers == "text" else length


def _target_length(rows: Survey) -> int:
    """Most tokens of an answer that is written: enough for more than nine of ten."""
    fitting = 8 * math.ceil((1.25 * rows.long_answer + 2) / 8)
    return min(max(fitting, 16), LONGEST_TARGET)


def _settings(rows: Survey | None, shape: Shape) -> str:
    """The settings of the head."""
    if rows and rows.answers == "extract" and "no answer" in rows.labels:
        return "{no_answer_threshold: dev}"
    kind = rows.answers if rows else "label"
    settings = HEADS[kind][1]
    if rows and kind == "text":
        settings = settings.replace("TARGET", str(_target_length(rows)))
    if shape.summary != "network" and kind in SUMMED_UP:
        settings = settings.replace("}", f", summary: {shape.summary}}}")
    pairs = rows is not None and "text_pair" in rows.source["fields"]
    # A published network finds equal words by itself.
    if not shape.init and told_what_texts_share(kind, pairs):
        settings = settings.replace("}", ", shared_tokens: true}")
    return settings


def _metrics(rows: Survey | None) -> tuple[str, ...]:
    """The metrics, of which the first is the gate's and selects the weights."""
    if rows is None:
        return ()
    if rows.answers == "extract" and main_language(rows.source["language"]) in ("zh", "ja"):
        return "cmrc_f1", "cmrc_exact_match"
    *others, best = answers_of(HEADS[rows.answers][0]).usual
    counts = rows.labels.values()
    if rows.answers == "label" and min(counts) * 2 >= max(counts):
        return "accuracy", "macro_f1"  # labels about equally frequent
    return best, *others


def _margin(rows: Survey | None) -> float:
    """The approximate smallest loss that the dev rows can decide."""
    if rows is None:
        return 0.02
    # Where no file is of dev rows, some of the training rows are.
    share = rows.source.get("set_aside", 0.1)
    deciding = rows.splits.get("dev") or share * rows.splits.get("train", rows.records)
    return max(0.02, math.ceil(100 / math.sqrt(max(deciding, 25))) / 100)


def _rate(rate: float) -> str:
    return f"{rate:.1e}".replace("e-0", "e-")


def _round(tokens: float) -> int:
    """Round to two significant digits, all that such an estimate has."""
    if tokens < 100:
        return max(1, round(tokens))
    unit = 10 ** (int(math.log10(tokens)) - 1)
    return int(round(tokens / unit) * unit)
