"""The memory: the part of forkwatch that is always on.

It follows repositories, asks runners to measure, keeps what they send, judges it, and speaks once.
Inside, arrows point down only: `app > web > flows > store | channels > core`. It meets the runner
over HTTP and files, never by import.
"""
