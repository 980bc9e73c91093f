"""The door: the `forkwatch` command."""
