"""The flows: what happens to a commit, from seen to said, as durable steps over store and ports."""
