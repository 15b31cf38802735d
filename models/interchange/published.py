"""Download of published checkpoints: ``hf:owner/name@commit`` or ``folder:path``.

An address has a commit, not a branch, so that it always means the same bytes. Only configuration,
safetensors and tokenizer files are downloaded: no pickles, no code.
"""

from __future__ import annotations

import re
from pathlib import Path

from fourstage.errors import EnvironmentFault, RecipeError
from fourstage.settings import home, without_credentials

ADDRESS = re.compile(r"hf:(?P<repository>[^/@\s]+/[^/@\s]+)@(?P<commit>[0-9a-f]{7,64})")
FOLDER = "folder:"
POOLING = "1_Pooling/config.json"  # how a sentence encoder sums up a text, by sentence-transformers
FETCHED = (
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "spiece.model",
    "*.spm",
)


def published_folder(address: str) -> Path:
    """The local folder of an address; downloaded to ``$FOURSTAGE_HOME/huggingface`` if needed.

    Args:
        address: ``hf:owner/name@commit`` with at least 7 digits of the commit, or ``folder:path``.

    Raises:
        RecipeError: The address is malformed, or the folder, repository or commit does not exist.
        EnvironmentFault: The hub can't be reached, and the files have not been downloaded before.
    """
    if address.startswith(FOLDER):
        folder = Path(address.removeprefix(FOLDER))
        if not folder.is_dir():
            raise RecipeError(f"{address[:200]}: there is no such folder")
        return folder
    parts = ADDRESS.fullmatch(address)
    if parts is None:
        raise RecipeError(
            f"{address[:200]!r}: expected hf:owner/name@commit (a commit, not a branch) or"
            " folder:path"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        folder = Path(
            snapshot_download(
                parts["repository"],
                revision=parts["commit"],
                cache_dir=home() / "huggingface",
                allow_patterns=[*FETCHED, POOLING],
            )
        )
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        raise RecipeError(f"{address}: the hub has no such public repository or commit") from error
    except (LookupError, TypeError, ValueError) as error:
        raise _no_hub(address) from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise EnvironmentFault(
            f"{address}: the hub cannot be reached and the files are not in"
            f" {home() / 'huggingface'}. Download them where there is a network and use"
            " folder:path"
        ) from error
    if not folder.is_dir():  # no file was listed
        raise _no_hub(address)
    if not folder.name.startswith(parts["commit"]):
        raise RecipeError(f"{address}: the hub answered with {folder.name[:12]}, another commit")
    return folder


def _no_hub(address: str) -> EnvironmentFault:
    from huggingface_hub.constants import ENDPOINT

    return EnvironmentFault(
        f"{address}: {without_credentials(ENDPOINT)} does not answer like a hub. Is it a login page"
        " or a proxy? Its address comes from HF_ENDPOINT. To use a local copy, write folder:path"
    )
