"""From a recipe to its steps, before anything is made: sources, references, costs, examples."""
