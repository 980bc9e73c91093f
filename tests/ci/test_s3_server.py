"""The fleet's cache on a real S3 server: signatures, conditional writes, and machines that share.

The server is versitygw, built from its Go module, on a folder of this machine. It proves the
signatures, the conditions and the errors of one independent server; nothing about AWS itself, TLS,
or a store under load.
"""

from __future__ import annotations

import random
import shutil
import socket
import threading
import time

import pytest

from runner import shell
from runner.fleet_cache.address import address_of
from runner.fleet_cache.errors import AwayError
from runner.fleet_cache.notes import PART_BYTES
from runner.fleet_cache.places import Patience, open_place
from tests.ci import tools
from tests.runner.fleets import Machine
from tests.runner.trees_on_disk import plant

pytestmark = pytest.mark.ci

KEY, SECRET = "forkwatchtest", "secret-of-the-cache"
START_SECONDS_MAX = 120
#: Nothing here is away for long: what is refused is refused at once, and a busy server is slow.
HURRIED = Patience(connect_s=60, request_s=120, retries=0, retries_s=120)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Address of a server with the bucket `fleet`."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "buckets" / "fleet").mkdir(parents=True)
    (folder / "sidecar").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [
        *(str(tools.program("versitygw")), "--access", KEY, "--secret", SECRET),
        *("--port", f"127.0.0.1:{port}", "posix", "--sidecar", str(folder / "sidecar")),
        str(folder / "buckets"),
    ]
    with (folder / "log").open("wb") as log:
        process = shell.start(words, output=log)
    try:
        until = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < until, (folder / "log").read_text()
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_SESSION_TOKEN", "AWS_CONDITIONAL_PUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture
def place(server, request):
    return open_place(address_of(f"s3://fleet/{request.node.name}", endpoint=server), HURRIED)


def test_objects_are_written_once_and_repaired(place):
    assert place.get("v1/trusted/one", bytes_max=100) is None

    place.put("v1/trusted/one", b"first")
    place.put("v1/trusted/one", b"second")
    assert place.get("v1/trusted/one", bytes_max=100) == b"first"

    place.put("v1/trusted/one", b"third", anew=True)
    assert place.get("v1/trusted/one", bytes_max=100) == b"third"


def test_of_many_writers_at_once_one_has_written(place):
    texts = [f"writer {number}".encode() * 1000 for number in range(8)]
    writers = [threading.Thread(target=place.put, args=("one", text)) for text in texts]

    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    assert place.get("one", bytes_max=100_000) in texts


def test_the_largest_part_comes_back(place):
    content = random.Random(5).randbytes(PART_BYTES)

    place.put("one", content)

    assert place.get("one", bytes_max=PART_BYTES) == content


def test_a_wrong_secret_and_a_bucket_that_is_not_there_are_away(server, monkeypatch):
    with pytest.raises(AwayError):
        open_place(address_of("s3://nowhere", endpoint=server), HURRIED).put("one", b"content")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    place = open_place(address_of("s3://fleet", endpoint=server), HURRIED)

    with pytest.raises(AwayError) as caught:
        place.get("one", bytes_max=100)

    assert "another-secret" not in str(caught.value)


def test_machines_share_what_they_built_and_loaded(place, tmp_path):
    one, other, stranger = (
        Machine(tmp_path / name, place, trusted=name != "stranger")
        for name in ("one", "other", "stranger")
    )

    def large(folder):
        # More than one part.
        plant(folder)
        (folder / "big.ibd").write_bytes(random.Random(7).randbytes(2 * PART_BYTES))
        return {}

    one.made = large
    one.build()
    one.load()
    for late in (other, stranger):
        late.build()
        late.load()

    assert [machine.builds for machine in (one, other, stranger)] == [1, 0, 0]
    assert (other.made.made, stranger.made.made) == (0, 0)
    assert one.cache.warnings == other.cache.warnings == stranger.cache.warnings == ()
