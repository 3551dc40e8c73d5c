"""Programs in containers: warm boxes of a Docker engine, one for each answer."""
