/* SPDX-License-Identifier: MIT */
/* Completion for shells, written from the table of commands and their options. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include <stdio.h>

void cli_completion_bash(FILE *file);
void cli_completion_zsh(FILE *file);
void cli_completion_fish(FILE *file);

#endif
