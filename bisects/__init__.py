"""THE SEARCH: which commit of a range did it.

A question, the commits of its range and observations of them come in; the next measurement and a
document with probabilities go out. It starts nothing and has no clock, no random numbers and no
store, so that the command line and the service search alike and a search can be replayed.
"""
