"""The instrument: builds a commit, runs its server, measures it and writes the run document.

It meets the service over HTTP and through job folders only, and holds no secret but the credential
for submitting one job's run.
"""
