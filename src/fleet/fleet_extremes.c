/* SPDX-License-Identifier: MIT */
/*
 * The ranks whose traces stand for a fleet when settings are chosen: those at the ends of what
 * settings change, the typical one, and the largest of each group of like ranks. Ties go to the
 * rank that comes first, so equal fleets have equal extremes.
 */
#include "fleet/fleet_rows.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/order.h"

#include <string.h>

/* What is the same for all of them, and how many were found. */
struct choosing {
    struct tarn_fleet *fleet;
    const struct tn_fleet_member *members;
    size_t count; /* of members */
    struct tarn_fleet_extreme *extremes;
    size_t capacity;
    size_t found;
    bool is_short; /* of host memory */
};

/* The greater, the more extreme; 0: not at all. */
typedef uint64_t extreme_of(const struct tn_fleet_member *member);

static uint64_t requested_of(const struct tn_fleet_member *member)
{
    return member->requested;
}

static uint64_t reserved_of(const struct tn_fleet_member *member)
{
    return member->reserved_peak;
}

static uint64_t lost_of(const struct tn_fleet_member *member)
{
    return member->reserved_peak > member->requested ? member->reserved_peak - member->requested
                                                     : 0;
}

static uint64_t ooms_of(const struct tn_fleet_member *member)
{
    return member->ooms;
}

/* Adds a rank unless it is there already; then its first reason stays. */
static void member_choose(struct choosing *choosing, const struct tn_fleet_member *member,
                          const char *why)
{
    for (size_t i = 0; i < choosing->found; i++) {
        if (choosing->extremes[i].device == member->device &&
            strcmp(choosing->extremes[i].file, member->file) == 0) {
            return;
        }
    }
    if (choosing->found == choosing->capacity || choosing->is_short) {
        return;
    }
    const char *file =
        tn_arena_copy_text(&choosing->fleet->arena, member->file, strlen(member->file));

    choosing->is_short = file == NULL;
    if (file) {
        choosing->extremes[choosing->found++] =
            (struct tarn_fleet_extreme){.file = file, .device = member->device, .why = why};
    }
}

static void most_choose(struct choosing *choosing, extreme_of *of, const char *why)
{
    const struct tn_fleet_member *most = NULL;

    for (size_t i = 0; i < choosing->count; i++) {
        const struct tn_fleet_member *member = &choosing->members[i];

        if (of(member) > (most ? of(most) : 0)) {
            most = member;
        }
    }
    if (most) {
        member_choose(choosing, most, why);
    }
}

/* The one that the report compares the others with. */
static void typical_choose(struct choosing *choosing, const struct tn_rank *typical)
{
    for (size_t i = 0; i < choosing->count; i++) {
        const struct tn_fleet_member *member = &choosing->members[i];

        if (member->device == typical->device && strcmp(member->file, typical->file) == 0) {
            member_choose(choosing, member, "nearest to the median");
        }
    }
}

/* Groups by number of ranks, the largest first. */
static int group_compare(const void *left, const void *right)
{
    const struct tn_group_row *const *a = left;
    const struct tn_group_row *const *b = right;
    const int order = tn_order((*b)->ranks, (*a)->ranks);

    return order ? order : (*a > *b) - (*a < *b);
}

static void group_choose(struct choosing *choosing, size_t group)
{
    const struct tn_fleet_member *most = NULL;

    for (size_t i = 0; i < choosing->count; i++) {
        const struct tn_fleet_member *member = &choosing->members[i];

        if (member->group == group && (!most || member->reserved_peak > most->reserved_peak)) {
            most = member;
        }
    }
    if (tn_always(most)) { /* a group has a rank */
        member_choose(choosing, most, "most reserved of its group of like ranks");
    }
}

static bool groups_choose(struct choosing *choosing, const struct tn_vec *groups)
{
    const struct tn_group_row *rows = groups->items;
    struct tn_vec sorted; /* const struct tn_group_row * */
    bool good = true;

    tn_vec_init(&sorted, sizeof(const struct tn_group_row *));
    for (size_t i = 0; good && i < groups->count; i++) {
        const struct tn_group_row *row = &rows[i];

        good = tn_vec_append(&sorted, &row, 1);
    }
    tn_vec_sort(&sorted, group_compare);
    for (size_t i = 0; good && i < sorted.count && choosing->found < choosing->capacity; i++) {
        const struct tn_group_row *const *row = sorted.items;

        group_choose(choosing, (size_t)(row[i] - rows));
    }
    tn_vec_fini(&sorted);
    return good;
}

static enum tarn_status extremes_choose(struct choosing *choosing, const struct tn_fleet_rows *rows,
                                        struct tarn_error *error)
{
    most_choose(choosing, requested_of, "most requested");
    most_choose(choosing, reserved_of, "most reserved");
    most_choose(choosing, lost_of, "most reserved beyond what is requested");
    most_choose(choosing, ooms_of, "most failed requests");
    typical_choose(choosing, &rows->result->typical);
    return groups_choose(choosing, &rows->groups) && !choosing->is_short ? TARN_OK
                                                                         : tn_fail_memory(error);
}

enum tarn_status tarn_fleet_find_extremes(struct tarn_fleet *fleet,
                                          struct tarn_fleet_extreme *extremes, size_t capacity,
                                          size_t *count_out, struct tarn_error *error)
{
    struct tn_fleet_rows rows;
    enum tarn_status status = tn_fleet_rows_make(&rows, fleet, NULL, NULL, error);
    struct choosing choosing = {.fleet = fleet,
                                .members = rows.members.items,
                                .count = rows.members.count,
                                .extremes = extremes,
                                .capacity = capacity};

    status = status ? status : extremes_choose(&choosing, &rows, error);
    *count_out = status ? 0 : choosing.found;
    tn_fleet_rows_fini(&rows);
    return status;
}
