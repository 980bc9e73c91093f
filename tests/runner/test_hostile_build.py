"""What a hostile build may use."""

from __future__ import annotations

import pytest

from runner import shell
from runner.sandbox import INSIDE
from tests.runner.hostile_fork import FEW_PROCESSES, INSTALL, MOMENT, SMALL, Hostile


@pytest.fixture
def hostile(tiny_fork, own_home):
    yield Hostile(tiny_fork, own_home)
    # Where a test fails, pytest must be able to remove what the attack left.
    shell.run(["chmod", "-R", "u+rwX", str(own_home.root)], timeout_s=60)
    shell.run(["rm", "-rf", str(own_home.root)], timeout_s=60)


def test_a_fork_bomb(hostile):
    failure = hostile.failure(
        "import os, time\nwhile True:\n  try:\n    os.fork()\n  except OSError:\n    pass\n",
        **FEW_PROCESSES,
    )

    assert failure.stage == "configure"
    assert "processes" in str(failure)
    assert "raise FORKWATCH_SANDBOX_PROCESSES" in str(failure)
    assert hostile.goes_on()


def test_a_bomb_of_threads(hostile):
    failure = hostile.failure(
        "import threading, time\n"
        "while True:\n"
        "  try:\n"
        "    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "  except RuntimeError:\n"
        "    time.sleep(1)\n",
        **FEW_PROCESSES,
    )

    assert "processes" in str(failure)


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param("hog = [bytearray(b'x') * 2**20 for _ in range(600)]\n", id="one process"),
        pytest.param(
            "import os\n"
            "for _ in range(10):\n"
            "  if os.fork() == 0:\n"
            "    hog = b'x' * (60 * 2**20)\n"
            "    time.sleep(600)\n",
            id="many processes",
        ),
        pytest.param(
            "import mmap\nhog = mmap.mmap(-1, 600 * 2**20)\n"
            "for page in range(0, 600 * 2**20, 4096):\n  hog[page] = 1\n",
            id="shared memory",
        ),
    ],
)
def test_a_memory_hog(hostile, attack):
    failure = hostile.failure(f"import time\n{attack}\ntime.sleep(600)\n")

    assert "memory" in str(failure)
    assert "raise FORKWATCH_SANDBOX_MEMORY" in str(failure)


def test_memory_in_files_without_a_name(hostile):
    failure = hostile.failure(
        "import os, time\n"
        "files = [os.memfd_create(str(number)) for number in range(10)]\n"
        "for file in files:\n  os.write(file, bytes(60 * 2**20))\n"
        "time.sleep(600)\n"
    )

    assert "memory" in str(failure)


def test_shared_pages_are_counted_once(hostile):
    # Ten processes that share 60 MiB use 60 MiB, not 600.
    sha = hostile.commit(
        "import os, time\n"
        "hog = b'x' * (60 * 2**20)\n"
        "children = []\n"
        "for _ in range(9):\n"
        "  child = os.fork()\n"
        "  if child == 0:\n    time.sleep(1)\n    os._exit(0)\n"
        "  children.append(child)\n"
        "for child in children:\n  os.waitpid(child, 0)\n"
    )

    assert hostile.build(sha).facts.installed_bytes > 0


@pytest.mark.parametrize(
    ("folder", "moment"),
    [
        (INSIDE / "build", MOMENT),
        (INSIDE / "source", MOMENT),
        (INSIDE / "artifact", INSTALL),
    ],
)
def test_filling_the_disk(hostile, folder, moment):
    failure = hostile.failure(
        f"import os, time\n"
        f"for number in range(40):\n"
        f"  with open(f'{folder}/{{number}}', 'wb') as file:\n"
        f"    file.write(os.urandom(8 * 2**20))\n"
        f"time.sleep(600)\n",
        at=moment,
    )

    assert failure.stage == ("install" if moment is INSTALL else "configure")
    assert "on disk" in str(failure)
    assert "raise FORKWATCH_SANDBOX_DISK_SIZE" in str(failure)


