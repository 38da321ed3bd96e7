/* SPDX-License-Identifier: MIT */
/*
 * Names and their ids, which start at 0. Names are never removed. Owns the texts. Guarded by its
 * owner. Cost: a hash of the text.
 */
#ifndef TN_TRACKER_NAME_LIST_H
#define TN_TRACKER_NAME_LIST_H

#include "base/budget.h"
#include "base/id_table.h"
#include "base/vec.h"

struct tn_name_list {
    struct tn_budget budget; /* unlimited: the number of names is bounded */
    struct tn_id_table table;
    struct tn_vec texts; /* of char * */
    uint32_t max;
};

/* The struct must not move until fini: the table points to the budget. */
void tn_name_list_init(struct tn_name_list *list, uint32_t max);
void tn_name_list_fini(struct tn_name_list *list);

/* Finds or adds a name. TARN_ERR_LIMIT when there are `max`, TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_name_list_add(struct tn_name_list *list, const char *text,
                                  uint32_t *id_out) TN_MUST_CHECK;

/* NULL when there is none. */
const char *tn_name_list_text(const struct tn_name_list *list, uint32_t id);

uint32_t tn_name_list_count(const struct tn_name_list *list);

#endif
