/* SPDX-License-Identifier: MIT */
/* A program that is linked with libcuda.so.1. */
#include "preload/program.h"

#include <string.h>

#define CU_DECLARE(exported, plain, since, parameters) int exported parameters;
CU_FUNCTIONS(CU_DECLARE)
#undef CU_DECLARE

int main(int argc, char **argv)
{
    struct cu cu = {
#define CU_ADDRESS(exported, plain, since, parameters) .exported = (exported),
        CU_FUNCTIONS(CU_ADDRESS)
#undef CU_ADDRESS
    };

    program_begin(&cu);
    if (argc > 1 && strcmp(argv[1], "threads") == 0) {
        program_threads(&cu);
    } else {
        program_work(&cu);
    }
    return 3;
}
