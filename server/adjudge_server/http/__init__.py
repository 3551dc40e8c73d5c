"""The HTTP side: everything that knows about requests and replies, and nothing about judging."""
