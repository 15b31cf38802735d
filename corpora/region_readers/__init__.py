"""Readers of published region features, one file a format; the suffix of a file tells which.

Each has `SUFFIXES` and ``read(content, wanted, is_named)``, which yields the names of pictures with
their regions, or why there are none. Only pictures that a row names are decoded, one at a time.
"""
