/* SPDX-License-Identifier: MIT */
/*
 * The processes that read the files of a fleet: this one alone, or those that mpirun started.
 * fleet_team_mpi.c is the program tarn-mpi's; in `tarn` fleet_team_none.c starts that program.
 * Every process of a team makes the same calls in the same order.
 */
#ifndef CLI_FLEET_TEAM_H
#define CLI_FLEET_TEAM_H

#include "command.h"

struct cli_fleet_team {
    size_t number; /* of this process, from 0 */
    size_t count;
};

/* The processes that mpirun started, this one among them. CLI_EXIT_OK, or reports why there is
 * none; a program without MPI becomes tarn-mpi and returns only if it cannot. */
enum cli_exit cli_fleet_team_join(const struct cli_command *command, struct cli_fleet_team *team);

/* Gives every process the bytes that number 0 has: *bytes_inout is a block of malloc's, or NULL,
 * and elsewhere replaced by one that the caller frees. False without memory in any process. */
bool cli_fleet_team_share(const struct cli_fleet_team *team, char **bytes_inout,
                          size_t *size_inout);

/* The least number of all processes, in each of them. */
uint64_t cli_fleet_team_least(const struct cli_fleet_team *team, uint64_t number);

/* Sends bytes to another process, and receives what it sends: a block that the caller
 * frees. Ends all processes without memory for it. */
void cli_fleet_team_send(const struct cli_fleet_team *team, size_t to, const char *bytes,
                         size_t size);
char *cli_fleet_team_receive(const struct cli_fleet_team *team, size_t from, size_t *size_out);

#endif
