/* SPDX-License-Identifier: MIT */
/* The processes that mpirun started. Errors of MPI end the job, as they do by default. */
#include "fleet_team.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LINE_BYTES = 8192,
    PIECE_BYTES = 256 * 1024 * 1024, /* of a message: MPI counts in int */
    TAG = 1
};

static void team_leave(void)
{
    (void)MPI_Finalize();
}

enum cli_exit cli_fleet_team_join(const struct cli_command *command, struct cli_fleet_team *team)
{
    int number = 0;
    int count = 1;
    int is_running = 0;

    (void)MPI_Initialized(&is_running);
    if (!is_running && (MPI_Init(NULL, NULL) != MPI_SUCCESS || atexit(team_leave) != 0)) {
        return cli_fail(command, CLI_EXIT_INTERNAL, "MPI cannot be started");
    }
    /* mpirun mixes what the processes write: each line in one piece. */
    (void)setvbuf(stderr, NULL, _IOLBF, LINE_BYTES);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &number);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &count);
    *team = (struct cli_fleet_team){(size_t)number, (size_t)count};
    return CLI_EXIT_OK;
}

static int piece_of(size_t size, size_t at)
{
    return (int)(size - at < PIECE_BYTES ? size - at : PIECE_BYTES);
}

bool cli_fleet_team_share(const struct cli_fleet_team *team, char **bytes_inout, size_t *size_inout)
{
    uint64_t size = *bytes_inout ? *size_inout : 0;

    (void)MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (team->number > 0) {
        *bytes_inout = malloc(size + 1);
        *size_inout = size;
    }
    if (cli_fleet_team_least(team, *bytes_inout ? 1 : 0) == 0) {
        return false;
    }
    for (size_t at = 0; at < size; at += PIECE_BYTES) {
        (void)MPI_Bcast(*bytes_inout + at, piece_of(size, at), MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    return true;
}

uint64_t cli_fleet_team_least(const struct cli_fleet_team *team, uint64_t number)
{
    uint64_t least = number;

    (void)team;
    (void)MPI_Allreduce(&number, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    return least;
}

void cli_fleet_team_send(const struct cli_fleet_team *team, size_t to, const char *bytes,
                         size_t size)
{
    const uint64_t length = size;

    (void)team;
    (void)MPI_Send(&length, 1, MPI_UINT64_T, (int)to, TAG, MPI_COMM_WORLD);
    for (size_t at = 0; at < size; at += PIECE_BYTES) {
        (void)MPI_Send(bytes + at, piece_of(size, at), MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD);
    }
}

char *cli_fleet_team_receive(const struct cli_fleet_team *team, size_t from, size_t *size_out)
{
    uint64_t size = 0;

    (void)team;
    (void)MPI_Recv(&size, 1, MPI_UINT64_T, (int)from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    char *bytes = malloc(size + 1);

    if (!bytes) {
        (void)MPI_Abort(MPI_COMM_WORLD, CLI_EXIT_LIMIT); /* the sender would wait for ever */
    }
    for (size_t at = 0; at < size; at += PIECE_BYTES) {
        (void)MPI_Recv(bytes + at, piece_of(size, at), MPI_BYTE, (int)from, TAG, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
    }
    *size_out = size;
    return bytes;
}
