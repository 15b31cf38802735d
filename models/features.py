"""Names of the tensors in a batch and in a network's outputs, and the legend of shapes.

B batch, T tokens, S target tokens, D width, F feed-forward width, H heads, K width per head,
V vocabulary, M predicted positions per row, R read positions per row, L layers, P remembered
tokens, N labels, G tags, C choices per row, O regions (objects) of a picture, E numbers of a
region. Token ids, segments and mask of rows with choices are (B, C, T); of rows whose two texts are
read alone, (B, 2, T).

Masks are 1 at positions that are kept.
"""

TOKEN_IDS = "token_ids"  # (B, T) int32
SEGMENT_IDS = "segment_ids"  # (B, T) int32
TASK_IDS = "task_ids"  # (B,) int32, pre-training task of each row (ERNIE 2.0)
MODES = "modes"  # (B,) int32, which tokens of each row see which (`models.modes.Mode`)
ADDED_VECTORS = "added_vectors"  # (B, T, D) float32, what a head adds to each, in its length
PADDING_MASK = "padding_mask"  # (B, T) int32, 1 = token, 0 = padding
READ_POSITIONS = "read_positions"  # (B, R) int32, where the last layer is read; summary first
MASK_POSITIONS = "mask_positions"  # (B, M) int32, positions to predict
MASK_LABELS = "mask_labels"  # (B, M) int32, original tokens at these positions
MASK_WEIGHTS = "mask_weights"  # (B, M) float32, loss weights: 0 for an unused slot
NEXT_LABELS = "next_labels"  # (B, T - 1 or T) int32, the token after each position
NEXT_WEIGHTS = "next_weights"  # (B, T - 1 or T) float32, loss weights: 0 before padding
INNER_LABELS = "inner_labels"  # (B, T - 2) int32, each token but the first and the last
INNER_WEIGHTS = "inner_weights"  # (B, T - 2) float32, loss weights: 0 next to padding
FACTORISATION = "factorisation"  # (B, T) int32, places: a token sees those of no later place
QUERY_POSITIONS = "query_positions"  # (B, M) int32, positions that the query stream predicts
QUERY_LABELS = "query_labels"  # (B, M) int32, the tokens there
QUERY_WEIGHTS = "query_weights"  # (B, M) float32, loss weights: 0 for an unused slot
MEMORY = "memory"  # (B, L, P, D) float32, what entered each layer, of the P tokens before the row
MEMORY_MASK = "memory_mask"  # (B, P) float32, 1 = token, 0 = nothing remembered
BEGINS = "begins"  # (B,) int32, 1 where a row goes on from no other: its memory is empty
REMEMBERED = "remembered"  # (B,) int32, tokens of each row before the next one goes on; all alike
TARGET_IDS = "target_ids"  # (B, S) int32, the start token and what is written after it
TARGET_MASK = "target_mask"  # (B, S) int32, 1 = token, 0 = padding
TARGET_LABELS = "target_labels"  # (B, S) int32, the token after each of these
TARGET_WEIGHTS = "target_weights"  # (B, S) float32, loss weights
TARGET_POSITIONS = "target_positions"  # (B, S) int32, position of each; else they count from 0
ATTENDED_MASK = "attended_mask"  # (B, T) int32, 1 = the target attends to it; else all tokens
NGRAM_IDS = "ngram_ids"  # (B, K) int32, buckets of a row's n-grams (`models.inputs.hashed_ngrams`)
NGRAM_COUNTS = "ngram_counts"  # (B, K) int32, n-grams of each bucket, 0 for none; pairs (B, K, 2)
NGRAM_LOGITS = "ngram_logits"  # (B, N) float32, in their place for training rows (`layers.wide`)
LABELS = "labels"  # (B,) int32, label ids
NUMBER_LABELS = "number_labels"  # (B,) float32, NaN for a row without a number
CHOICE_MASK = "choice_mask"  # (B, C) int32, 1 = choice, 0 = only fills up the row
SET_LABELS = "set_labels"  # (B, N) int32, 1 = has the label, 0 = has not, -1 = not known
WORD_STARTS = "word_starts"  # (B, T) int32, position of each word's first token
WORD_ENDS = "word_ends"  # (B, T) int32, position of each word's last token
WORD_MASK = "word_mask"  # (B, T) int32, 1 = word, 0 = unused slot or a word without tokens
TAG_LABELS = "tag_labels"  # (B, T) int32, tag of each word, -1 for none
START_LABELS = "start_labels"  # (B,) int32, slot of the first word of the answer, 0 for none
END_LABELS = "end_labels"  # (B,) int32, slot of the last word
ROW_WEIGHTS = "row_weights"  # (B,) float32, loss weights: 0 for a row that only fills a batch
REGION_FEATURES = "region_features"  # (B, O, E) float32, of each region of the row's picture
REGION_BOXES = "region_boxes"  # (B, O, 4) float32, left, top, right, bottom, each 0 to 1
REGION_MASK = "region_mask"  # (B, O) int32, 1 = region, 0 = padding
SEEN = (REGION_FEATURES, REGION_BOXES, REGION_MASK)
DETECTED_CLASSES = "detected_classes"  # (B, O, 2) int32, object class and attribute of each region
DETECTED_CONFIDENCES = "detected_confidences"  # (B, O, 2) float32, of each, 0-1; 0 for none told
DETECTED = (DETECTED_CLASSES, DETECTED_CONFIDENCES)
MASKED_REGIONS = "masked_regions"  # (B, O) int32, 1 = an objective hides it: its features are 0
REGION_LABELS = "region_labels"  # (B, O, E) float32, the features before regions were hidden
REGION_WEIGHTS = "region_weights"  # (B, O) float32, loss weights: 1 for a region to predict
ENTITY_IDS = "entity_ids"  # (B, T) int32, the entity named from this token on, 0 for none
ENTITY_POSITIONS = "entity_positions"  # (B, K) int32, first tokens of names to predict
ENTITY_CANDIDATES = "entity_candidates"  # (B, K) int32, entities that they may mean, 0 for none
ENTITY_LABELS = "entity_labels"  # (B, K) int32, the entities named there
ENTITY_WEIGHTS = "entity_weights"  # (B, K) float32, loss weights: 0 for an unused slot
MATCH_LABELS = "image_text_match_labels"  # (B,) int32, 1 where the picture is the caption's own
ANSWER_LABELS = "image_question_answering_labels"  # (B,) int32, answers; -1 before `examples`
ANSWER_WEIGHTS = "image_question_answering_weights"  # (B,) float32, loss weights: 0 for no answer
COPY = "copy/"  # + a name: of the copy of the rows that auxiliary objectives corrupt
# + objective/score: weight of one of its losses in the whole batch, (), divided by the number of
# micro-batches. An extra input of these; the name sorts after all features.
WHOLE = "whole_weight/"

