"""Slack as a channel: one message for each alert, its thread, and what its buttons order.

Alerts come in, and are in their channel once however often they are told. The workspace is known
here; forks, verdicts and flows are not.
"""
