"""The door: the command and the settings. Importing any of it makes the process private."""

from fourstage.settings import make_private

make_private()
