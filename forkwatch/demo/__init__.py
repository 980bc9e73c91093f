"""The demo: a small fork of a database server whose history holds one real slowdown.

`series/` is the fork as its maintainers would mail it: a first tree, then patches in git's own
format. This room makes a repository of it; building and measuring are the work of the others.
"""
