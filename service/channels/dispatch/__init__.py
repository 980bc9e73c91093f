"""CIs that do jobs for the service: GitHub Actions and Buildkite, each behind the same small port.

What is to be asked comes in, runs go out as the CI tells them. Which job it is about, and what
follows from the end of a run, is for the flows; this package knows no store.
"""
