"""Parameter counts at the published sizes.

They are those of transformers' classes with the released configurations. Where it has no class, a
count is a sum by hand from the paper's sizes, held to the paper's own figure where it has one.
"""

from __future__ import annotations

import math

import pytest

from fourstage.errors import RecipeError
from models import catalogue
from models.weights import named_weights
from tests.models.weightless import weightless

# (family, size, vocabulary): parameters, of the network with its pooler where it has one. BERT's
# are in test_bert.py. Numbers without a sum are of transformers' classes. RoBERTa's table of
# positions has two rows more there, which nothing reads.
PUBLISHED = {
    # So have both of BART's.
    ("bart", "base", 50_265): 139_420_416 - 2 * 2 * 768,
    ("bart", "large", 50_265): 406_291_456 - 2 * 2 * 1024,
    ("roberta", "base", 50_265): 124_055_040 - 2 * 768,
    ("roberta", "large", 50_265): 354_310_144 - 2 * 1024,
    ("roformer", "base", 50_000): 123_555_840 - 1536 * 64,  # their table of sines, which is fixed
    ("albert", "base", 30_000): 11_683_584,
    ("albert", "large", 30_000): 17_683_968,
    ("albert", "xlarge", 30_000): 58_724_864,
    ("albert", "xxlarge", 30_000): 222_595_584,
    ("electra", "small", 30_522): 13_483_008,
    ("electra", "small_generator", 30_522): 4_580_928,
    ("electra", "base", 30_522): 108_891_648,
    ("electra", "base_generator", 30_522): 33_511_168,
    ("electra", "large", 30_522): 334_092_288,
    ("electra", "large_generator", 30_522): 50_999_552,
    ("distilbert", "base", 30_522): 66_362_880,
    ("mass", "base", 30_522): 123_468_288,  # the authors' README: 123 and 208 million
    ("mass", "middle", 30_522): 208_664_576,
    ("ernie", "base", 18_000): 99_865_344,
    ("ernie", "base_2", 30_522): 109_484_544,
    ("ernie", "large_2", 30_522): 335_144_960,
    # LxmertModel and VisualBertModel of transformers 5.23, with features of 2048 numbers.
    ("lxmert", "base", 30_522): 207_936_768,
    ("visualbert", "base", 30_522): 111_450_624,
    # Transformers has none of the following: sums by hand.
    # BERT's, with features, boxes, norms, and where there are such the vector of hidden features.
    ("unicoder_vl", "base", 30_522): 109_482_240 + (2049 + 6 + 2) * 768,
    ("uniter", "base", 30_522): 109_482_240 + (2049 + 8 + 6) * 768 + 2048,
    ("uniter", "large", 30_522): 335_141_888 + (2049 + 8 + 6) * 1024 + 2048,
    # One segment more, sines of boxes beside features, two norms, four vectors.
    ("vl_bert", "base", 30_522): 109_482_240 + (1 + 4097 + 4 + 4) * 768 + 2048,
    ("vl_bert", "large", 30_522): 335_141_888 + (1 + 4097 + 4 + 4) * 1024 + 2048,
    # BERT's without its pooler, the embedding of regions, both poolers, six pairs: a block of
    # regions, and attention across with what follows it, of each stream.
    ("vilbert", "base", 30_522): 109_482_240
    - 590_592
    + (2049 + 6 + 2) * 1024
    + (769 + 1025) * 1024
    + 6 * (2 * 6_301_696 + 7_875_072),
    # BERT's with entities: their table, fusion in seven layers, attention in six, norms; the last
    # one gives none back.
    ("ernie_tsinghua", "base", 30_522): 109_482_240
    + 41_000 * 100
    + 7 * 3072 * 100
    + 6 * (4 * 101 * 100 + 200)
    + 6 * (3073 * 100 + 200),
    # BERT's, with four more segments; a sum by hand, too.
    ("unilm", "base", 28_996): 109_482_240 - 1526 * 768 + 4 * 768,
    ("unilm", "large", 28_996): 335_141_888 - 1526 * 1024 + 4 * 1024,
    ("gpt", "base", 40_478): 116_534_784,
    ("gpt2", "base", 50_257): 124_439_808,
    ("gpt2", "medium", 50_257): 354_823_168,
    ("gpt2", "large", 50_257): 774_030_080,
    ("gpt2", "xl", 50_257): 1_557_611_200,
    ("t5", "small", 32_128): 60_506_624,
    ("t5", "base", 32_128): 222_903_552,
    ("t5", "large", 32_128): 737_668_096,
    ("t5", "v1.1-small", 32_128): 76_961_152,
    ("t5", "v1.1-base", 32_128): 247_577_856,
    ("t5", "v1.1-large", 32_128): 783_150_080,
    ("xlnet", "base", 32_000): 116_718_336,
    ("xlnet", "large", 32_000): 360_268_800,
}


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: f"{case[0]}-{case[1]}")
def test_parameter_counts_are_the_published_ones(case):
    family, size, vocabulary_size = case
    settings = catalogue.literals("families", family)["SIZES"][size]
    with weightless():
        network = catalogue.find("families", family)(vocabulary_size=vocabulary_size, **settings)
    assert network.count_params() == PUBLISHED[case]


@pytest.mark.parametrize(
    ("family", "size", "millions", "parts"),
    [
        # UNITER's (arXiv 1909.11740) are of what stands above the embeddings.
        ("uniter", "base", 86, ("block_", "pooler")),
        ("uniter", "large", 303, ("block_", "pooler")),
        # ERNIE's (arXiv 1905.07129) are of all but the entities' vectors, which nothing trains.
        ("ernie_tsinghua", "base", 114, ("block_", "pooler", "embeddings/")),
    ],
)
def test_the_papers_own_figures_are_met(family, size, millions, parts):
    settings = catalogue.literals("families", family)["SIZES"][size]
    with weightless():
        network = catalogue.find("families", family)(vocabulary_size=30_522, **settings)
        shapes = {name: each.shape for name, each in named_weights(network).items()}
    own = [name for name in shapes if name.startswith(parts)]
    assert round(sum(math.prod(shapes[name]) for name in own) / 1e6) == millions


def test_layers_of_a_group_are_one_block():
    albert = catalogue.find("families", "albert")
    small = {"hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16, "embedding_dim": 4}
    network = albert(vocabulary_size=20, num_layers=5, num_groups=2, num_inner_blocks=2, **small)
    assert network.order == (0, 1, 0, 1, 0, 1, 2, 3, 2, 3)
    assert len(network.blocks) == 4
    deeper = albert(vocabulary_size=20, num_layers=12, **small)
    shallow = albert(vocabulary_size=20, num_layers=1, **small)
    assert deeper.count_params() == shallow.count_params()


@pytest.mark.parametrize(
    ("family", "name"), [("albert", "num_groups"), ("vilbert", "num_region_layers")]
)
def test_more_parts_of_the_layers_than_there_are_layers_are_refused(family, name):
    size = {**catalogue.literals("families", family)["SIZES"]["tiny"], "num_layers": 2, name: 3}
    said = f"{name}: expected 1 to 2, no more than num_layers, got 3"
    with pytest.raises(RecipeError, match=said):
        catalogue.find("families", family)(vocabulary_size=30, **size)
