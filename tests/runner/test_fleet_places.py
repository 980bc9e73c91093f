from __future__ import annotations

from pathlib import Path

import pytest

from results.document import Outcome
from runner.errors import OperatorError
from runner.fleet_cache.address import Address, address_of
from runner.fleet_cache.errors import AwayError, DamagedPackError
from runner.fleet_cache.opening import open_cache
from runner.fleet_cache.places import Patience, open_place
from runner.job import run_job
from runner.sandbox import Sandbox
from runner.settings import RunnerSettings
from tests.fakes.loopback import Loopback
from tests.fakes.memory_place import MemoryPlace
from tests.fakes.s3_double import S3Double
from tests.runner.fleets import Machine

KEY, SECRET = "AKIAFORKWATCHTEST", "secret-of-the-cache"
HURRIED = Patience(connect_s=0.5, request_s=0.5, retries=0, retries_s=1)


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_SESSION_TOKEN", "AWS_CONDITIONAL_PUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture
def bucket():
    double = S3Double()
    with Loopback(double.app) as loopback:
        double.url = loopback.url
        yield double
        double.hangs = False


@pytest.fixture
def in_bucket(bucket):
    def in_bucket(patience=None):
        address = address_of("s3://fleet/forkwatch", endpoint=bucket.url)
        return open_place(address, patience)

    return in_bucket


@pytest.fixture(params=["folder", "bucket"])
def place(request, tmp_path):
    if request.param == "folder":
        return open_place(Address(folder=tmp_path))
    return request.getfixturevalue("in_bucket")()


def test_an_object_is_there_once_it_is_stored(place):
    assert place.get("v1/trusted/one", bytes_max=100) is None

    place.put("v1/trusted/one", b"content")

    assert place.get("v1/trusted/one", bytes_max=7) == b"content"


def test_an_object_is_written_once_unless_it_is_repaired(place):
    place.put("one", b"first")

    place.put("one", b"second")
    assert place.get("one", bytes_max=100) == b"first"

    place.put("one", b"third", anew=True)
    assert place.get("one", bytes_max=100) == b"third"


def test_an_object_that_is_too_large_is_not_read(place):
    place.put("one", b"12345678")

    with pytest.raises(DamagedPackError, match="more than 7 bytes"):
        place.get("one", bytes_max=7)


def test_a_part_of_the_largest_size_comes_back(place):
    content = bytes(range(256)) * 65_536

    place.put("one", content)

    assert place.get("one", bytes_max=len(content)) == content


def test_objects_lie_below_the_prefix(in_bucket, bucket):
    in_bucket().put("v1/trusted/one", b"content")

    assert list(bucket.objects) == ["fleet/forkwatch/v1/trusted/one"]


def test_a_store_that_hangs_is_away(in_bucket, bucket):
    place = in_bucket(HURRIED)
    bucket.hangs = True

    with pytest.raises(AwayError, match="cannot be read"):
        place.get("one", bytes_max=100)
    with pytest.raises(AwayError, match="cannot be written"):
        place.put("one", b"content")


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 503])
def test_a_store_that_refuses_is_away(in_bucket, bucket, status):
    place = in_bucket(HURRIED)
    bucket.fails_with = status

    with pytest.raises(AwayError) as caught:
        place.get("one", bytes_max=100)
    assert SECRET not in str(caught.value)
    with pytest.raises(AwayError):
        place.put("one", b"content")


def test_a_store_that_is_not_there_is_away():
    place = open_place(address_of("s3://fleet", endpoint="http://127.0.0.1:9"), HURRIED)

    with pytest.raises(AwayError):
        place.get("one", bytes_max=100)


def test_a_store_that_refuses_the_condition_is_used_without_it(in_bucket, bucket, monkeypatch):
    bucket.refuses_condition = True
    with pytest.raises(AwayError):
        in_bucket(HURRIED).put("one", b"first")

    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    place = in_bucket(HURRIED)
    place.put("one", b"first")
    place.put("one", b"second")

    assert place.get("one", bytes_max=100) == b"first"


def test_a_folder_that_is_not_mounted_is_away(tmp_path):
    with pytest.raises(AwayError, match="make it, or mount it"):
        open_place(Address(folder=tmp_path / "mnt"))


