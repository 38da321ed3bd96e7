/* SPDX-License-Identifier: MIT */
/*
 * `tarn` without MPI: it becomes tarn-mpi, which is installed beside it, with the same arguments.
 * mpirun does not see the difference.
 */
#define _GNU_SOURCE /* readlink */
#include "fleet_team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATH_BYTES = 4096,
    ARGUMENTS_BYTES = 4 * 1024 * 1024 /* the kernel's limit is of this order */
};

/* The file beside this program. */
static bool program_find(char *path)
{
    static const char name[] = "tarn-mpi";
    const ssize_t length = readlink("/proc/self/exe", path, PATH_BYTES - sizeof name);
    char *slash;

    if (length <= 0) {
        return false;
    }
    path[length] = '\0';
    slash = strrchr(path, '/');
    if (!slash) {
        return false;
    }
    memcpy(slash + 1, name, sizeof name);
    return true;
}

/* The arguments of this process as they were given, each with its NUL. NULL when they cannot be
 * read; the caller frees. */
static char *arguments_read(size_t *size_out)
{
    FILE *file = fopen("/proc/self/cmdline", "re");
    char *bytes = malloc(ARGUMENTS_BYTES);

    *size_out = file && bytes ? fread(bytes, 1, ARGUMENTS_BYTES, file) : 0;
    if (file) {
        (void)fclose(file);
    }
    if (*size_out == 0 || *size_out == ARGUMENTS_BYTES || bytes[*size_out - 1] != '\0') {
        free(bytes);
        return NULL;
    }
    return bytes;
}

static void program_become(const char *path)
{
    size_t size;
    size_t count = 0;
    char *bytes = arguments_read(&size);
    char **arguments = bytes ? calloc(size + 1, sizeof *arguments) : NULL;

    for (size_t at = 0; arguments && at < size; at += strlen(bytes + at) + 1) {
        arguments[count++] = bytes + at;
    }
    if (arguments) {
        (void)execv(path, arguments);
    }
    free(arguments);
    free(bytes);
}

enum cli_exit cli_fleet_team_join(const struct cli_command *command, struct cli_fleet_team *team)
{
    char path[PATH_BYTES];

    *team = (struct cli_fleet_team){.count = 1};
    if (program_find(path)) {
        program_become(path);
    }
    return cli_fail(command, CLI_EXIT_FORMAT,
                    "--mpi needs the program tarn-mpi beside this one: install the package "
                    "tarn-mpi, or build with -DTARN_MPI=ON");
}

bool cli_fleet_team_share(const struct cli_fleet_team *team, char **bytes_inout, size_t *size_inout)
{
    (void)team;
    (void)size_inout;
    return *bytes_inout != NULL;
}

uint64_t cli_fleet_team_least(const struct cli_fleet_team *team, uint64_t number)
{
    (void)team;
    return number;
}

void cli_fleet_team_send(const struct cli_fleet_team *team, size_t to, const char *bytes,
                         size_t size)
{
    (void)team;
    (void)to;
    (void)bytes;
    (void)size;
}

char *cli_fleet_team_receive(const struct cli_fleet_team *team, size_t from, size_t *size_out)
{
    (void)team;
    (void)from;
    *size_out = 0;
    return NULL;
}
