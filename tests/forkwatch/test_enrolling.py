from __future__ import annotations

import configparser
import dataclasses
import shutil
from pathlib import Path

import pytest

from forkwatch.enrolling import placing
from forkwatch.enrolling.agent_hooks import read_hooks
from forkwatch.enrolling.enrolment import Enrolment, System
from forkwatch.enrolling.github import JOB, REGISTER
from forkwatch.enrolling.placing import KEPT, LIST, Standing, below
from forkwatch.enrolling.texts import files_of, next_steps
from forkwatch.errors import EnrolError
from runner import shell

GITHUB = Enrolment(system=System.GITHUB, host_class="small", url="https://github.com/acme/server")
BUILDKITE = Enrolment(system=System.BUILDKITE, host_class="small", org="acme")
SYSTEMS = pytest.mark.parametrize("enrolment", [GITHUB, BUILDKITE], ids=["github", "buildkite"])


def files(enrolment):
    hooks = read_hooks() if enrolment.system is System.BUILDKITE else {}
    return files_of(enrolment, hooks)


def place(root, enrolment, *, overwrite=False):
    return placing.place(root, enrolment, files(enrolment), overwrite=overwrite)


def text_of(enrolment, name):
    return next(one.text for one in files(enrolment) if one.path.name == name)


def everything(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


@SYSTEMS
def test_every_file_is_written_with_its_mode_and_listed(enrolment, tmp_path):
    found = place(tmp_path, enrolment)

    for one in files(enrolment):
        path = below(tmp_path, one.path)
        assert found[one.path] is Standing.NEW
        assert path.read_text() == one.text
        assert path.stat().st_mode & 0o777 == one.mode
    listed = placing.read(tmp_path)
    assert [one.path for one in listed.files] == [one.path for one in files(enrolment)]
    assert (listed.system, listed.unit) == (enrolment.system, enrolment.unit)


@SYSTEMS
def test_retiring_leaves_the_host_as_it_was(enrolment, tmp_path):
    (tmp_path / "etc" / "systemd").mkdir(parents=True)
    (tmp_path / "etc" / "hostname").write_text("bench-1\n")
    before = everything(tmp_path)
    place(tmp_path, enrolment)

    gone, stay = placing.take_away(tmp_path)

    assert everything(tmp_path) == before
    assert [one.path for one in files(enrolment)] == gone
    assert stay == []
    with pytest.raises(EnrolError, match="not enrolled"):
        placing.take_away(tmp_path)


def test_what_is_in_the_way_is_not_replaced_unless_somebody_says_so(tmp_path):
    way = below(tmp_path, REGISTER)
    way.parent.mkdir(parents=True)
    way.write_text("somebody else's\n")
    before = everything(tmp_path)

    with pytest.raises(EnrolError, match=r"register-runner is there and not ours \(1 in all\)"):
        place(tmp_path, GITHUB)
    assert everything(tmp_path) == before

    found = place(tmp_path, GITHUB, overwrite=True)
    assert found[REGISTER] is Standing.FOREIGN
    assert way.with_name(way.name + KEPT).read_text() == "somebody else's\n"
    assert "config.sh" in way.read_text()
    placing.take_away(tmp_path)
    assert everything(tmp_path) == before


def test_a_link_in_the_way_is_not_followed(tmp_path):
    target = tmp_path / "elsewhere"
    target.write_text("not to be touched\n")
    way = below(tmp_path, REGISTER)
    way.parent.mkdir(parents=True)
    way.symlink_to(target)

    with pytest.raises(EnrolError, match="not ours"):
        place(tmp_path, GITHUB)
    place(tmp_path, GITHUB, overwrite=True)

    assert target.read_text() == "not to be touched\n"
    assert not way.is_symlink()


def test_a_file_that_was_there_as_wanted_stays_when_the_host_is_retired(tmp_path):
    same = files(GITHUB)[0]
    below(tmp_path, same.path).parent.mkdir(parents=True)
    below(tmp_path, same.path).write_text(same.text)

    assert place(tmp_path, GITHUB)[same.path] is Standing.SAME
    gone, _ = placing.take_away(tmp_path)

    assert same.path not in gone
    assert below(tmp_path, same.path).read_text() == same.text


def test_enrolling_again_writes_our_own_files_again(tmp_path):
    place(tmp_path, GITHUB)

    assert set(place(tmp_path, GITHUB).values()) == {Standing.SAME}
    found = place(tmp_path, dataclasses.replace(GITHUB, host_class="large"))

    assert Standing.OURS in found.values()
    assert Standing.FOREIGN not in found.values()
    assert "forkwatch,large" in below(tmp_path, REGISTER).read_text()
    placing.take_away(tmp_path)
    assert everything(tmp_path) == {}


def test_a_hook_that_there_is_no_more_goes(tmp_path):
    placing.place(tmp_path, BUILDKITE, files_of(BUILDKITE, {"old": "#!/bin/sh\n"}), overwrite=False)

    place(tmp_path, BUILDKITE)

    hooks = below(tmp_path, Path("/etc/forkwatch/agent-hooks"))
    names = {"agent.env", "environment", "pre-command", "pre-exit"}
    assert {path.name for path in hooks.iterdir()} == names


def test_what_was_changed_is_left_and_named(tmp_path):
    place(tmp_path, GITHUB)
    below(tmp_path, REGISTER).write_text("changed by hand\n")

    with pytest.raises(EnrolError, match="not ours"):
        place(tmp_path, GITHUB)
    gone, stay = placing.take_away(tmp_path)

    assert stay == [REGISTER]
    assert REGISTER not in gone
    assert below(tmp_path, REGISTER).read_text() == "changed by hand\n"
    assert not below(tmp_path, LIST).exists()


def test_nothing_that_is_kept_is_lost_by_enrolling_twice(tmp_path):
    way = below(tmp_path, REGISTER)
    way.parent.mkdir(parents=True)
    way.write_text("the first\n")
    place(tmp_path, GITHUB, overwrite=True)
    way.write_text("changed by hand\n")

    with pytest.raises(EnrolError, match="move one of them"):
        place(tmp_path, GITHUB, overwrite=True)

    assert way.read_text() == "changed by hand\n"
    assert way.with_name(way.name + KEPT).read_text() == "the first\n"


def test_a_host_is_of_one_system_at_a_time(tmp_path):
    place(tmp_path, GITHUB)

    with pytest.raises(EnrolError, match="enrolled for github; `forkwatch host retire --apply`"):
        place(tmp_path, BUILDKITE)


def test_a_list_that_is_not_readable_is_said(tmp_path):
    place(tmp_path, GITHUB)
    below(tmp_path, LIST).write_text("{}")

    with pytest.raises(EnrolError, match="not readable"):
        place(tmp_path, GITHUB)


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"host_class": "small large"}, "--class"),
        ({"host_class": "$(reboot)"}, "--class"),
        ({"host_class": ""}, "--class"),
        ({"user": "root;reboot"}, "--user"),
        ({"home": Path("/home/forkwatch")}, "--home"),
        ({"home": Path("/var/lib/fork watch")}, "--home"),
        ({"program": Path("forkwatch")}, "--program"),
        ({"program": Path("/opt/fork%watch")}, "--program"),
        ({"runner": Path("/opt/run\nner")}, "--runner"),
        ({"url": ""}, "--url"),
        ({"url": "http://github.com/acme/server"}, "--url"),
        ({"url": "https://github.com/acme/server/tree/main"}, "--url"),
        ({"url": "https://user:word@github.com/acme"}, "--url"),
        ({"url": "https://github.com/acme/server?x=$(reboot)"}, "--url"),
        ({"url": "https://github.com/acme/`reboot`"}, "--url"),
    ],
    ids=str,
)
def test_an_answer_that_a_text_would_have_to_quote_is_refused(facts, says):
    with pytest.raises(EnrolError, match=says):
        dataclasses.replace(GITHUB, **facts)


