"""The filter of system calls: a sandbox makes no further namespaces, and reaches no rare machinery.

Inside a user namespace of its own, code has every right over it: it could mount memory that nobody
counts, and talk to parts of the kernel that ordinary programs never reach, where most ways out of a
sandbox were found. Out goes a classic BPF program for bubblewrap's --seccomp, and the descriptor
that holds it.
"""

from __future__ import annotations

import errno
import os
import platform
import struct
from functools import cache
from typing import Final

#: Per machine: AUDIT_ARCH, and numbers of calls (asm/unistd.h).
_MACHINES: Final = {
    "x86_64": (
        0xC000003E,
        {
            "clone": 56,
            "ptrace": 101,
            "unshare": 272,
            "clone3": 435,
            "setns": 308,
            "mount": 165,
            "umount2": 166,
            "pivot_root": 155,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "bpf": 321,
            "userfaultfd": 323,
            "perf_event_open": 298,
            "fsopen": 430,
            "open_tree": 428,
            "move_mount": 429,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "clone": 220,
            "ptrace": 117,
            "unshare": 97,
            "clone3": 435,
            "setns": 268,
            "mount": 40,
            "umount2": 39,
            "pivot_root": 41,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "bpf": 280,
            "userfaultfd": 282,
            "perf_event_open": 241,
            "fsopen": 430,
            "open_tree": 428,
            "move_mount": 429,
        },
    ),
}
_CLONE_NEWUSER: Final = 0x10000000
#: On x86-64, numbers from here on are a second table of the same calls, which nothing uses.
_X32_BIT: Final = 0x40000000

_LOAD, _EQUALS, _AT_LEAST, _HAS_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM
#: What a kernel without clone3 says: the C library then uses clone, whose flags can be seen.
_UNKNOWN: Final = 0x00050000 | errno.ENOSYS
#: Where struct seccomp_data has them.
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
#: Refused only with some arguments: (which, how to compare, with what).
_BY_ARGUMENT: Final = {
    # Plain threads and processes are allowed.
    "clone": (_FIRST_ARGUMENT, _HAS_BITS, _CLONE_NEWUSER),
    "unshare": (_FIRST_ARGUMENT, _HAS_BITS, _CLONE_NEWUSER),
    # Sanitizers trace themselves; process 1, stopped by a tracer, would not notice the end.
    "ptrace": (_SECOND_ARGUMENT, _EQUALS, 1),
}


def program(machine: str) -> bytes | None:
    """Return the filter for a kind of machine, or None for one whose numbers we do not know."""
    if machine not in _MACHINES:
        return None
    architecture, numbers = _MACHINES[machine]
    # (code, skip if true, skip if false, value)
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUALS, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _REFUSE),
    ]
    for name, number in numbers.items():
        if name in _BY_ARGUMENT:
            argument, compare, value = _BY_ARGUMENT[name]
            lines += [
                (_EQUALS, 0, 4, number),
                (_LOAD, 0, 0, argument),
                (compare, 0, 1, value),
                (_RETURN, 0, 0, _REFUSE),
                (_RETURN, 0, 0, _ALLOW),
            ]
        else:
            answer = _UNKNOWN if name == "clone3" else _REFUSE
            lines += [(_EQUALS, 0, 1, number), (_RETURN, 0, 0, answer)]
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


@cache
def program_file() -> str:
    """Return a path from which every child of ours can read the filter; empty where there is none.

    The file is in memory and lives as long as this process.
    """
    code = program(platform.machine())
    if code is None:
        return ""
    descriptor = os.memfd_create("forkwatch-syscalls")
    os.write(descriptor, code)
    return f"/proc/{os.getpid()}/fd/{descriptor}"