# As wide in all of a dataset's batches.
FIXED_SHAPES = (
    *(REGION_FEATURES, REGION_BOXES, REGION_MASK, MASKED_REGIONS),
    *(REGION_LABELS, REGION_WEIGHTS, DETECTED_CLASSES, DETECTED_CONFIDENCES),
)
TOKENS = (TOKEN_IDS, TARGET_IDS, TARGET_LABELS)  # [PAD] where a row has ended
MASKS = (PADDING_MASK, TARGET_MASK)  # the tokens that a batch reads are counted by these

# Used by objectives only; removed before a batch reaches the network.
# (B, T) uint32, kinds of unit that start at a token: sum of the flags, and ENTITY_UNIT times the
# number of the entity that is named from there on.
UNIT_STARTS = "unit_starts"
WORD, PHRASE, ENTITY = 1, 2, 4  # as written by corpora.units
CASED, CAPITALISED = 8, 16  # word whose first letter has case; word whose first letter is a capital
ENTITY_UNIT = 256
SENTENCE_STARTS = "sentence_starts"  # (B, T) uint8, 1 where a sentence of the corpus starts
DATA_ONLY = (UNIT_STARTS, SENTENCE_STARTS)

SEQUENCE_OUTPUT = "sequence_output"  # (B, T, D); of a batch with a target (B, S, D) or (B, T+S, D)
POOLED_OUTPUT = "pooled_output"  # (B, D or `pooled_dim`)
REGION_OUTPUT = "region_output"  # (B, O, D or `region_output_dim`), only of a batch with regions
QUERY_OUTPUT = "query_output"  # (B, M, D), of the query stream
TOKEN_LOGITS = "token_logits"  # (B, M, V)
LOGITS = "logits"  # (B, N)
TAG_LOGITS = "tag_logits"  # (B, T, G), of each word
TAG_TRANSITIONS = "tag_transitions"  # (B, G + 2, G), from tag to tag; then start, then end
START_LOGITS = "start_logits"  # (B, T + 1), of each word and, first, of no answer
END_LOGITS = "end_logits"  # (B, T + 1)
NUMBERS = "numbers"  # (B,)
WRITTEN_IDS = "written_ids"  # (B, S) int32, a text that was written; -1 after its end
LOG_PROBABILITY = "log_probability"  # (B,) float32, nats, of that text
TARGET_NATS = "target_nats"  # (B,) float32, minus the log probability of the row's target
TARGET_TOKENS = "target_tokens"  # (B,) float32, number of its tokens, with the one that ends it
PROBABILITIES = "probabilities"  # (B, N)
