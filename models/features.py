"""Names of the tensors that travel together, and the one legend of shapes.

B batch, T tokens, S target tokens, D width, F feed-forward width, H heads, K width per head,
V vocabulary, M predicted positions a row, R positions read a row, L layers, N labels.

A mask is 1 where something is kept.
"""

TOKEN_IDS = "token_ids"  # (B, T) int32
SEGMENT_IDS = "segment_ids"  # (B, T) int32
TASK_IDS = "task_ids"  # (B,) int32, which pre-training task a row serves (ERNIE 2.0)
PADDING_MASK = "padding_mask"  # (B, T) int32, 1 = a real token
READ_POSITIONS = "read_positions"  # (B, R) int32, where the last layer is read, the summary's first
MASK_POSITIONS = "mask_positions"  # (B, M) int32, positions to predict
MASK_LABELS = "mask_labels"  # (B, M) int32, the tokens that stood there
MASK_WEIGHTS = "mask_weights"  # (B, M) float32, 0 for an unused slot
LABELS = "labels"  # (B,) int32, a row's label
ROW_WEIGHTS = "row_weights"  # (B,) float32, 0 for a row that only fills a batch

# Travels between objectives only; taken out before a batch reaches the network.
UNIT_STARTS = "unit_starts"  # (B, T) uint8, which kinds of unit a token starts: a sum of
WORD, PHRASE, ENTITY = 1, 2, 4  # these, the same as corpora.units writes
CASED, CAPITALISED = 8, 16  # a word whose first letter has case; one whose first is a capital
DATA_ONLY = (UNIT_STARTS,)

SEQUENCE_OUTPUT = "sequence_output"  # (B, T, D)
POOLED_OUTPUT = "pooled_output"  # (B, D)
TOKEN_LOGITS = "token_logits"  # (B, M, V)
LOGITS = "logits"  # (B, N)
