"""The product as people meet it: the command, the servers, a worker; real processes, real text."""
