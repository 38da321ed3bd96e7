/* SPDX-License-Identifier: MIT */
/* The program `tarn` but for its process: no signal handlers, no end. */
#ifndef CLI_PROGRAM_H
#define CLI_PROGRAM_H

#include "exit_code.h"

/* Reads the options before the command and hands over to it. `argv` is without the program's name;
 * its order may change. May be called again in the same process, from one thread. */
enum cli_exit cli_program_run(int argc, char **argv);

#endif
