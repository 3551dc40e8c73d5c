"""Our processes: the runner outside the jails, the first process inside, and what leads from there to a program."""