def test_filling_the_disk_with_a_file_that_has_no_name(hostile):
    failure = hostile.failure(
        "import os, time\n"
        "file = open('/forkwatch/build/gone', 'wb')\n"
        "os.unlink('/forkwatch/build/gone')\n"
        "for number in range(90):\n  file.write(os.urandom(2**20))\n"
        "file.flush()\ntime.sleep(600)\n"
    )

    assert "on disk" in str(failure)


def test_a_disk_that_others_have_filled(hostile):
    failure = hostile.failure("import time\ntime.sleep(600)\n", disk_reserve=10**15)

    assert "left free on the disk; make room there" in str(failure)


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm", "/var/tmp", "/run"])
def test_filling_the_memory_that_looks_like_a_folder(hostile, folder):
    failure = hostile.failure(
        f"import time\n"
        f"with open('{folder}/big', 'wb', buffering=0) as file:\n"
        f"  for _ in range(90):\n"
        f"    try:\n      file.write(b'x' * 2**20)\n"
        f"    except OSError:\n      time.sleep(600)\n"
    )

    assert f"filled its {folder}" in str(failure) or "memory" in str(failure)


def test_a_full_tmp_is_named_although_the_build_ended_by_itself(hostile):
    failure = hostile.failure("open('/tmp/big', 'wb').write(b'x' * (30 * 2**20))\n")

    assert "FORKWATCH_SANDBOX_TMP_SIZE" in str(failure)


def test_a_file_that_is_too_large(hostile):
    failure = hostile.failure("open('/forkwatch/build/big', 'wb').truncate(200 * 2**20)\n")

    assert "raise FORKWATCH_SANDBOX_FILE_SIZE" in str(failure)


def test_too_many_open_files(hostile):
    failure = hostile.failure("files = [open('/dev/null') for _ in range(400)]\n")

    assert "raise FORKWATCH_SANDBOX_OPEN_FILES" in str(failure)


@pytest.mark.parametrize("folder", ["/forkwatch/build", "/tmp"])
def test_using_up_the_inodes(hostile, folder):
    failure = hostile.failure(
        f"import time\nfor number in range(9000):\n  open(f'{folder}/{{number}}', 'w').close()\n"
        f"time.sleep(600)\n"
    )

    assert "files" in str(failure)
    assert "raise FORKWATCH_SANDBOX_DISK_FILES" in str(failure)


@pytest.mark.parametrize(("folder", "moment"), [("build", MOMENT), ("artifact", INSTALL)])
def test_folders_deeper_than_a_stack(hostile, folder, moment):
    failure = hostile.failure(
        f"import os, time\nos.chdir('/forkwatch/{folder}')\n"
        "for _ in range(2500):\n  os.mkdir('d')\n  os.chdir('d')\n"
        "time.sleep(600 if 'build' in os.getcwd() else 0)\n",
        at=moment,
    )

    assert "deep" in str(failure)


def test_an_endless_log(hostile):
    failure = hostile.failure("while True:\n  print('x' * 4000)\n")

    assert "it wrote too much output" in str(failure)
    assert "raise FORKWATCH_SANDBOX_LOG_SIZE" in str(failure)
    logs = [path.stat().st_size for path in hostile.home.folder("logs").iterdir()]
    assert max(logs) <= SMALL["sandbox_log_size"]


def test_a_log_that_commands_the_terminal(hostile):
    failure = hostile.failure(
        "import sys\n"
        "sys.stdout.buffer.write(b'\\x1b]0;title\\x07\\x1b[2J\\x1b[31mseen\\x1b[0m\\x00\\x9b1m\\r'\n"
        "  b'\\xe2\\x80\\xaeesrever\\xff\\n')\nsys.exit(1)\n"
    )

    assert "seen" in failure.log_tail
    assert "[31m" not in failure.log_tail
    assert "title" not in failure.log_tail
    assert all(character.isprintable() or character in "\n\t" for character in failure.log_tail)


def test_an_endless_build_that_ignores_being_asked(hostile):
    failure = hostile.failure(
        "import signal, time\n"
        "for number in range(1, 32):\n"
        "  if number not in (signal.SIGKILL, signal.SIGSTOP):\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "while True:\n  pass\n",
        minute_s=1 / 60,
    )

    assert "was not done within" in str(failure)
    assert "raise build_minutes_max" in str(failure)
