"""Make ``tokenizers/``: ids of Hugging Face transformers on a thousand lines of each language.

Run by hand, in an environment of its own (transformers and sentencepiece are no dependencies of
ours):

    pip install transformers==5.23.0 sentencepiece==0.2.3 sacremoses==0.2.0 protobuf
    PYTHONPATH=. python tests/parity/make_tokenizer_goldens.py [t5] [xlnet] [marian] [gpt]

The models are learned here, with the arguments of the published ones. A folder each: their files as
they publish them, and ``ids.npz`` with the ids of `tests.models.odd_lines.lines` one after another
and the number of them in each line.
"""

from __future__ import annotations

import json
import shutil
import sys
import unicodedata
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import transformers as hf

from tests.models.odd_lines import lines

FOLDER = Path(__file__).with_name("tokenizers")
LEARNING = {"character_coverage": 0.9995, "hard_vocab_limit": False, "minloglevel": 2}
XLNET = {
    "unk_id": 0,
    "bos_id": 1,
    "eos_id": 2,
    "control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"],
    "user_defined_symbols": [".", "(", ")", '"', "-", "–", "£", "€"],
}
T5 = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}


def learn(path: Path, **more: Any) -> Any:
    """Learn a model of 600 pieces and write it to a file."""
    import sentencepiece

    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines()),
            model_writer=file,
            vocab_size=600,
            model_type="unigram",
            **LEARNING,
            **more,
        )
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def keep(folder: Path, ids: list[list[int]], by: str = "sentencepiece", **more: np.ndarray) -> None:
    """Write ``ids.npz``."""
    np.savez_compressed(
        folder / "ids.npz",
        ids=np.array([each for line in ids for each in line], np.int16),
        lengths=np.array([len(line) for line in ids], np.int16),
        versions=np.array([hf.__version__, version(by)]),
        **more,
    )


def fresh(name: str) -> Path:
    """An empty folder."""
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    (FOLDER / name).mkdir(parents=True)
    return FOLDER / name


def t5() -> None:
    """``spiece.model``, as T5 first was published, and ``tokenizer.json`` as it is written now.

    The ids are SentencePiece's. The Rust package differs in the lines that ``rust`` numbers.
    """
    folder = fresh("t5")
    model = learn(folder / "spiece.model", **T5)
    (folder / "config.json").write_text(json.dumps({"model_type": "t5"}), "utf-8")
    ids = [model.encode(line) for line in lines()]
    theirs = hf.T5Tokenizer.from_pretrained(folder)
    theirs.save_pretrained(folder)
    fast = [theirs(line, add_special_tokens=False).input_ids for line in lines()]
    differ = [i for i, one, other in zip(count(), ids, fast, strict=False) if one != other]
    keep(folder, ids, rust=np.array(differ, np.int16))


def folded(line: str) -> str:
    """As ``preprocess_text`` of XLNet's authors."""
    line = unicodedata.normalize("NFKD", line.replace("``", '"').replace("''", '"'))
    return "".join(each for each in line if not unicodedata.combining(each))


def xlnet() -> None:
    """``spiece.model``; the ids are SentencePiece's of texts without accents, by the authors' code.

    The Rust package differs in the lines that ``rust`` numbers: it puts a space behind each of the
    symbols that always are a piece, and does not join letters of Hangul.
    """
    folder = fresh("xlnet")
    model = learn(folder / "spiece.model", **XLNET)
    (folder / "config.json").write_text(json.dumps({"model_type": "xlnet"}), "utf-8")
    theirs = hf.XLNetTokenizer.from_pretrained(folder)
    ids = [model.encode(folded(line)) for line in lines()]
    fast = [theirs(line, add_special_tokens=False).input_ids for line in lines()]
    differ = [i for i, one, other in zip(count(), ids, fast, strict=False) if one != other]
    theirs.save_pretrained(folder)
    keep(folder, ids, rust=np.array(differ, np.int16))


def marian() -> None:
    """One model under both names, and a vocabulary that numbers its pieces anew."""
    folder = fresh("marian")
    model = learn(folder / "source.spm", unk_id=0, bos_id=1, eos_id=2)
    shutil.copyfile(folder / "source.spm", folder / "target.spm")
    pieces = [model.id_to_piece(i) for i in range(3, len(model))]
    names = ["</s>", "<unk>", *sorted(pieces), "<pad>"]
    (folder / "vocab.json").write_text(
        json.dumps({name: i for i, name in enumerate(names)}, ensure_ascii=False), "utf-8"
    )
    (folder / "config.json").write_text(json.dumps({"model_type": "marian"}), "utf-8")
    theirs = hf.MarianTokenizer.from_pretrained(folder)
    keep(folder, [theirs(line, add_special_tokens=False).input_ids for line in lines()])


def gpt() -> None:
    """``vocab.json`` and ``merges.txt`` as the first GPT's, with <unk> as the only special token.

    Its characters are the most frequent ones, so that other characters are <unk>.
    """
    folder = fresh("gpt")
    made: Any = tokenizers.Tokenizer(tokenizers.models.BPE(end_of_word_suffix="</w>"))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>"], limit_alphabet=60, end_of_word_suffix="</w>"
    )
    made.train_from_iterator(lines(), trainer)
    made.model.save(str(folder))
    (folder / "config.json").write_text(json.dumps({"model_type": "openai-gpt"}), "utf-8")
    theirs = hf.OpenAIGPTTokenizer.from_pretrained(folder)
    ids = [theirs(line, add_special_tokens=False).input_ids for line in lines()]
    assert any(theirs.unk_token_id in line for line in ids)
    theirs.save_pretrained(folder)
    keep(folder, ids, "tokenizers")


if __name__ == "__main__":
    for name in sys.argv[1:] or ("t5", "xlnet", "marian", "gpt"):
        {"t5": t5, "xlnet": xlnet, "marian": marian, "gpt": gpt}[name]()
