"""What a hostile build may reach, and what it may leave behind."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from results.document import Outcome
from results.job import DOCUMENT_FILE, ORDER_FILE
from runner import shell, watchdog
from runner.build import MANIFEST
from runner.job import run_job
from runner.settings import RunnerSettings
from tests.runner.hostile_fork import FEW_PROCESSES, INSTALL, SMALL, Hostile
from tests.runner.processes import until

#: Goes on after its own death sentence, and leaves nobody to wait for.
DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for number in range(3):
        os.close(number)
    for number in range(1, 32):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
"""


@pytest.fixture
def hostile(tiny_fork, own_home):
    yield Hostile(tiny_fork, own_home)
    # Where a test fails, pytest must be able to remove what the attack left.
    shell.run(["chmod", "-R", "u+rwX", str(own_home.root)], timeout_s=60)
    shell.run(["rm", "-rf", str(own_home.root)], timeout_s=60)


def test_a_daemon_is_not_left_behind(hostile):
    sha = hostile.commit(DAEMON)

    assert hostile.build(sha).facts.installed_bytes > 0
    until(lambda: watchdog.marked(watchdog.MARK) == [])


def test_killing_everybody_in_sight(hostile):
    failure = hostile.failure(
        "import os, signal, time\n"
        "print('sees', len([name for name in os.listdir('/proc') if name.isdigit()]), flush=True)\n"
        # cmake passes on what it reads, and dies with the rest.
        "time.sleep(1)\n"
        "for target in (1, os.getppid(), -1):\n"
        "  try:\n    os.kill(target, signal.SIGKILL)\n"
        "  except OSError as error:\n    print(error, flush=True)\n"
    )

    # bubblewrap, perhaps its wrapper, cmake and the attack: nobody of the host.
    seen = int(failure.log_tail.partition("sees ")[2].split()[0])
    assert 3 <= seen <= 5
    assert hostile.goes_on()


def test_secrets_are_not_there(hostile, tmp_path, monkeypatch):
    secret = "correct-horse-battery"
    monkeypatch.setenv("FORKWATCH_CREDENTIAL", secret)
    order = hostile.home.folder("jobs", "other") / ORDER_FILE
    order.write_text(secret)
    places = [str(order), str(tmp_path), str(hostile.home.root), str(hostile.fork.folder)]
    failure = hostile.failure(
        "import os\n"
        f"places = {places!r}\n"
        "places += ['/root', '/home', '/etc/shadow', '/etc/passwd', '/etc/ssh', \n"
        "  '/sys/firmware', '/sys/fs', '/sys/module', '/sys/kernel/debug', '/boot',\n"
        "  '/var/log', '/mnt', '/opt', '/srv', '/dev/mem', '/dev/kmsg', '/proc/kcore',\n"
        "  *[f'/proc/{pid}/root' + '/root' for pid in (1, os.getppid())]]\n"
        "for place in places:\n"
        "  try:\n"
        "    found = os.listdir(place) if os.path.isdir(place) else open(place, 'rb').read(99)\n"
        "    print('READ', place, found)\n"
        "  except OSError:\n    pass\n"
        "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
        "  try:\n"
        "    print('ENVIRONMENT', open(f'/proc/{pid}/environ').read())\n"
        "  except OSError:\n    pass\n"
        "raise SystemExit(1)\n"
    )

    assert "READ" not in failure.log_tail
    assert "ENVIRONMENT" in failure.log_tail
    assert secret not in failure.log_tail


