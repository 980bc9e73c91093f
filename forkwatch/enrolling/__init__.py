"""Enrolling a benchmark host: the files that make it a runner of GitHub Actions or of Buildkite.

Answers come in; texts of files go out, and are put in place, listed and taken away again. What the
host measures, and how, is not known here.
"""
