/* SPDX-License-Identifier: MIT */
/* Built where elfutils is not there, or with TARN_LIBDW=OFF. */
#include "history/debug_info.h"

#include <stddef.h>

bool tn_debug_info_open(struct tn_debug_info **info_out)
{
    *info_out = NULL;
    return true;
}

void tn_debug_info_close(struct tn_debug_info *info)
{
    (void)info;
}

void tn_debug_info_expect_modules(struct tn_debug_info *info)
{
    (void)info;
}

bool tn_debug_info_visit(struct tn_debug_info *info, uint64_t address, tn_debug_visitor visit,
                         void *context)
{
    (void)info;
    (void)address;
    (void)visit;
    (void)context;
    return true;
}
