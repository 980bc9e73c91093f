"""The catalog: what to run and how to read it. Nothing here starts a process."""
