"""Limits that keep one bad file from bringing down the machine, far above what text needs."""

MEBIBYTE = 1 << 20

MAX_LINE_BYTES = 32 * MEBIBYTE  # one line, one quoted record
MAX_DOCUMENT_BYTES = 32 * MEBIBYTE  # one document of a text file
MAX_JSON_BYTES = 256 * MEBIBYTE  # a file that is one JSON text; SQuAD 2.0 has 40
# Text compresses by a factor of 3 to 20, logs by up to about 60; deflate's own limit is 1,030.
MAX_RATIO = 200
RATIO_FLOOR_BYTES = 8 * MEBIBYTE  # the ratio is not checked below this much output
MAX_MEMBERS = 2_000_000  # of one archive
MAX_ID_CHARACTERS = 200
MAX_LABEL_CHARACTERS = 100  # a longer one is text in the wrong column
MAX_PICTURE_BYTES = 32 * MEBIBYTE
MAX_PIXELS = 64_000_000  # of one picture, as its header says; photographs have 12 to 50 million
MAX_REGIONS = 36  # kept of a picture, unless its source says otherwise; the papers' number
