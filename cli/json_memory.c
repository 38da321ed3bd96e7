/* SPDX-License-Identifier: MIT */
#include "json_memory.h"

#include "command.h"

#include <jansson.h>
#include <stdlib.h>

static void *memory_get(size_t size)
{
    void *memory = malloc(size);

    if (!memory) {
        exit((int)cli_fail(NULL, CLI_EXIT_LIMIT, "no host memory to read JSON"));
    }
    return memory;
}

void cli_json_memory_init(void)
{
    json_set_alloc_funcs(memory_get, free);
}
