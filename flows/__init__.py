"""The Prefect flows: the order of the steps. They touch no tensors and no files."""

from fourstage.settings import make_home, refuse_backend, refuse_optimised, refuse_shadowed

refuse_optimised()
refuse_shadowed()
refuse_backend()
make_home()  # Prefect's embedded server opens its database there before a flow begins
