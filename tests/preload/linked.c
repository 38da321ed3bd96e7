/* SPDX-License-Identifier: MIT */
/* A program that is linked with libcuda.so.1. */
#include "preload/program.h"

#define CU_DECLARE(exported, plain, since, parameters) int exported parameters;
CU_FUNCTIONS(CU_DECLARE)
#undef CU_DECLARE

int main(void)
{
    const struct cu cu = {
#define CU_ADDRESS(exported, plain, since, parameters) .exported = (exported),
        CU_FUNCTIONS(CU_ADDRESS)
#undef CU_ADDRESS
    };

    program_begin(&cu);
    program_work(&cu);
    return 3;
}
