/*
 * Starts the MariaDB server with this distribution's copy library and defaults.
 *
 * Order of the arguments: what the caller says about option files (the server wants those first),
 * our defaults, everything else from the caller. The last word about an option wins.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "defaults.h"

#define LIBRARY "/lib/libdemo_copy.so"
#define DEFAULT_COUNT (sizeof default_options / sizeof default_options[0])

static int fail(const char *what)
{
    fprintf(stderr, "demo-mariadb: %s: %s\n", what, strerror(errno));
    return 127;
}

/* Removes the last component of a path; returns 0 when there is none. */
static int go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return 0;
    *slash = '\0';
    return 1;
}

/* Writes the install prefix: the folder above the one that holds this program. */
static int find_prefix(char *prefix, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", prefix, size - 1);
    if (length < 0)
        return 0;
    prefix[length] = '\0';
    return go_up(prefix) && go_up(prefix);
}

/* Puts our library in front of whatever is preloaded already. */
static int preload(const char *prefix)
{
    const char *others = getenv("LD_PRELOAD");
    size_t size = strlen(prefix) + sizeof LIBRARY + (others ? strlen(others) + 1 : 0);
    char *value = malloc(size);
    if (value == NULL)
        return 0;
    snprintf(value, size, "%s" LIBRARY "%s%s", prefix, others ? ":" : "", others ? others : "");
    int failed = setenv("LD_PRELOAD", value, 1);
    free(value);
    return !failed;
}

static int is_about_option_files(const char *argument)
{
    return strcmp(argument, "--no-defaults") == 0 || strcmp(argument, "--print-defaults") == 0 ||
           strncmp(argument, "--defaults-", strlen("--defaults-")) == 0;
}

int main(int argc, char **argv)
{
    char prefix[PATH_MAX];
    if (!find_prefix(prefix, sizeof prefix))
        return fail("cannot find the install prefix");
    if (!preload(prefix))
        return fail("cannot preload the copy library");

    char **arguments = calloc((size_t)argc + DEFAULT_COUNT + 1, sizeof *arguments);
    if (arguments == NULL)
        return fail("cannot build the command line");
    size_t count = 0;
    int next = 1;
    arguments[count++] = (char *)DEMO_SERVER;
    while (next < argc && is_about_option_files(argv[next]))
        arguments[count++] = argv[next++];
    for (size_t i = 0; i < DEFAULT_COUNT; i++)
        arguments[count++] = (char *)default_options[i];
    while (next < argc)
        arguments[count++] = argv[next++];

    execv(DEMO_SERVER, arguments);
    return fail(DEMO_SERVER);
}
