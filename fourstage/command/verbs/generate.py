"""``generate``: writes from texts with a trained stage's network."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import fields

from fourstage.command.options import add_json, add_recipe
from fourstage.command.output import only_results, print_line
from models.decoding.settings import POLICIES, Generation

HELP = "continue texts, fill in their [MASK] or answer them with the network of a trained stage"
_SETTINGS = {
    "max_new_tokens": "most tokens to write",
    "min_new_tokens": "fewest tokens to write",
    "beams": "hypotheses that beam search keeps at each step",
    "length_penalty": "a hypothesis's score is divided by its length to this power",
    "length_offset": "tokens added to that length; 5 as in GNMT",
    "no_repeat_ngram": "write no sequence of N tokens twice; 0 for no limit",
    "sample": "draw tokens instead of taking the likeliest",
    "temperature": "logits are divided by it before drawing",
    "top_k": "draw from the N likeliest tokens; 0 for all",
    "top_p": "draw from the fewest likeliest tokens whose probabilities sum to N or more",
    "seed": "seed of the draws",
    "too_long": "what to do with a text that leaves no room for new tokens",
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_recipe(parser)
    parser.add_argument("stage", metavar="STAGE", help="name of the stage, such as general")
    parser.add_argument(
        "text",
        nargs="+",
        metavar="TEXT",
        help="texts to start from. Settings of the stage's own head or objective take precedence"
        " over the defaults below",
    )
    for field in fields(Generation):
        option = "--" + field.name.replace("_", "-")
        told = _SETTINGS[field.name]
        if field.name == "sample":
            parser.add_argument(option, action="store_true", default=None, help=told)
            continue
        parser.add_argument(
            option,
            type=type(field.default),
            choices=POLICIES if field.name == "too_long" else None,
            metavar=None if field.name == "too_long" else "N",
            help=f"{told}; by default {field.default}",
        )
    add_json(parser)


def handle(options: Namespace) -> int:
    """Print each text with what was written, separated by blank lines."""
    from tasks.planning.plan import plan_recipe

    asked = {name: getattr(options, name) for name in _SETTINGS}
    given = {name: value for name, value in asked.items() if value is not None}
    plan = plan_recipe(options.recipe, options.overrides, options.smoke)
    with only_results(options.json, "generate") as print_object:
        from tasks.planning.write_texts import write_texts

        found = write_texts(plan, options.stage, options.text, given)
        print_object(found)
    if not options.json:
        print_line("\n\n".join(each["whole"] for each in found))
    return 0
