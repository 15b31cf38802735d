"""The command, settings and errors. Importing any of it turns telemetry off for the process."""

from fourstage.settings import make_private

make_private()
