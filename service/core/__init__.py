"""The core of the service: its words, ports, settings and errors; no row, socket or file."""