def test_no_way_out_by_a_socket(hostile):
    with (
        socket.create_server(("127.0.0.1", 0)) as stream,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        datagram.bind(("127.0.0.1", 0))
        abstract.bind(f"\0forkwatch-test-{os.getpid()}")
        abstract.listen()
        ports = stream.getsockname()[1], datagram.getsockname()[1]
        attack = (
            (
                "import socket\n"
                "def stream(): socket.create_connection(('127.0.0.1', PORTS[0]), 2)\n"
                "def datagram():\n"
                "  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                "  s.sendto(b'x', ('127.0.0.1', PORTS[1]))\n"
                "def resolver():\n"
                "  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                "  s.sendto(b'x', ('192.0.2.1', 53))\n"
                "def abstract():\n"
                "  socket.socket(socket.AF_UNIX).connect(NAME)\n"
                "def raw(): socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
                "for way in (stream, datagram, resolver, abstract, raw):\n"
                "  try:\n    way()\n    print('OPEN', way.__name__)\n"
                "  except OSError as error:\n    print('closed', way.__name__, error)\n"
                "raise SystemExit(1)\n"
            )
            .replace("PORTS", repr(ports))
            .replace("NAME", repr(abstract.getsockname()))
        )
        failure = hostile.failure(attack)
        # A datagram to nobody on one's own loopback is sent all the same: it must not arrive.
        datagram.settimeout(0.2)
        with pytest.raises(TimeoutError):
            datagram.recv(1)
        stream.settimeout(0.2)
        with pytest.raises(TimeoutError):
            stream.accept()

    for way in ("stream", "resolver", "abstract", "raw"):
        assert f"closed {way}" in failure.log_tail


def test_writing_elsewhere(hostile):
    before = hostile.build(hostile.fork.first)
    failure = hostile.failure(
        "import os\n"
        "for place in ('/', '/usr', '/usr/bin', '/etc', '/dev', '/forkwatch', '/proc/sys/kernel',\n"
        f"              '/var', '/lib', '{before.folder}', '{hostile.home.root}'):\n"
        "  try:\n    open(place + '/planted', 'w')\n    print('WROTE', place)\n"
        "  except OSError:\n    pass\n"
        "for place in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/dev/null/x'):\n"
        "  try:\n    open(place, 'w')\n    print('WROTE', place)\n"
        "  except OSError:\n    pass\n"
        "raise SystemExit(1)\n",
        leaving=[before.facts.id],
    )

    assert "WROTE" not in failure.log_tail


def test_no_rights_by_a_namespace_of_ones_own(hostile):
    failure = hostile.failure(
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for name, number in (('clone', 56), ('clone3', 435)):\n"
        "  if libc.syscall(number, 0x10000000 | 17, 0, 0, 0, 0) >= 0: print('GOT', name)\n"
        "if libc.unshare(0x10000000) == 0: print('GOT unshare')\n"
        "if libc.ptrace(16, 1, 0, 0) == 0: print('GOT ptrace of process 1')\n"
        "print('tried')\n"
        "raise SystemExit(1)\n"
    )

    assert "tried" in failure.log_tail
    assert "GOT" not in failure.log_tail


# What it leaves to be read


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        ("os.mkfifo('lib/pipe')", "lib/pipe is a pipe"),
        ("socket.socket(socket.AF_UNIX).bind('lib/socket')", "lib/socket is a pipe, socket"),
        ("os.symlink('/etc/shadow', 'lib/link')", "lib/link is a link that leads out"),
        ("os.symlink('../../../etc/shadow', 'lib/link')", "lib/link is a link that leads out"),
        ("os.symlink('/usr/../etc/shadow', 'lib/link')", "lib/link is a link that leads out"),
        (
            "os.symlink('/usr', 'lib/a'); os.symlink('a/../etc/shadow', 'lib/b')",
            "lib/b is a link that leads out",
        ),
        ("open(b'lib/\\xff', 'w')", "not UTF-8"),
    ],
)
def test_what_cannot_be_part_of_an_artifact(hostile, plant, said):
    failure = hostile.failure(
        f"import os, socket\nos.chdir('/forkwatch/artifact')\nos.mkdir('lib')\n{plant}\n",
        at=INSTALL,
    )

    assert failure.stage == "install"
    assert said in str(failure)


