/* SPDX-License-Identifier: MIT */
/* All files of a fleet into one, in this process or shared between those of mpirun. */
#ifndef CLI_FLEET_GATHER_H
#define CLI_FLEET_GATHER_H

#include "fleet_files.h"

struct cli_fleet_gather {
    const struct cli_call *call; /* its arguments are the files */
    const char *labels;          /* a file with more labels; NULL = none */
    const struct tarn_summary_options *options;
    bool narrows;
    bool uses_mpi;
};

/* Loads the labels and adds every file, and reports what cannot be used. *code_out is the exit code
 * of the first failure, in the order of the files. False when this process is to write nothing and
 * to return *code_out: without the labels, after a failure that leaves no rank, and in all
 * processes of mpirun but one. */
bool cli_fleet_gather(const struct cli_fleet_gather *gather, struct tarn_fleet *fleet,
                      int *code_out);

#endif
