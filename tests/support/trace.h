/* SPDX-License-Identifier: MIT */
/* Snapshots made of arrays: the final segments and one trace, or two, as a model. */
#ifndef TESTS_SUPPORT_TRACE_H
#define TESTS_SUPPORT_TRACE_H

#include "snapshot/model.h"
#include "support/test.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define A   ((uint64_t)0x7f0000000000) /* where segments begin */

struct trace_model {
    struct tn_model model;
    struct tn_trace traces[2];
};

/* One row of a trace. */
struct trace_row {
    enum tn_trace_action action;
    uint64_t address;
    uint64_t size;
    uint64_t stream;
};

/* Borrows the segments until closed. The trace is device 0's. */
static inline void trace_open(struct trace_model *made, const struct trace_row *rows, size_t count,
                              const struct tn_model_segment *segments, size_t segment_count)
{
    assert_int_equal(tn_model_init(&made->model, 0), TARN_OK);
    for (size_t i = 0; i < count; i++) {
        const struct tn_trace_entry entry = {
            .address = rows[i].address,
            .size = rows[i].size,
            .stream = rows[i].stream,
            .time_us = TN_TIME_NONE,
            .action = rows[i].action,
        };
        uint64_t number;

        assert_int_equal(tn_model_add_entry(&made->model, &entry, &number), TARN_OK);
        assert_int_equal(number, i);
    }
    made->traces[0] = (struct tn_trace){.first = 0, .count = count};
    made->traces[1] = (struct tn_trace){.first = count, .count = 0};
    made->model.traces = made->traces;
    made->model.trace_count = 2;
    made->model.segments = segments;
    made->model.segment_count = segment_count;
}

static inline void trace_close(struct trace_model *made)
{
    tn_model_fini(&made->model);
}

#endif
