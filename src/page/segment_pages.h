/* SPDX-License-Identifier: MIT */
/*
 * The pages of segments under the compact policy (snapshot/page_list.h) as numbers of the page: for
 * each segment that has some
 *
 *   step of its address from the segment before, in units from the lowest address
 *   count of pages, bytes of each
 *   step of each page's handle from the one before, modulo 2^64
 *   times each page's address was mapped
 *
 * A segment lists as many pages as fit into it, whatever the file says. Cost: O(pages).
 */
#ifndef TN_PAGE_SEGMENT_PAGES_H
#define TN_PAGE_SEGMENT_PAGES_H

#include "analysis/trace_source.h"
#include "page/column.h"

/* Adds those of a source, whose addresses are `base` and above and multiples of `unit` from there;
 * the number of pages. */
uint64_t tn_segment_pages_put(struct tn_column *column, const struct tn_trace_source *source,
                              uint64_t base, uint64_t unit);

#endif
