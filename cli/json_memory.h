/* SPDX-License-Identifier: MIT */
#ifndef CLI_JSON_MEMORY_H
#define CLI_JSON_MEMORY_H

/* Makes the JSON library end the program with CLI_EXIT_LIMIT and a message when it runs out of
 * memory: its lexer does not check, and would abort, read beyond a string or drop digits of a
 * number. */
void cli_json_memory_init(void);

#endif
