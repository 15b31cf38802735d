"""Bad inputs and faults, each with what must happen."""