def test_links_inside_are_kept_and_rights_are_taken(hostile):
    sha = hostile.commit(
        "import os\nos.chdir('/forkwatch/artifact')\nos.mkdir('lib')\n"
        "open('lib/file', 'w').close()\nos.chmod('lib/file', 0o6755)\n"
        "os.symlink('file', 'lib/near')\nos.symlink('../sbin/mariadbd', 'lib/up')\n"
        "os.symlink('/forkwatch/artifact/lib/file', 'lib/far')\n"
        "os.link('lib/file', 'lib/again')\n"
        "os.mkdir('lib/shut')\nopen('lib/shut/file', 'w').close()\nos.chmod('lib/shut', 0)\n",
        at=INSTALL,
    )

    folder = hostile.build(sha).folder

    assert stat.S_IMODE((folder / "lib" / "file").stat().st_mode) == 0o755
    assert (folder / "lib" / "near").is_symlink()
    assert (folder / "lib" / "shut" / "file").exists()


def test_the_manifest_is_not_written_through_a_link(hostile, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    # Two links that lead where the host has something and the sandbox nothing; the second one
    # is the name that the runner writes to.
    sha = hostile.commit(
        f"import os\nos.symlink('/usr/nowhere', '/forkwatch/artifact/{MANIFEST}')\n", at=INSTALL
    )

    folder = hostile.build(sha).folder

    assert not (folder / MANIFEST).is_symlink()
    assert not Path("/usr/nowhere").exists()


def test_folders_that_forbid_their_own_removal(hostile):
    failure = hostile.failure(
        "import os\nfor top in ('source', 'build', 'artifact'):\n"
        "  os.makedirs(f'/forkwatch/{top}/shut/in')\n"
        "  open(f'/forkwatch/{top}/shut/in/file', 'w').close()\n"
        "  os.chmod(f'/forkwatch/{top}/shut/in', 0)\n  os.chmod(f'/forkwatch/{top}/shut', 0)\n"
        "raise SystemExit(1)\n"
    )

    assert failure.stage == "configure"


# What it leaves to be used


def test_a_pull_request_reads_the_compiler_cache_and_cannot_poison_it(hostile):
    hostile.build(hostile.fork.first)
    before = _content(hostile.home.folder("ccache"))
    sha = hostile.commit(
        "import os\n"
        "for name in ('ccache.conf', 'planted'):\n"
        "  try:\n    open(f'/forkwatch/ccache/{name}', 'w').write('prefix_command = evil')\n"
        "    print('POISONED')\n  except OSError:\n    pass\n"
    )

    built = hostile.build(sha, trusted=False)

    assert (built.folder / "sbin" / "mariadbd").exists()
    assert _content(hostile.home.folder("ccache")) == before


def test_a_compiler_cache_that_was_filled_is_emptied(hostile):
    failure = hostile.failure(
        "import os, time\n"
        "for number in range(4):\n"
        "  open(f'/forkwatch/ccache/{number}', 'wb').write(os.urandom(20 * 2**20))\n"
        "time.sleep(600)\n",
        ccache_size="20Mi",
    )

    assert "filled the folder ccache" in str(failure)
    assert _content(hostile.home.folder("ccache")) == {}
    assert hostile.goes_on()


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_job_of_a_hostile_commit_ends_with_a_document(hostile, tmp_path, progress):
    sha = hostile.commit("import os\nwhile True:\n  try:\n    os.fork()\n  except OSError: pass\n")
    folder = tmp_path / "job"
    folder.mkdir()

    document = run_job(
        hostile.fork.order(sha),
        folder,
        home=hostile.home,
        settings=RunnerSettings(home=hostile.home.root, **SMALL, **FEW_PROCESSES),
        progress=progress,
    )

    assert document.outcome is Outcome.BUILD_FAILED
    assert document.failure is not None
    assert document.failure.stage == "configure"
    assert "processes" in document.failure.message
    assert (folder / DOCUMENT_FILE).exists()