def test_machines_share_through_a_bucket(in_bucket, tmp_path):
    one, other = (Machine(tmp_path / name, in_bucket()) for name in ("one", "other"))

    one.build()
    one.load()
    other.build()
    other.load()

    assert (one.builds, one.made.made, other.builds, other.made.made) == (1, 1, 0, 0)
    assert one.cache.warnings == other.cache.warnings == ()


def test_a_bucket_that_hangs_holds_a_job_up_once(in_bucket, bucket, tmp_path):
    bucket.hangs = True
    one = Machine(tmp_path / "one", in_bucket(HURRIED))

    one.build()
    one.load()

    assert (one.builds, one.made.made) == (1, 1)
    assert len(one.cache.warnings) == 1
    assert len(bucket.requests) == 1


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("/mnt/fleet", Address(folder=Path("/mnt/fleet"))),
        ("file:///mnt/fleet", Address(folder=Path("/mnt/fleet"))),
        ("s3://fleet", Address(bucket="fleet")),
        ("s3://fleet/a/b/", Address(bucket="fleet", prefix="a/b")),
    ],
)
def test_an_address_is_a_folder_or_a_bucket(url, wanted):
    assert address_of(url) == wanted


@pytest.mark.parametrize(
    "url",
    [
        "mnt/fleet",
        "file://host/mnt",
        "s3://",
        "s3://Fleet/a",
        "gs://fleet",
        "https://fleet.s3.amazonaws.com/",
        "http://[fleet",
    ],
)
def test_another_address_is_an_error_that_says_what_it_has_to_be(url):
    with pytest.raises(OperatorError, match="FORKWATCH_CACHE_URL"):
        address_of(url)


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("s3://key:hidden@fleet/a", ""),
        ("s3://fleet/a?secret=hidden", ""),
        ("s3://fleet/a", "https://key:hidden@minio.example.org"),
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(url, endpoint):
    with pytest.raises(OperatorError, match="AWS_SECRET_ACCESS_KEY") as caught:
        address_of(url, endpoint=endpoint)

    assert "hidden" not in str(caught.value)


def test_an_endpoint_is_an_address():
    with pytest.raises(OperatorError, match="FORKWATCH_CACHE_ENDPOINT is 'minio:9000'"):
        address_of("s3://fleet", endpoint="minio:9000")


def test_there_is_no_cache_unless_one_is_set(tmp_path):
    assert open_cache(RunnerSettings(home=tmp_path), trusted=True) is None


def test_a_cache_is_opened_from_the_settings(tmp_path):
    (tmp_path / "fleet").mkdir()
    settings = RunnerSettings(home=tmp_path, cache_url=str(tmp_path / "fleet"), disk_reserve=0)
    caches = [open_cache(settings, trusted=trusted) for trusted in (True, False)]
    machines = [Machine(tmp_path / name, MemoryPlace()) for name in ("one", "other")]
    for one, cache in zip(machines, caches, strict=True):
        one.cache = cache
        one.build()

    assert [one.builds for one in machines] == [1, 0]
    assert [path.name for path in (tmp_path / "fleet" / "v1").iterdir()] == ["trusted"]


def test_a_share_that_is_not_mounted_is_a_warning_in_the_document(
    tiny_fork, own_home, progress, tmp_path
):
    broken = tiny_fork.commit("broken", {"launcher.c": "int main(void) { return undeclared; }\n"})
    settings = RunnerSettings(
        home=own_home.root, watch_host=False, cache_url=str(tmp_path / "not-mounted")
    )

    document = run_job(
        tiny_fork.order(broken),
        own_home.folder("jobs", "one"),
        home=own_home,
        settings=settings,
        progress=progress,
    )

    # The outcome is the commit's, as without a cache.
    assert document.outcome is Outcome.BUILD_FAILED
    (warning,) = [one for one in document.warnings if "cache" in one]
    assert "was away" in warning
    assert str(tmp_path / "not-mounted") in warning


def test_the_credential_of_the_cache_does_not_reach_the_sandbox():
    script = "env; cat /proc/*/environ; cat /proc/*/cmdline"
    said = Sandbox(binds=()).run(["sh", "-c", script], timeout_s=20)

    assert "PATH=" in said.stdout
    assert SECRET not in said.stdout
    assert KEY not in said.stdout
