"""Lines of a log say what they are about, stay one line, and hold no secret."""

from __future__ import annotations

import io
import json
import logging
import threading
from typing import TYPE_CHECKING

import pytest

from results.log_lines import HIDDEN, LogForm, Subject, about, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHA = "5f2c1ab90d3e" + "7" * 28
Written = tuple[logging.Logger, io.StringIO, logging.Handler]


@pytest.fixture
def written() -> Iterator[Written]:
    """A logger of our own with what its only handler wrote."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("forkwatch.tests.lines")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    write_lines([handler])
    yield logger, stream, handler
    logger.removeHandler(handler)


def test_a_line_says_which_commit_and_job_it_is_about(written: Written) -> None:
    logger, stream, _ = written
    logger.info("before")
    with about(commit=("demo", SHA)):
        logger.info("seen")
        with about(job="single-5f2c"):
            logger.info("started in %s", "a folder")
        logger.info("judged")
    logger.info("after")

    lines = [line.split(" forkwatch.tests.lines ")[1] for line in stream.getvalue().splitlines()]
    assert lines == [
        "before",
        "commit=demo@5f2c1ab90d3e seen",
        "commit=demo@5f2c1ab90d3e job=single-5f2c started in a folder",
        "commit=demo@5f2c1ab90d3e judged",
        "after",
    ]


def test_a_subject_ends_with_an_error_too(written: Written) -> None:
    logger, stream, _ = written
    with pytest.raises(ZeroDivisionError), about(commit=("demo", SHA)):
        raise ZeroDivisionError
    logger.info("after")

    assert "commit=" not in stream.getvalue()


def test_threads_do_not_share_what_they_work_on(written: Written) -> None:
    logger, stream, _ = written

    def work(fork: str, both: threading.Barrier) -> None:
        with about(commit=(fork, SHA)):
            both.wait()
            logger.info("%s works", fork)

    both = threading.Barrier(2)
    threads = [threading.Thread(target=work, args=(fork, both)) for fork in ("ada", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    said = stream.getvalue()
    assert "commit=ada@5f2c1ab90d3e ada works" in said
    assert "commit=bob@5f2c1ab90d3e bob works" in said


def test_a_process_with_one_job_says_so_on_every_line_of_every_thread(written: Written) -> None:
    logger, stream, handler = written
    write_lines([handler], otherwise=Subject.of(fork="demo", sha=SHA, job="pair-1"))
    thread = threading.Thread(target=logger.info, args=("measured",))
    thread.start()
    thread.join()

    assert "commit=demo@5f2c1ab90d3e job=pair-1 measured" in stream.getvalue()


def test_a_record_is_one_object_of_json(written: Written) -> None:
    logger, stream, handler = written
    write_lines([handler], "json")
    with about(commit=("démo", SHA), job="single-1"):
        logger.error("it failed\nin two ways", exc_info=ValueError("two\nlines"))
    logger.info("fine")

    failed, fine = map(json.loads, stream.getvalue().splitlines())
    assert failed["commit"] == "démo@5f2c1ab90d3e"
    assert (failed["job"], failed["level"]) == ("single-1", "ERROR")
    assert failed["message"] == "it failed\nin two ways"
    assert failed["trouble"].endswith("ValueError: two\nlines")
    assert failed["at"].endswith("+00:00")
    assert set(fine) == {"at", "level", "logger", "message"}


def test_nobodys_text_passes_for_a_line_of_its_own(written: Written) -> None:
    logger, stream, _ = written
    logger.info("subject: %s", "tidy\n2026-11-03 06:30:00,000 forkwatch.flow all is well\r\x0b!")

    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("subject: tidy")
    assert rest
    assert all(line.startswith("    ") for line in rest)


JWT = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJmdyJ9.c2lnbmF0dXJl-x_y"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
OURS = "fw_0a1b2c3d4e5f_" + "Zx9_-" * 8


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        (f"Authorization: Bearer {'c' * 43}", "c" * 43),
        ("authorization: basic OmZ3XzBhMWIyYzNkNGU1Zl9aeDk=", "OmZ3XzBhMWIyYzNkNGU1Zl9aeDk="),
        (f"token {OURS} was used", OURS),
        ("GET with gho_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c6912E7710c83"),
        ("github_pat_11ABCDEFG0123456789_abcdefg", "11ABCDEFG0123456789"),
        # Put together, so that no scanner takes this file for a leak.
        ("sent with " + "xoxb" + "-17653672481-pdFZKVeTuE8sk7oOHcbrzqgy", "pdFZKVeTuE8sk7"),
        (f"app jwt {JWT}", JWT),
        ("cannot connect: postgresql://fw:hunter2!@db/forkwatch", "hunter2!"),
        (f"key: {KEY} end", "MIIEow"),
        (f"'credential': '{'q' * 43}'", "q" * 43),
        ("FORKWATCH_GITHUB_WEBHOOK_SECRET=0123456789abcdef0123", "0123456789abcdef0123"),
        ("the value is swordfish-swordfish", "swordfish-swordfish"),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_is_written(line: str, secret: str, form: LogForm, written: Written) -> None:
    logger, stream, handler = written
    write_lines([handler], form, secrets=["swordfish-swordfish"])
    ways: list[Callable[[], None]] = [
        lambda: logger.info(line),
        lambda: logger.info("%s", line),
        lambda: logger.info("failed", exc_info=ValueError(line)),
        lambda: logger.info("stack", stack_info=True),
    ]
    for way in ways:
        way()

    assert secret not in stream.getvalue()
    assert HIDDEN in stream.getvalue()


def test_what_only_looks_a_little_like_a_secret_stays(written: Written) -> None:
    logger, stream, handler = written
    write_lines([handler], secrets=["scan"])
    plain = [
        f"scan of demo@{SHA} at http://127.0.0.1:8642/forks/demo",
        "token ada is revoked; basic information, bearer of news",
        "job single-5f2c1ab90d3e-aaaabbbbcccc: runner 4711 started in /home/fw/jobs",
    ]
    for line in plain:
        logger.info(line)

    assert all(line in stream.getvalue() for line in plain)
