/* SPDX-License-Identifier: MIT */
/*
 * The pages of a segment under the compact policy, which move between addresses. PyTorch has none,
 * and its tools ignore keys of segments that they do not know:
 *
 *   "tarn_pages": {"page_size": bytes of each page,
 *                  "handles": a number for the physical memory of each page in address order,
 *                             the same one wherever that is mapped,
 *                  "times": how often a page has been mapped at that address}
 *
 * The pages of a segment cover it without gaps, so page i is at its address + i * page_size.
 */
#ifndef TN_SNAPSHOT_PAGE_LIST_H
#define TN_SNAPSHOT_PAGE_LIST_H

#include "snapshot/model.h"

struct tn_page_list {
    uint64_t size; /* of each page; bytes, above 0 */
    uint32_t count;
    const struct tn_field *handles; /* of the model */
    const struct tn_field *times;
};

/* Adds a dict with this key alone, for `rest` of a segment. `handles` and `times` have `count`
 * items, which are copied. TARN_ERR_LIMIT, TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_page_list_add(struct tn_model *model, const struct tn_page_list *pages,
                                  uint32_t *rest_out) TN_MUST_CHECK;

/* The pages of a segment; false if the file has none, or something else under that key. */
bool tn_page_list_find(const struct tn_model *model, const struct tn_model_segment *segment,
                       struct tn_page_list *pages_out);

/* Number of an item of `handles` or `times`; 0 for one below 0. */
uint64_t tn_page_list_number(const struct tn_field *item);

/* The opposite: an item. */
struct tn_field tn_page_list_item(uint64_t number);

#endif
