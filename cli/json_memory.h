/* SPDX-License-Identifier: MIT */
#ifndef CLI_JSON_MEMORY_H
#define CLI_JSON_MEMORY_H

/* Ends the program with CLI_EXIT_LIMIT and a line where the JSON library finds no memory: its lexer
 * does not look, and would abort, read beyond a string or drop digits of a number. */
void cli_json_memory_init(void);

#endif
