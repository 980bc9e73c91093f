"""A Slack of our own on loopback: one workspace with channels, and only what Slack would do.

Requests are refused as Slack would refuse them (`slack_rules`). Mishaps can be ordered: an answer
in place of the deed, or after it. `SlackServer` puts a workspace on a socket.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.loopback import Loopback
from tests.fakes.slack_rules import fault_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

TOKEN: Final = "xoxb-a-token-of-the-double"
BOT, USER, WORKSPACE = "B0FORKWATCH", "U0FORKWATCH", "https://acme.slack.com/"
CHANNEL, OTHER, SEVERE = "C0ALERTS", "C0SCANS", "C0SEVERE"
#: Later than any alert of the tests was opened.
_FIRST_TIME: Final = 1_800_000_000
_PAGE_MAX: Final = 200


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer before it is sent."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def refused(word: str, **more: str) -> Reply:
    """Return Slack's no."""
    return Reply(body={"ok": False, "error": word, **more})


def limited(seconds: int) -> Reply:
    """Return Slack's request to be left alone."""
    body = {"ok": False, "error": "ratelimited"}
    return Reply(status=429, body=body, headers={"Retry-After": str(seconds)})


LOST: Final = Reply(status=502, body="<html>Bad Gateway</html>")


@dataclass(kw_only=True)
class Mishap:
    """Something that goes wrong the next `times` times."""

    method: str
    reply: Reply
    #: The deed is done all the same, and the answer lost.
    after: bool
    times: int = 1


