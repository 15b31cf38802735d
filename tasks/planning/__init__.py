"""Planning a recipe before it runs: its steps, drift references, costs, examples."""
