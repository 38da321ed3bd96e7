/* SPDX-License-Identifier: MIT */
#include "page/rank_sketches.h"

#include "base/errinfo.h"
#include "base/host_mem.h"
#include "fleet/rank_record.h"

void tn_rank_sketches_init(struct tn_rank_sketches *sketches)
{
    *sketches = (struct tn_rank_sketches){.reader = NULL};
    tn_column_init(&sketches->columns[0]);
    tn_column_init(&sketches->columns[1]);
}

void tn_rank_sketches_fini(struct tn_rank_sketches *sketches)
{
    if (sketches->reader) {
        tn_record_reader_fini(sketches->reader);
        tn_host_free(sketches->reader, sizeof *sketches->reader);
    }
    tn_column_fini(&sketches->columns[1]);
    tn_column_fini(&sketches->columns[0]);
}

static bool reader_make(struct tn_rank_sketches *sketches)
{
    if (!sketches->reader) {
        sketches->reader = tn_host_alloc(sizeof *sketches->reader);
        if (sketches->reader) {
            tn_record_reader_init(sketches->reader);
        }
    }
    return sketches->reader != NULL;
}

static uint64_t size_of(const struct tn_json_value *value)
{
    const int64_t number = tn_json_integer(value);

    return number > 0 ? (uint64_t)number : 0;
}

/* A sketch that is short has zeros at its end. */
static void column_add(struct tn_rank_sketches *sketches, int which,
                       const struct tn_json_value *points)
{
    for (size_t i = 0; i < TN_RANK_POINTS; i++) {
        const uint64_t value = size_of(tn_json_at(points, i));

        tn_column_put_step(&sketches->columns[which], sketches->last[which][i], value);
        sketches->last[which][i] = value;
    }
}

enum tarn_status tn_rank_sketches_add(struct tn_rank_sketches *sketches, const struct tn_line *line,
                                      uint64_t *events_out, struct tarn_error *error)
{
    if (!reader_make(sketches)) {
        return tn_fail_memory(error);
    }
    const enum tarn_status status =
        tn_record_read(sketches->reader, line->text, line->length, error);

    if (status == TARN_OK) {
        const struct tn_json_value *rank = tn_json_get(&sketches->reader->tree.root, "rank");

        *events_out = size_of(tn_json_get(rank, "events"));
        column_add(sketches, 0, tn_json_get(rank, "requested"));
        column_add(sketches, 1, tn_json_get(rank, "reserved"));
    }
    return status;
}