class SlackDouble:
    """One workspace, and us in it."""

    def __init__(self, url: str = "") -> None:
        #: By channel, oldest first; replies among them, as (message, thread).
        self.messages: dict[str, list[dict[str, Any]]] = {CHANNEL: [], OTHER: [], SEVERE: []}
        self.whispers: list[dict[str, Any]] = []
        self.uploaded: dict[str, bytes] = {}
        #: As (method, Slack's word or ok), in order.
        self.asked: list[tuple[str, str]] = []
        self.url = url
        self._files: dict[str, str] = {}
        self._mishaps: list[Mishap] = []
        self._count = 0

    def go_wrong(self, method: str, reply: Reply, *, after: bool = False, times: int = 1) -> None:
        """Answer the next requests so; with `after`, do first what they ask."""
        self._mishaps.append(Mishap(method=method, reply=reply, after=after, times=times))

    def writes(self) -> Counter[str]:
        """Return how often each kind of write was done, whatever was answered."""
        done = Counter(method for method, said in self.asked if said == "ok")
        return Counter({m: n for m, n in done.items() if m.startswith(("chat.", "files."))})

    def first_messages(self, channel: str = CHANNEL) -> list[dict[str, Any]]:
        """Return what stands in a channel itself."""
        return [m for m in self.messages[channel] if m.get("thread_ts", m["ts"]) == m["ts"]]

    def thread(self, channel: str = CHANNEL) -> list[dict[str, Any]]:
        """Return the replies in a channel's threads, oldest first."""
        return [m for m in self.messages[channel] if m.get("thread_ts", m["ts"]) != m["ts"]]

    def texts(self, channel: str = CHANNEL) -> list[str]:
        """Return the fallback texts of the replies, files left out."""
        return [m["text"] for m in self.thread(channel) if not m.get("files")]

    def add(self, channel: str, **message: Any) -> dict[str, Any]:
        """Have somebody post a message."""
        self._count += 1
        ts = f"{_FIRST_TIME + self._count}.{self._count:06d}"
        added = {"type": "message", "ts": ts, **message}
        self.messages[channel].append(added)
        return added

    def reply(self, method: str, token: str, body: dict[str, Any]) -> Reply:
        """Return the answer to a request."""
        mishap = next((m for m in self._mishaps if m.times and m.method == method), None)
        if mishap is not None:
            mishap.times -= 1
            if not mishap.after:
                self.asked.append((method, "mishap"))
                return mishap.reply
        done = self._do(method, token, body)
        said = "ok" if done.body.get("ok") else str(done.body.get("error"))
        self.asked.append((method, said))
        return done if mishap is None else mishap.reply

    def upload(self, name: str, content: bytes) -> Reply:
        """Take a file at the address that was given out for it."""
        if name not in self._files:
            return Reply(status=404, body="no such upload")
        self.uploaded[name] = content
        return Reply(body=f"OK - {len(content)}")

    def _do(self, method: str, token: str, body: dict[str, Any]) -> Reply:
        if token != f"Bearer {TOKEN}":
            return refused("invalid_auth")
        do: Callable[[dict[str, Any]], Reply] | None = {
            "auth.test": self._who,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.postEphemeral": self._whisper,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "files.getUploadURLExternal": self._file,
            "files.completeUploadExternal": self._share,
        }.get(method)
        if do is None:
            return refused("unknown_method")
        channel = body.get("channel") or body.get("channel_id")
        if channel is not None and channel not in self.messages:
            return refused("channel_not_found")
        if method.startswith("chat."):
            fault = fault_of(method, body)
            if fault:
                return refused(fault)
        return do(body)

    def _who(self, _body: dict[str, Any]) -> Reply:
        return _ok(url=WORKSPACE, user_id=USER, bot_id=BOT, team_id="T0ACME")

    def _post(self, body: dict[str, Any]) -> Reply:
        thread = body.get("thread_ts")
        known = {m["ts"] for m in self.messages[body["channel"]]}
        if thread is not None and thread not in known:
            return refused("thread_not_found")
        said = {k: body[k] for k in ("text", "blocks", "metadata", "thread_ts") if k in body}
        made = self.add(body["channel"], user=USER, bot_id=BOT, **said)
        return _ok(channel=body["channel"], ts=made["ts"], message=made)

    def _update(self, body: dict[str, Any]) -> Reply:
        found = [m for m in self.messages[body["channel"]] if m["ts"] == body["ts"]]
        if not found:
            return refused("message_not_found")
        if found[0].get("bot_id") != BOT:
            return refused("cant_update_message")
        # Without metadata, those of before are gone.
        found[0].pop("metadata", None)
        found[0].update({k: body[k] for k in ("text", "blocks", "metadata") if k in body})
        return _ok(channel=body["channel"], ts=body["ts"], text=body["text"])

    def _whisper(self, body: dict[str, Any]) -> Reply:
        self.whispers.append(body)
        return _ok(message_ts="1800000000.000001")

    def _history(self, body: dict[str, Any]) -> Reply:
        newest = list(reversed(self.first_messages(body["channel"])))
        return self._page(newest, body)

    def _replies(self, body: dict[str, Any]) -> Reply:
        thread = body["ts"]
        messages = self.messages[body["channel"]]
        found = [m for m in messages if thread in {m["ts"], m.get("thread_ts")}]
        if not found:
            return refused("thread_not_found")
        return self._page(found, body)

    def _page(self, messages: list[dict[str, Any]], body: dict[str, Any]) -> Reply:
        limit = int(body.get("limit", 100))
        if not 0 < limit <= _PAGE_MAX:
            return refused("invalid_limit")
        newer = [m for m in messages if float(m["ts"]) > float(body.get("oldest", "0"))]
        start = int(body.get("cursor") or 0)
        shown = newer[start : start + limit]
        if body.get("include_all_metadata") not in {"true", "1", True}:
            shown = [{k: v for k, v in m.items() if k != "metadata"} for m in shown]
        more = start + limit < len(newer)
        cursor = {"next_cursor": str(start + limit)} if more else {"next_cursor": ""}
        return _ok(messages=shown, has_more=more, response_metadata=cursor)

    def _file(self, body: dict[str, Any]) -> Reply:
        if not re.fullmatch(r"[0-9]+", str(body.get("length", ""))) or not body.get("filename"):
            return refused("invalid_arguments")
        name = f"F{len(self._files) + 1:08d}"
        self._files[name] = body["filename"]
        return _ok(upload_url=f"{self.url}/upload/{name}", file_id=name)

    def _share(self, body: dict[str, Any]) -> Reply:
        files = body["files"]
        files = json.loads(files) if isinstance(files, str) else files
        if any(file["id"] not in self.uploaded for file in files):
            return refused("file_not_found")
        shown = [{"id": f["id"], "name": self._files[f["id"]], "title": f["title"]} for f in files]
        self.add(
            body["channel_id"],
            user=USER,
            bot_id=BOT,
            text="",
            files=shown,
            thread_ts=body["thread_ts"],
        )
        return _ok(files=shown)


def _ok(**values: Any) -> Reply:
    return Reply(body={"ok": True, **values})


class SlackServer(Loopback):
    """Use it as a context; whoever is `double` at the moment answers."""

    def __init__(self) -> None:
        self.double: SlackDouble | None = None
        app = Starlette(
            routes=[
                Route("/api/{method}", self._call, methods=["POST"]),
                Route("/upload/{name}", self._upload, methods=["POST"]),
            ]
        )
        super().__init__(app)

    async def _call(self, asked: Request) -> Response:
        double = self.double
        assert double is not None, "a request came when no test was looking"
        content = await asked.body()
        if asked.headers.get("content-type", "").startswith("application/json"):
            body = json.loads(content or b"{}")
        else:
            form = parse_qs(content.decode(), keep_blank_values=True)
            body = {name: values[0] for name, values in form.items()}
        method = asked.path_params["method"]
        return _response(double.reply(method, asked.headers.get("authorization", ""), body))

    async def _upload(self, asked: Request) -> Response:
        double = self.double
        assert double is not None, "a file came when no test was looking"
        return _response(double.upload(asked.path_params["name"], await asked.body()))


def _response(reply: Reply) -> Response:
    if isinstance(reply.body, str):
        return Response(reply.body, reply.status, reply.headers, media_type="text/html")
    content = json.dumps(reply.body)
    return Response(content, reply.status, reply.headers, media_type="application/json")
