"""Recipes: the one YAML that says everything about a run.

`loading` reads and checks a file, `resolution` makes every value explicit, `resolved.stage_spec` is
the part of a stage that enters its key. ``python -m fourstage.recipe`` writes the JSON schema.
"""
