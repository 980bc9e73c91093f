"""The timer of the A/A check: a verb's arguments come in, two systemd units go out as text.

Nothing is installed: whoever runs the host reads them, changes the hour and puts them in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = "forkwatch-aa"
#: A week is how long a cause is still remembered; Sunday night is when the least is pushed.
WHEN: Final = "Sun *-*-* 03:00:00"
_FOLDER: Final = "/etc/systemd/system"
#: What systemd reads as something else inside a quoted word.
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "%": "%%", "$": "$$", "\n": "\\n"}

_UNITS: Final = """\
# {folder}/{name}.service
[Unit]
Description=forkwatch measures an artifact against itself
# Status 3, an alarm or an unstable host, is a failed unit: tell somebody with OnFailure= here.

[Service]
Type=oneshot
ExecStart={command}
# Whoever may measure on this host; its home folder is that of the jobs.
User={user}

# {folder}/{name}.timer
# then: systemctl daemon-reload && systemctl enable --now {name}.timer
[Unit]
Description=the A/A check of forkwatch, weekly

[Timer]
OnCalendar={when}
RandomizedDelaySec=1h
# A check that was slept through is made up for.
Persistent=true

[Install]
WantedBy=timers.target
"""


def timer_text(words: Sequence[str], *, user: str) -> str:
    """Return a service and a timer that run this command every week."""
    command = " ".join(_quoted(word) for word in words)
    return _UNITS.format(folder=_FOLDER, name=NAME, command=command, user=user, when=WHEN)


def _quoted(word: str) -> str:
    """Return a word as systemd reads it back."""
    escaped = "".join(_ESCAPES.get(character, character) for character in word)
    plain = word and all(character.isalnum() or character in "/._-=+:@," for character in word)
    return escaped if plain else f'"{escaped}"'
