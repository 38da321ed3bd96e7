/* SPDX-License-Identifier: MIT */
/*
 * A program of operations from bytes (tests/property/ops.h), run on the allocator and on the
 * reference allocator at once. A difference prints the program as C and ends the process.
 */
#include "fuzz_target.h"
#include "property/pair.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[PAIR_TEXT_MAX] = "";
    struct program program = program_from_bytes(data, size);

    if (pair_run(&program, 16, text) < program.count) {
        program_print(&program, text, stderr);
        abort();
    }
    program_fini(&program);
    return 0;
}
