"""What a hostile server may use, reach and leave while it is measured."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from results.document import Outcome
from results.job import ORDER_FILE
from results.slice import SideName
from runner import shell, watchdog
from runner.settings import RunnerSettings
from tests.runner.faulty_fork import Bed
from tests.runner.hostile_fork import FEW_PROCESSES, SMALL
from tests.runner.processes import servers, until
from tests.runner.tiny_fork import PLAN

#: An honest server of the tiny fork takes half of this, and as much disk when it is made.
LIMITS = {**SMALL, "sandbox_memory": 600 * 2**20, "sandbox_disk_size": 250 * 2**20}


@pytest.fixture
def bed(tiny_fork, home, progress):
    return Bed(
        tiny_fork, home, RunnerSettings(home=home.root, watch_host=False, **LIMITS), progress
    )


@pytest.fixture
def failed(bed):
    """Do the job of a hostile server, and another one afterwards, and return how it failed."""

    def do(name: str, attack: str, **chosen):
        document = bed.do(bed.order(bed.faulty(name, attack), job=f"hostile-{name}", **chosen))
        assert document.outcome is Outcome.FAILED
        until(lambda: servers(bed.home.root) == [])
        until(lambda: watchdog.marked(watchdog.MARK) == [])
        assert not (bed.home.root / "jobs" / document.job / "data").exists()
        return document.failure

    return do


@pytest.mark.parametrize(
    ("name", "attack", "said"),
    [
        (
            "fork-bomb",
            "BESIDE_THE_WORKING_SERVER(for (;;) if (fork() == 0) for (;;) pause());",
            "FORKWATCH_SANDBOX_PROCESSES",
        ),
        (
            "memory",
            (
                "BESIDE_THE_WORKING_SERVER(for (int n = 0; n < 700; n++) {"
                " char *page = malloc(1 << 20); if (page) memset(page, 1, 1 << 20); }"
                " for (;;) pause());"
            ),
            "FORKWATCH_SANDBOX_MEMORY",
        ),
        (
            "disk",
            (
                "static char block[1 << 20]; char path[4200];"
                " BESIDE_THE_WORKING_SERVER(for (int n = 0; n < 400; n++) {"
                '   snprintf(path, sizeof path, "%s/junk%d", data, n);'
                "   int file = open(path, O_CREAT | O_WRONLY, 0600);"
                "   if (write(file, block, sizeof block) < 0) break; }"
                " for (;;) pause());"
            ),
            "FORKWATCH_SANDBOX_DISK_SIZE",
        ),
        (
            "log",
            (
                "BESIDE_THE_WORKING_SERVER(for (;;)"
                ' fputs("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\n", stderr));'
            ),
            "FORKWATCH_SANDBOX_LOG_SIZE",
        ),
    ],
    ids=["processes", "memory", "disk", "log"],
)
def test_a_server_past_its_limits_is_ended_and_named(bed, failed, name, attack, said):
    if name == "fork-bomb":
        bed.settings = bed.settings.model_copy(update=FEW_PROCESSES)

    failure = failed(name, attack)

    assert "the server was ended" in failure.message
    assert said in failure.message


def test_a_server_that_kills_everybody_in_sight_kills_itself(failed):
    failure = failed("killer", "kill(-1, SIGKILL); kill(1, SIGKILL); kill(getpid(), SIGKILL);")

    assert failure.stage == "start"
    assert "the server ended with" in failure.message


def test_a_server_finds_no_secrets(failed, bed, tmp_path, monkeypatch):
    secret = "correct-horse-battery"
    monkeypatch.setenv("FORKWATCH_CREDENTIAL", secret)
    (bed.home.folder("jobs", "hostile-spy") / ORDER_FILE).write_text(secret)
    places = [
        str(bed.home.root),
        str(bed.home.root / "jobs" / "hostile-spy" / ORDER_FILE),
        str(tmp_path),
        str(bed.fork.folder),
        "/root",
        "/home",
        "/etc/shadow",
        "/var/log",
        "/sys/firmware",
        "/sys/fs",
        "/sys/kernel/debug",
        "/dev/mem",
        f"/proc/1/root{Path('~root').expanduser()}",
    ]
    listed = ", ".join(f'"{place}"' for place in places)
    spy = (
        f"const char *places[] = {{{listed}, NULL}};"
        " for (int n = 0; places[n]; n++) {"
        "   DIR *folder = opendir(places[n]); int file = open(places[n], O_RDONLY);"
        '   if (folder || file >= 0) fprintf(stderr, "READ %s\\n", places[n]); }'
        ' for (char **one = environ; *one; one++) fprintf(stderr, "%s\\n", *one);'
        ' fputs("looked\\n", stderr); return 9;'
    )

    failure = failed("spy", spy)

    assert "looked" in failure.log_tail
    assert "READ" not in failure.log_tail
    assert secret not in failure.log_tail


def test_a_server_has_no_way_out_by_a_socket(failed):
    with (
        socket.create_server(("127.0.0.1", 0)) as stream,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        name = f"forkwatch-test-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        port = stream.getsockname()[1]
        calls = (
            "struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(PORT)};"
            " there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);"
            " int s = socket(AF_INET, SOCK_STREAM, 0);"
            " if (connect(s, (struct sockaddr *)&there, sizeof there) == 0)"
            '   fputs("OPEN stream\\n", stderr);'
            ' char un[110] = {AF_UNIX, 0}; const char *name = "NAME"; strcpy(un + 3, name);'
            " int u = socket(AF_UNIX, SOCK_STREAM, 0);"
            " if (connect(u, (struct sockaddr *)un, 3 + strlen(name)) == 0)"
            '   fputs("OPEN abstract\\n", stderr);'
            ' fputs("tried\\n", stderr); return 9;'
        )
        calls = calls.replace("PORT", str(port)).replace("NAME", name)

        failure = failed("caller", calls)

    assert "tried" in failure.log_tail
    assert "OPEN" not in failure.log_tail


def test_a_data_folder_deeper_than_a_stack_is_removed(bed):
    """The runner clears away what a server leaves; it must not stumble over it."""
    dig = (
        "if (chdir(data) == 0) for (int n = 0; n < 2500; n++)"
        ' { if (mkdir("d", 0700) != 0 || chdir("d") != 0) break; }'
        ' if (chdir("/") != 0) return 1;'
    )

    document = bed.do(bed.order(bed.faulty("digger", dig), job="hostile-digger", plan=PLAN))

    # Measured, or ended for its depth: both are honest. What counts is that it ended.
    assert document.outcome in {Outcome.MEASURED, Outcome.FAILED}
    assert not (bed.home.root / "jobs" / "hostile-digger" / "data").exists()
    shell.run(["rm", "-rf", str(bed.home.root / "jobs" / "hostile-digger")], timeout_s=60)


def test_a_hostile_candidate_does_not_reach_the_baseline_beside_it(bed):
    """Both servers of a pair are up; the candidate looks for the other one's processes and data."""
    look = (
        "if (fork() == 0) { for (int n = 0; n < 100; n++) {"
        '   DIR *all = opendir("/proc"); struct dirent *one; int seen = 0;'
        "   while ((one = readdir(all))) if (atoi(one->d_name) > 0) seen++;"
        '   closedir(all); if (seen > 8) fprintf(stderr, "SAW %d\\n", seen);'
        "   kill(-1, SIGSTOP); kill(-1, SIGCONT); usleep(100000); } _exit(0); }"
    )
    order = bed.order(
        bed.faulty("neighbour", look),
        baseline=bed.fork.first,
        job="hostile-pair",
        plan=PLAN,
        starts=2,
    )

    document = bed.do(order)

    # It may stop and continue itself; the baseline's slices are there all the same.
    baseline = document.samples("point-query", "throughput_ops_s", SideName.BASELINE)
    assert document.outcome is Outcome.MEASURED, document.failure
    assert all(baseline)
