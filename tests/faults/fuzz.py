"""Coverage-guided fuzzing of every parser of ours: bytes in; a result or an error of ours out.

    make fuzz                                    # every parser, a minute each
    python -m tests.faults.fuzz jsonl 600        # one of them, ten minutes

Run by hand: it needs atheris, and stops at the first other error with the input that caused it in
a file ``crash-…`` of the folder that it names. What it found has a test beside the parser.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FORMATS = ("csv", "jsonl", "parquet", "python_docs", "text", "tsv")
PARSERS = ("yaml", "recipe", "source", "suite", "gazetteer", "weights", "tokenizer", "tar", "zip")


def parser(name: str, folder: Path) -> tuple[Callable[[Path], object], str, list[bytes]]:
    """What reads a file of a kind, the name such a file has, and genuine ones to begin with."""
    from corpora.gazetteer_file import read_gazetteer
    from data_contracts.sources import read_source
    from data_contracts.suite import read_suite
    from fourstage.recipe.loading import load_recipe
    from fourstage.recipe.resolution import resolve
    from fourstage.settings import REPOSITORY
    from fourstage.strict_yaml import read_document
    from models.interchange.tokenizer_files import read_tokenizer, write_tokenizer
    from models.interchange.weight_files import WeightFiles
    from models.tokenizers.wordpiece import SPECIAL_TOKENS, WordPiece

    def genuine(pattern: str) -> list[bytes]:
        return [path.read_bytes() for path in sorted(REPOSITORY.glob(pattern))]

    recipes = genuine("recipes/**/*.yaml")
    match name:
        case "yaml":
            return lambda path: read_document(path, "x"), "x.yaml", recipes
        case "recipe":
            return lambda path: resolve(load_recipe(str(path))), "x.yaml", recipes
        case "source":
            return read_source, "smoke_labels.yaml", genuine("data_contracts/sources/*.yaml")
        case "suite":
            return read_suite, "x.json", genuine("data_contracts/suites/*.json")
        case "gazetteer":
            return read_gazetteer, "x.tsv", ["Paris\tentity\n机器学习\tphrase\n".encode()]
        case "weights":
            from safetensors.numpy import save

            seed = save({"a": np.ones((2, 3), np.float32), "b": np.zeros(2, np.float16)})
            return lambda path: WeightFiles(path.parent), "model.safetensors", [seed]
        case "tokenizer":
            written = folder / "written"
            written.mkdir()
            pieces = [*SPECIAL_TOKENS, "new", "##s"]
            write_tokenizer(WordPiece(pieces, lowercase=True), written, 64, segments=True)
            seeds = [(written / "tokenizer.json").read_bytes()]
            return lambda path: read_tokenizer(path.parent), "tokenizer.json", seeds
    return _reader(name, folder)


def _reader(name: str, folder: Path) -> tuple[Callable[[Path], object], str, list[bytes]]:
    """A reader of text, or one of archives with a text inside."""
    from corpora.archives import contents
    from corpora.readers import reader
    from tests.corpora.conftest import source_of
    from tests.corpora.readers.test_fuzzing import GENUINE, state_of

    format_name = name if name in FORMATS else "text"
    fields = {"text": "text", "label": "label"}
    source = source_of(files="x", format=format_name, fields=fields)
    if name in ("python_docs", "text", "tar", "zip"):
        source = source_of(files="x", format=format_name)

    def read(path: Path) -> list[object]:
        found = []
        for one in contents(state_of(path)):
            found += list(reader(format_name, "source x")(one, source))
        return found

    if name in FORMATS:
        return read, f"x.{name}", [GENUINE[name]]
    packed = folder / f"seed.{name}"
    _pack(name, packed, GENUINE["text"])
    return read, "x.tar.gz" if name == "tar" else "x.zip", [packed.read_bytes()]


def _pack(name: str, path: Path, content: bytes) -> None:
    import tarfile
    import zipfile

    inside = path.with_name("inside.text")
    inside.write_bytes(content)
    if name == "tar":
        with tarfile.open(path, "w:gz") as archive:
            archive.add(inside, "inside.text")
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(inside, "inside.text")


def fuzz(name: str, seconds: int) -> None:
    """Fuzz one parser in this process; libFuzzer ends the process."""
    atheris: Any = import_module("atheris")  # not among the development packages

    with atheris.instrument_imports(include=["corpora", "fourstage", "models", "data_contracts"]):
        folder = Path(tempfile.mkdtemp(prefix=f"fuzz-{name}-"))
        os.environ["FOURSTAGE_HOME"] = str(folder / "home")
        read, file_name, genuine = parser(name, folder)
        from fourstage.errors import ContractViolation, EnvironmentFault, RecipeError

    seeds, place = folder / "seeds", folder / "file"
    seeds.mkdir()
    place.mkdir()
    for number, content in enumerate(genuine):
        (seeds / str(number)).write_bytes(content)
    path = place / file_name

    def one(data: bytes) -> None:
        path.write_bytes(data)
        try:
            read(path)
        except (RecipeError, ContractViolation, EnvironmentFault):
            return  # said in our words

    limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=4096", "-max_len=20000"]
    limits.append(f"-artifact_prefix={folder}/")
    atheris.Setup([sys.argv[0], "-verbosity=0", "-print_final_stats=1", *limits, str(seeds)], one)
    atheris.Fuzz()


def main(arguments: list[str]) -> int:
    """All parsers one after the other, or the one that is named."""
    if len(arguments) == 2:
        fuzz(arguments[0], int(arguments[1]))
        return 0
    seconds = arguments[0] if arguments else "60"
    failed = []
    for name in (*PARSERS, *FORMATS):
        command = [sys.executable, "-m", "tests.faults.fuzz", name, seconds]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        runs = re.search(r"number_of_executed_units: *(\d+)", done.stdout)
        said = f"{int(runs[1]):,} inputs" if runs else ""
        if done.returncode:
            failed.append(name)
            said += f", stopped:\n{done.stdout[-3000:]}"
        sys.stdout.write(f"{name:12} {said}\n")
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
