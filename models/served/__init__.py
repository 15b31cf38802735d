"""What a served model takes along to read long texts and to make answers of predictions.

These modules are copied beside a packaged model, so they import NumPy, the standard library and
each other, and nothing else of this project.
"""
