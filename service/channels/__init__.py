"""The channels: adapters to code hosts, runners and people, each satisfying a port of the core."""
