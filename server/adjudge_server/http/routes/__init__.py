"""One module per group of paths; each has a ``router`` that :mod:`adjudge_server.app` mounts."""
