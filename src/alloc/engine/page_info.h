/* SPDX-License-Identifier: MIT */
/* A page of the compact policy, as a look at an allocator shows it. */
#ifndef TN_ALLOC_ENGINE_PAGE_INFO_H
#define TN_ALLOC_ENGINE_PAGE_INFO_H

#include <stdbool.h>
#include <stdint.h>

struct tn_page_info {
    uint64_t address;
    uint64_t size;
    uint64_t handle; /* of the physical memory; the same one wherever it is mapped */
    uint32_t times;  /* how often a page was mapped at the address: more than once = pages moved */
};

/* Called with the allocator's lock held; false ends the visit. */
typedef bool (*tn_page_visitor)(void *context, const struct tn_page_info *page);

#endif
