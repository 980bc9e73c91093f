"""Faults of servers, as launchers in C around the system's MariaDB.

A launcher behaves while a dataset is made and loaded; once there is one, the server it starts is
one that is measured, and the fault happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from results.document import RunDocument
from results.job import JobOrder
from runner.errors import OperatorError
from runner.job import run_job
from runner.settings import Home, RunnerSettings
from tests.runner.tiny_fork import PLAN, TinyFork

_LAUNCHER = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const launcher_fault = "%(name)s";
static char data[4096];
static int child;

static void pass_on(int number) { kill(child, number); }

/* Whether there is a loaded dataset, so that this server is measured. */
static int is_measured(char **argv) {
  char table[4200];
  for (; *argv; argv++)
    if (strncmp(*argv, "--datadir=", 10) == 0)
      snprintf(data, sizeof data, "%%s", *argv + 10);
  snprintf(table, sizeof table, "%%s/sbtest/sbtest1.ibd", data);
  return data[0] && access(table, F_OK) == 0;
}

/* Processor time of the server, in seconds: says that clients are being served. */
static double busy(int pid) {
  char path[64], text[1024], *field;
  unsigned long user, kernel;
  snprintf(path, sizeof path, "/proc/%%d/stat", pid);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[size] = 0;
  field = strrchr(text, ')');
  if (!field) return 0;
  const char *format = "%%*c %%*d %%*d %%*d %%*d %%*d %%*u %%*u %%*u %%*u %%*u %%lu %%lu";
  if (sscanf(field + 2, format, &user, &kernel) != 2)
    return 0;
  return (double)(user + kernel) / sysconf(_SC_CLK_TCK);
}

/* Run `at_work` beside the server once it has served clients for a while. */
#define BESIDE_THE_WORKING_SERVER(at_work)                          \
  do {                                                              \
    int server = getpid();                                          \
    if (fork() == 0) {                                              \
      while (busy(server) < 0.5) usleep(20000);                     \
      at_work;                                                      \
      _exit(0);                                                     \
    }                                                               \
  } while (0)

int main(int argc, char **argv) {
  char *words[300];
  int count = 0;
  for (; count < argc && count < 290; count++) words[count] = argv[count];
  words[count] = NULL;
  if (is_measured(argv)) {
    %(fault)s
  }
  execv("/usr/sbin/mariadbd", words);
  return 1;
}
"""

FAULTS: Mapping[str, str] = {
    "never-ready": "for (;;) pause();",
    "ends-at-once": 'fprintf(stderr, "cannot find my own configuration\\n"); return 3;',
    "crashes": "BESIDE_THE_WORKING_SERVER(kill(server, SIGSEGV));",
    "is-killed": "BESIDE_THE_WORKING_SERVER(kill(server, SIGKILL));",
    "hangs": "BESIDE_THE_WORKING_SERVER(kill(server, SIGSTOP); for (;;) pause());",
    # The launcher stays the first process, and does not pass on that it was asked to end.
    "does-not-stop": "signal(SIGTERM, SIG_IGN); if (fork() != 0) for (;;) pause();"
    " signal(SIGTERM, SIG_DFL);",
    "stops-badly": "child = fork(); if (child != 0) { int status; signal(SIGTERM, pass_on);"
    " while (waitpid(child, &status, 0) < 0 && errno == EINTR); return 7; }",
    "lost-its-table": 'char frm[4200]; snprintf(frm, sizeof frm, "%s/sbtest/sbtest1.frm", data);'
    " unlink(frm);",
    # A transaction that was prepared outlives the connection that made it, with all its locks.
    "serves-nobody": 'FILE *sql = fopen("/tmp/init.sql", "w");'
    " fputs(\"XA START 'held';\\nUPDATE sbtest.sbtest1 SET k = k + 1;\\n"
    "XA END 'held';\\nXA PREPARE 'held';\\n\", sql); fclose(sql);"
    ' words[count++] = "--init-file=/tmp/init.sql";'
    ' words[count++] = "--innodb-lock-wait-timeout=1"; words[count] = NULL;',
}


def launcher(name: str, fault: str | None = None) -> dict[str, str]:
    """Return the source of a launcher with a fault, for a commit of a tiny fork."""
    return {"launcher.c": _LAUNCHER % {"name": name, "fault": fault or FAULTS[name]}}


#: One workload, long enough to be in the middle of: half a minute, of which the fault cuts most. On
#: a busy machine it takes the fault many seconds to come and to be noticed.
SLOW_PLAN = PLAN.replace("seconds = 1", "seconds = 3").replace("slices = 1", "slices = 12")


class Bed:
    """A tiny fork, a home and what is needed to do jobs with them."""

    def __init__(self, fork: TinyFork, home: Home, settings: RunnerSettings, progress: Any) -> None:
        self.fork, self.home, self.settings, self.progress = fork, home, settings, progress

    def order(self, sha: str, **chosen: Any) -> JobOrder:
        usual = {"workloads": ["point-query"], "plan": SLOW_PLAN}
        return self.fork.order(sha, **{**usual, **chosen})

    def do(self, order: JobOrder) -> RunDocument:
        folder = self.home.folder("jobs", order.job)
        return run_job(
            order, folder, home=self.home, settings=self.settings, progress=self.progress
        )

    def refused(self, order: JobOrder) -> str:
        """Return what an operator is told about a job that could not be done."""
        try:
            self.do(order)
        except OperatorError as error:
            return str(error)
        raise AssertionError("the job was done")

    def faulty(self, name: str, fault: str | None = None) -> str:
        """Commit a launcher with a fault and return the commit."""
        return self.fork.commit(name, launcher(name, fault))
