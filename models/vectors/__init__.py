"""What the objectives of static word vectors share: text in windows, scores and sparse updates."""
