from __future__ import annotations

import socket
import sys
from pathlib import Path

import psutil
import pytest

from runner import sandbox, shell
from runner.sandbox import Bind, Sandbox


@pytest.fixture
def run_inside(tmp_path):
    (tmp_path / "seen").mkdir()
    (tmp_path / "written").mkdir()
    sandbox.hand_over(tmp_path / "written")
    binds = (
        Bind(host=tmp_path / "seen", inside="seen"),
        Bind(host=tmp_path / "written", inside="written", writable=True),
    )

    def run(script: str, **options):
        command = Sandbox(binds=binds, environment={"GIVEN": "yes"}).command(
            ["sh", "-c", script], **options
        )
        return shell.run(command, timeout_s=20)

    return run


def test_the_sandbox_works_on_this_machine():
    assert sandbox.works() == ""


def test_home_and_other_folders_of_the_host_are_not_there(run_inside, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("do not read")

    assert not run_inside(f"cat {secret}").ok
    assert not run_inside("ls /root || ls /home").ok
    assert run_inside("echo $HOME").stdout == "/tmp\n"


def test_only_writable_binds_can_be_written(run_inside, tmp_path):
    assert not run_inside("echo x > /forkwatch/seen/file").ok
    assert not run_inside("echo x > /usr/file").ok
    assert run_inside("echo x > /forkwatch/written/file").ok
    assert (tmp_path / "written" / "file").read_text() == "x\n"


def test_nothing_of_the_host_belongs_to_code_inside(run_inside):
    assert not run_inside("chmod 600 /dev/null").ok
    assert not run_inside("chown 0:0 /forkwatch/written").ok
    assert run_inside("grep CapEff /proc/self/status").stdout.split() == ["CapEff:", "0" * 16]
    assert Path("/dev/null").stat().st_mode & 0o777 == 0o666


def test_there_is_no_network(run_inside):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"

        assert shell.run([sys.executable, "-c", connect], timeout_s=20).ok
        assert not run_inside(f'/usr/bin/python3 -c "{connect}"').ok


def test_the_environment_is_only_what_was_given(run_inside):
    names = {line.partition("=")[0] for line in run_inside("env").stdout.splitlines()}

    assert "GIVEN" in names
    assert "FORKWATCH_HOME" not in names
    assert names <= {
        "GIVEN",
        "PATH",
        "HOME",
        "LC_ALL",
        "TZ",
        "SOURCE_DATE_EPOCH",
        "FORKWATCH_RUNNER",
        "PWD",
        "_",
    }


def test_it_runs_as_an_ordinary_user_on_the_given_processor(run_inside):
    last = psutil.cpu_count() - 1

    assert run_inside("id -u").stdout == f"{sandbox.USER_ID}\n"
    assert run_inside("grep Cpus_allowed_list /proc/self/status", cpus=[last]).stdout.split() == [
        "Cpus_allowed_list:",
        str(last),
    ]
