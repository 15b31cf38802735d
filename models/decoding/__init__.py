"""Generation of text: which tokens follow a prompt.

    prompts → reader (network with a cache) → log probabilities of the next token
            → filters (temperature, top-k, nucleus, n-grams) → sampling or beam search → tokens

`generate` is the entry. Searches are plain NumPy over what a reader gives, whatever the network.
"""
