"""The players of a ping-pong: pairs of processes that pass a byte to and fro over pipes.

Run by its path as `python -I -S players.py SERVER_CPUS CLIENT_CPUS PAIRS SECONDS FILE`, so that it
starts quickly; prints the round trips per second of all pairs together.
"""

from __future__ import annotations

import os
import sys
import time

#: What a server writes and makes last in each turn where a file is given: one page.
_PAGE_BYTES = 4096


def play(servers: str, clients: str, pairs: int, seconds: float, file: str) -> None:
    """Fork the pairs, let them play, and print the rate."""
    results, sink = os.pipe()
    children = []
    for number in range(pairs):
        to_server, to_client = os.pipe(), os.pipe()
        server = os.fork()
        if server == 0:
            # An end that nobody else holds tells the other side when we are gone.
            os.close(to_server[1])
            os.close(to_client[0])
            _serve(_cpus(servers), to_server[0], to_client[1], f"{file}.{number}" * bool(file))
        client = os.fork()
        if client == 0:
            os.close(to_server[0])
            os.close(to_client[1])
            turns = _ask(_cpus(clients), to_client[0], to_server[1], seconds)
            os.write(sink, f"{turns / seconds}\n".encode())
            os._exit(0)
        for descriptor in (*to_server, *to_client):
            os.close(descriptor)
        children += [server, client]
    os.close(sink)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    with os.fdopen(results) as lines:
        rates = [float(line) for line in lines]
    if any(statuses) or len(rates) != pairs:
        sys.exit("a player failed")
    sys.stdout.write(f"{sum(rates)}\n")


def _serve(cpus: set[int], incoming: int, outgoing: int, file: str) -> None:
    """Answer until the other side is gone, and end the process."""
    if cpus:
        os.sched_setaffinity(0, cpus)
    disk = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600) if file else -1
    page = b"x" * _PAGE_BYTES
    while os.read(incoming, 1):
        if disk >= 0:
            os.pwrite(disk, page, 0)
            os.fdatasync(disk)
        try:
            os.write(outgoing, b".")
        except BrokenPipeError:
            break
    os._exit(0)


def _ask(cpus: set[int], incoming: int, outgoing: int, seconds: float) -> int:
    """Return how many answers came in so many seconds."""
    if cpus:
        os.sched_setaffinity(0, cpus)
    turns = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.write(outgoing, b".")
        if not os.read(incoming, 1):
            sys.exit("the server is gone")
        turns += 1
    return turns


def _cpus(text: str) -> set[int]:
    return {int(number) for number in text.split(",") if number}


if __name__ == "__main__":
    play(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
