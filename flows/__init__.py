"""The story: what happens, in which order. Flows only; no tensors, no files."""

from fourstage.settings import make_home, refuse_optimised

refuse_optimised()
make_home()  # Prefect's embedded server opens its database there before the first line of a flow
