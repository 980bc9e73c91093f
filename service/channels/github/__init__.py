"""GitHub as a channel: checks, comments, issues and permissions of one repository.

Texts made by `reports` come in, and are on GitHub once however often they are sent. The repository
is known here; forks, verdicts and flows are not.
"""
