"""Repository tests: an answer that is a patch, and the tests of a repository that it must make pass."""
