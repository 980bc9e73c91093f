"""Log lines of both halves: which commit and job a line is about, as text or as JSON.

What is being worked on comes in through `about`, or once for a process that does one job; records
come in from the loggers. Lines go out without secrets. It does not know what is logged.
"""

from __future__ import annotations

import json
import logging
import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

#: How lines look.
LogForm = Literal["text", "json"]
#: Of a commit's hash: enough for any repository, and what names of jobs have of it.
SHA_SHOWN: Final = 12
#: What is put in the place of a secret.
HIDDEN: Final = "..."
#: Shorter values are not looked for: they would be found in ordinary words.
_SECRET_LENGTH_MIN: Final = 8
#: Say too much of requests, and their addresses may hold secrets.
_TALKATIVE: Final = ("httpx", "httpcore")

#: What secrets look like, each with what may stay of it.
_FORMS: Final = (
    (re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{20,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    # Our own tokens: the id in the middle is no secret, and says whose it was.
    (re.compile(r"\b(fw_[0-9a-z]+_)[\w-]{16,}"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(gh[oprsu]_|github_pat_|xox[a-z]-|xapp-)[\w-]{8,}"), rf"\1{HIDDEN}"),
    # Signed claims (JWT), as of GitHub Apps and of CI systems.
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), HIDDEN),
    # The password in an address.
    (re.compile(r"(://[^/\s:@]*:)[^/\s@]+@"), rf"\1{HIDDEN}@"),
    (
        re.compile(
            r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?(-----END \1PRIVATE KEY-----|\Z)", re.DOTALL
        ),
        rf"-----BEGIN \1PRIVATE KEY----- {HIDDEN}",
    ),
    # `credential=...`, `"token": "..."` and the like.
    (
        re.compile(
            r"((?:credential|password|secret|token)[\"']?\s*[=:]\s*[\"']?)[\w.~+/=-]{16,}",
            re.IGNORECASE,
        ),
        rf"\1{HIDDEN}",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What is being worked on; empty where nothing is known."""

    #: `FORK@HASH`, the one id of a commit in all logs.
    commit: str = ""
    job: str = ""

    @classmethod
    def of(cls, *, fork: str, sha: str, job: str = "") -> Subject:
        """The subject of work on a commit."""
        return cls(commit=f"{fork}@{sha[:SHA_SHOWN]}", job=job)


_NOTHING: Final = Subject()
_subject: ContextVar[Subject] = ContextVar("forkwatch_subject", default=_NOTHING)


@contextmanager
def about(*, commit: tuple[str, str] | None = None, job: str | None = None) -> Iterator[None]:
    """Have every line from inside say what it is about; what is not given stays as it was.

    Args:
        commit: Fork and hash.
        job: Name of the job.
    """
    subject = _subject.get()
    if commit is not None:
        subject = Subject.of(fork=commit[0], sha=commit[1], job=subject.job)
    if job is not None:
        subject = replace(subject, job=job)
    token = _subject.set(subject)
    try:
        yield
    finally:
        _subject.reset(token)


class SubjectFilter(logging.Filter):
    """Notes on each record what it is about, in the thread that it comes from."""

    def __init__(self, otherwise: Subject = _NOTHING) -> None:
        """Remember the subject of lines that nobody gave one: of a process with a single job."""
        super().__init__()
        self._otherwise = otherwise

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        subject = _subject.get()
        # The class knows no such attributes; formatters are meant to find them all the same.
        record.__dict__.update(
            commit=subject.commit or self._otherwise.commit,
            job=subject.job or self._otherwise.job,
        )
        return True


class LogLines(logging.Formatter):
    """Makes the lines; one record is one line of JSON, or text whose further lines are indented."""

    def __init__(self, form: LogForm = "text", *, secrets: Collection[str] = ()) -> None:
        """Choose the form.

        Args:
            form: Of the lines.
            secrets: Values that are never written, whatever they look like.
        """
        super().__init__()
        self._form = form
        self._secrets = [value for value in secrets if len(value) >= _SECRET_LENGTH_MIN]

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, without secrets."""
        said = self._without_secrets(record.getMessage())
        trouble = self._without_secrets(_trouble_of(self, record))
        subject = {
            name: value for name in ("commit", "job") if (value := getattr(record, name, ""))
        }
        if self._form == "json":
            return _json_line(record, said, trouble, subject)
        words = "".join(f"{name}={value} " for name, value in subject.items())
        lines = [f"{self.formatTime(record)} {record.name} {words}{said}", trouble]
        # Nobody's text can pass for a line of its own.
        return "\n    ".join(line for text in lines for line in text.splitlines() if line)

    def _without_secrets(self, text: str) -> str:
        for value in self._secrets:
            text = text.replace(value, HIDDEN)
        for form, stays in _FORMS:
            text = form.sub(stays, text)
        return text


def write_lines(
    handlers: Iterable[logging.Handler],
    form: LogForm = "text",
    *,
    secrets: Collection[str] = (),
    otherwise: Subject = _NOTHING,
) -> None:
    """Have handlers write such lines; doing it again changes them."""
    lines = LogLines(form, secrets=secrets)
    for handler in handlers:
        handler.setFormatter(lines)
        for old in [one for one in handler.filters if isinstance(one, SubjectFilter)]:
            handler.removeFilter(old)
        handler.addFilter(SubjectFilter(otherwise))
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def opened_handlers() -> list[logging.Handler]:
    """Return the handlers of the root logger that write to a stream, and are nobody else's."""
    # Subclasses are those of test frameworks and the like, which have forms of their own.
    return [one for one in logging.getLogger().handlers if type(one) is logging.StreamHandler]


def _trouble_of(lines: logging.Formatter, record: logging.LogRecord) -> str:
    """Return the traceback of a record, if it has one."""
    parts = [lines.formatException(record.exc_info)] if record.exc_info else []
    if record.stack_info:
        parts.append(lines.formatStack(record.stack_info))
    return "\n".join(parts)


def _json_line(record: logging.LogRecord, said: str, trouble: str, subject: dict[str, str]) -> str:
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    line = {"at": at, "level": record.levelname, "logger": record.name, **subject, "message": said}
    if trouble:
        line["trouble"] = trouble
    return json.dumps(line, ensure_ascii=False)
