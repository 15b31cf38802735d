"""First on the path of the commands that tests type: as for users, JAX is not installed.

It is installed for the tests on its backend alone, and TensorFlow imports it where it is, which
takes a fifth of the time of a start.
"""

raise ModuleNotFoundError("No module named 'jax'", name="jax")
