"""The flows: what happens, in which order. No tensors, no files."""

from fourstage.settings import make_home, refuse_optimised, refuse_shadowed

refuse_optimised()
refuse_shadowed()
make_home()  # Prefect's embedded server opens its database there before a flow begins