def test_a_buildkite_host_needs_an_organisation():
    with pytest.raises(EnrolError, match="--org"):
        dataclasses.replace(BUILDKITE, org="")


@pytest.mark.parametrize(
    ("url", "api"),
    [
        ("https://github.com/acme/server", "https://api.github.com/repos/acme/server"),
        ("https://github.com/acme", "https://api.github.com/orgs/acme"),
        ("https://git.example.org/acme/", "https://git.example.org/api/v3/orgs/acme"),
    ],
)
def test_a_registration_token_is_asked_for_where_the_runner_belongs(url, api):
    enrolment = dataclasses.replace(GITHUB, url=url)

    assert enrolment.registration_api == f"{api}/actions/runners/registration-token"


@SYSTEMS
def test_systemd_understands_the_units(enrolment, tmp_path):
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed; apt-get install systemd")
    real = dataclasses.replace(enrolment, program=Path("/bin/true"), agent=Path("/bin/true"))
    units = [one for one in files(real) if one.path.suffix == ".service"]
    for one in units:
        # What is there on an enrolled host only.
        text = one.text.replace(f"{JOB}/runner/run.sh", "/bin/true")
        (tmp_path / one.path.name).write_text(text.replace(str(REGISTER), "/bin/true"))
    broken = tmp_path / "broken.service"
    broken.write_text("[Service]\nExecStart=/bin/true\nRestart=perhaps\n")

    said = {
        path.name: shell.run([program, "verify", "--man=no", str(path)], timeout_s=60)
        for path in [*tmp_path.iterdir()]
    }

    assert "perhaps" in said.pop(broken.name).stderr, "it would see nothing"
    assert len(said) == 2
    for name, done in said.items():
        assert not [line for line in done.stderr.splitlines() if "forkwatch" in line], name


