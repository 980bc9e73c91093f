"""`python -m forkwatch` is the same as `forkwatch`."""

from forkwatch.cli import main

main()
