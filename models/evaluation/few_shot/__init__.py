"""In-context learning: a causal network answers rows from examples in its prompt, untrained.

    rows → wording (labels as words) → template → prompts with K examples, tokenised whole
         → log likelihood of each answer, or a text that is written → the row's answer

`protocol.few_shot` is the entry.

Reference:
    Brown et al. 2020, "Language Models are Few-Shot Learners", arXiv 2005.14165, 2.4.
"""
