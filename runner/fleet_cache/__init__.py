"""The fleet's cache: artifacts and datasets that one machine made and others need not make again.

Comes in: folders with a key that says what went into them. Goes out: the same folders on another
machine, every byte checked. It is a convenience and never an authority: whatever is wrong with it,
a job goes on without it and says so in its document.
"""
