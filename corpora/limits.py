"""Bounds that keep one bad file from taking the machine along; far above what real text needs."""

MEBIBYTE = 1 << 20

MAX_LINE_BYTES = 32 * MEBIBYTE  # one line, one quoted record
MAX_DOCUMENT_BYTES = 32 * MEBIBYTE  # one document of a text file
# Real text compresses 3 to 20 times, logs up to some 60; deflate's own limit is 1,030.
MAX_RATIO = 200
RATIO_FLOOR_BYTES = 8 * MEBIBYTE  # below this much output the ratio is nobody's business
MAX_MEMBERS = 2_000_000  # of one archive
MAX_ID_CHARACTERS = 200
MAX_LABEL_CHARACTERS = 100  # a longer one is a text in the wrong column