@SYSTEMS
def test_no_unit_shows_a_job_the_secret(enrolment):
    for one in files(enrolment):
        assert "TOKEN=" not in one.text.replace("BUILDKITE_AGENT_TOKEN=...", "").replace(
            "ACTIONS_RUNNER_INPUT_TOKEN=$token", ""
        )
    unit = text_of(enrolment, enrolment.unit)
    lines = [line for line in unit.splitlines() if str(enrolment.secret) in line]
    # Read by systemd as root, or by a script that it runs as root.
    assert lines in ([], [f"EnvironmentFile={enrolment.secret}"])
    assert f"ExecStartPre=+{REGISTER}" in unit or enrolment.system is System.BUILDKITE


def test_the_agent_does_one_job_with_our_hooks_and_no_others():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string("[agent]\n" + text_of(BUILDKITE, "buildkite-agent.cfg"), source="cfg")
    said = {name: value.strip('"') for name, value in parser["agent"].items()}

    assert said["tags"] == "queue=small,forkwatch=true"
    assert said["hooks-path"] == "/etc/forkwatch/agent-hooks"
    assert (said["spawn"], said["disconnect-after-job"]) == ("1", "true")
    assert (said["no-local-hooks"], said["no-plugins"]) == ("true", "true")
    assert "token" not in said


def test_the_hooks_see_what_the_host_is(tmp_path):
    place(tmp_path, dataclasses.replace(BUILDKITE, program=Path("/opt/forkwatch/bin/forkwatch")))
    hooks = below(tmp_path, Path("/etc/forkwatch/agent-hooks"))
    words = 'BUILDKITE_HOOKS_PATH="$0"; . "$0"/environment; echo "$FORKWATCH_HOME $PATH"; env'

    done = shell.run(["bash", "-c", words, str(hooks)], timeout_s=20)

    assert done.ok, done.stderr
    assert done.stdout.startswith("/var/lib/forkwatch /opt/forkwatch/bin:")
    assert "FORKWATCH_HOST_CLASS=small" in done.stdout


def test_hooks_that_are_not_there_are_said(tmp_path):
    with pytest.raises(EnrolError, match="--hooks"):
        read_hooks(tmp_path)


@SYSTEMS
def test_what_is_left_to_do_names_the_secret_and_the_units(enrolment):
    steps = "\n".join(next_steps(enrolment))

    assert str(enrolment.secret) in steps
    assert f"systemctl start forkwatch-tune.service {enrolment.unit}" in steps
