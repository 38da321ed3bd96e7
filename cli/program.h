/* SPDX-License-Identifier: MIT */
/* The program `tarn` without its process: no signal handlers, no exit. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include "exit_code.h"

/* Parses the options before the command and runs it. `argv` excludes the program's name; it may be
 * reordered. May be called repeatedly in one process, from one thread. */
enum cli_exit cli_program_run(int argc, char **argv);

#endif
