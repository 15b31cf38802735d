"""Recipes: the one YAML file that describes a whole run.

`loading` reads and checks a file, `resolution` makes every value explicit, `resolved.stage_spec` is
the part of a stage that enters its key. ``python -m fourstage.recipe`` writes the JSON schema.
"""
