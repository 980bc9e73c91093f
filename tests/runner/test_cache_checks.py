"""What `forkwatch doctor` says of the fleet's cache: in order, read only, away, or set wrong."""

from __future__ import annotations

import pytest

from runner.fleet_cache.checking import cache_checks
from runner.fleet_cache.places import Patience
from runner.settings import RunnerSettings
from tests.fakes.loopback import Loopback
from tests.fakes.s3_double import S3Double

HURRIED = Patience(connect_s=0.5, request_s=0.5, retries=0, retries_s=1)


@pytest.fixture(autouse=True)
def credentials(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_SESSION_TOKEN", "AWS_CONDITIONAL_PUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFORKWATCHTEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-cache")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.fixture
def bucket():
    double = S3Double()
    with Loopback(double.app) as loopback:
        double.url = loopback.url
        yield double
        double.hangs = False


def only(**chosen):
    [check] = cache_checks(RunnerSettings(**chosen), HURRIED)
    assert check.name == "fleet cache"
    return check


def files_below(folder):
    return [path.relative_to(folder).parts for path in folder.rglob("*") if path.is_file()]


def test_where_no_cache_is_set_nothing_is_said():
    assert cache_checks(RunnerSettings(cache_url="")) == []


def test_a_folder_is_written_and_read_once_for_each_machine(tmp_path):
    check = only(cache_url=str(tmp_path))
    only(cache_url=str(tmp_path))

    assert check.ok
    assert check.found.startswith(f"{tmp_path}: trusted and outside written and read in ")
    assert sorted(parts[:3] for parts in files_below(tmp_path)) == [
        ("v1", "outside", "doctor"),
        ("v1", "trusted", "doctor"),
    ]


def test_a_machine_that_only_reads_writes_nothing(tmp_path):
    check = only(cache_url=str(tmp_path), cache_writes=False)

    assert check.ok
    assert check.found.startswith(f"{tmp_path}: read in ")
    assert files_below(tmp_path) == []


def test_a_folder_that_is_not_there_says_what_to_do(tmp_path):
    missing = tmp_path / "share"
    check = only(cache_url=str(missing))

    assert not check.ok
    assert not check.fatal
    assert f"there is no folder {missing}" in check.found
    assert check.advice == (
        f"make or mount {missing}, and let the user of the runner write there; "
        "until then this machine makes everything itself"
    )


def test_a_level_that_refuses_is_named_and_the_other_is_enough(tmp_path):
    (tmp_path / "v1").mkdir()
    # A file where a folder would be: nothing can be written below it, by nobody.
    (tmp_path / "v1" / "trusted").write_text("")
    one = only(cache_url=str(tmp_path))

    assert one.ok
    assert ": outside written and read (trusted: it cannot be written" in one.found


def test_a_folder_that_takes_nothing_is_away(tmp_path):
    (tmp_path / "v1").write_text("")
    check = only(cache_url=str(tmp_path))

    assert not check.ok
    assert "trusted: it cannot be written" in check.found


def test_a_bucket_is_written_and_read(bucket):
    check = only(cache_url="s3://fleet/forkwatch", cache_endpoint=bucket.url)

    assert check.ok, check.found
    assert check.found.startswith("s3://fleet/forkwatch: trusted and outside written and read in ")


def test_a_bucket_that_does_not_answer_names_what_to_look_at(bucket):
    bucket.hangs = True
    check = only(cache_url="s3://fleet/forkwatch", cache_endpoint=bucket.url)

    assert not check.ok
    assert "FORKWATCH_CACHE_ENDPOINT" in check.advice
    assert "secret-of-the-cache" not in check.found + check.advice


def test_an_address_that_is_none_ends_every_job(tmp_path):
    check = only(cache_url="ftp://fleet")

    assert check.fatal
    assert not check.ok
    assert "FORKWATCH_CACHE_URL" in check.found
    assert "set it right" in check.advice
