"""Servers: one module per engine family; each makes a data directory, starts, waits and stops."""
