/* SPDX-License-Identifier: MIT */
/* Whether two models of snapshots hold the same, whatever the numbers of their strings, frames and
 * stacks. */
#ifndef TESTS_SUPPORT_SAME_MODEL_H
#define TESTS_SUPPORT_SAME_MODEL_H

#include "snapshot/model.h"
#include "support/test.h"

#include <string.h>

static inline void same_string(const struct tn_model *a, uint32_t x, const struct tn_model *b,
                               uint32_t y)
{
    const struct tn_string left = tn_model_string(a, x);
    const struct tn_string right = tn_model_string(b, y);

    assert_int_equal(x == TN_STRING_NONE, y == TN_STRING_NONE);
    assert_int_equal(left.length, right.length);
    assert_memory_equal(left.text, right.text, left.length);
}

static inline void same_frame(const struct tn_model *a, uint32_t x, const struct tn_model *b,
                              uint32_t y)
{
    const struct tn_frame *left = tn_model_frame(a, x);
    const struct tn_frame *right = tn_model_frame(b, y);

    same_string(a, left->name, b, right->name);
    same_string(a, left->filename, b, right->filename);
    assert_int_equal(left->line, right->line);
    assert_int_equal(left->fx == 0, right->fx == 0);
    if (left->fx != 0) {
        const struct tn_frame_fx *p = tn_chunked_vec_at(&a->fx, left->fx);
        const struct tn_frame_fx *q = tn_chunked_vec_at(&b->fx, right->fx);

        same_string(a, p->node_op, b, q->node_op);
        same_string(a, p->node_name, b, q->node_name);
        same_string(a, p->node_target, b, q->node_target);
        same_string(a, p->original_trace, b, q->original_trace);
    }
}

static inline void same_stack(const struct tn_model *a, uint32_t x, const struct tn_model *b,
                              uint32_t y)
{
    assert_int_equal(x == TN_STACK_NONE, y == TN_STACK_NONE);
    if (x == TN_STACK_NONE) {
        return;
    }
    const struct tn_stack left = tn_model_stack(a, x);
    const struct tn_stack right = tn_model_stack(b, y);

    assert_int_equal(left.count, right.count);
    for (uint32_t i = 0; i < left.count; i++) {
        same_frame(a, left.frames[i], b, right.frames[i]);
    }
}

static inline void same_block(const struct tn_model *a, const struct tn_model_block *x,
                              const struct tn_model *b, const struct tn_model_block *y)
{
    assert_int_equal(x->address, y->address);
    assert_int_equal(x->size, y->size);
    assert_int_equal(x->requested_size, y->requested_size);
    assert_int_equal(x->state, y->state);
    assert_int_equal(x->has_address, y->has_address);
    assert_int_equal(x->has_requested_size, y->has_requested_size);
    same_stack(a, x->stack, b, y->stack);
    assert_int_equal(x->history_count, y->history_count);
    for (uint32_t i = 0; i < x->history_count; i++) {
        assert_int_equal(x->history[i].address, y->history[i].address);
        assert_int_equal(x->history[i].real_size, y->history[i].real_size);
        same_stack(a, x->history[i].stack, b, y->history[i].stack);
    }
}

static inline void same_segments(const struct tn_model *a, const struct tn_model_segment *x,
                                 const struct tn_model *b, const struct tn_model_segment *y,
                                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(x[i].address, y[i].address);
        assert_int_equal(x[i].total_size, y[i].total_size);
        assert_int_equal(x[i].allocated_size, y[i].allocated_size);
        assert_int_equal(x[i].active_size, y[i].active_size);
        assert_int_equal(x[i].requested_size, y[i].requested_size);
        assert_int_equal(x[i].stream, y[i].stream);
        assert_memory_equal(&x[i].pool, &y[i].pool, sizeof x[i].pool);
        assert_int_equal(x[i].device, y[i].device);
        assert_int_equal(x[i].is_large, y[i].is_large);
        assert_int_equal(x[i].is_expandable, y[i].is_expandable);
        same_stack(a, x[i].stack, b, y[i].stack);
        assert_int_equal(x[i].block_count, y[i].block_count);
        for (size_t k = 0; k < x[i].block_count; k++) {
            same_block(a, &x[i].blocks[k], b, &y[i].blocks[k]);
        }
    }
}

static inline void same_entry(const struct tn_model *a, const struct tn_trace_entry *x,
                              const struct tn_model *b, const struct tn_trace_entry *y)
{
    const struct tn_trace_extra *p = tn_model_extra(a, x->extra);
    const struct tn_trace_extra *q = tn_model_extra(b, y->extra);

    assert_int_equal(x->address, y->address);
    assert_int_equal(x->size, y->size);
    assert_int_equal(x->stream, y->stream);
    assert_int_equal(x->time_us, y->time_us);
    assert_int_equal(x->action, y->action);
    same_stack(a, x->stack, b, y->stack);
    same_string(a, p->compile_context, b, q->compile_context);
    same_string(a, p->user_metadata, b, q->user_metadata);
    same_string(a, p->internal_metadata, b, q->internal_metadata);
    same_string(a, p->category, b, q->category);
    same_string(a, p->action_name, b, q->action_name);
    assert_int_equal(p->has_pool, q->has_pool);
    assert_memory_equal(&p->pool, &q->pool, sizeof p->pool);
}

static inline void same_traces(const struct tn_model *a, const struct tn_trace *x,
                               const struct tn_model *b, const struct tn_trace *y, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(x[i].count, y[i].count);
        for (uint64_t k = 0; k < x[i].count; k++) {
            same_entry(a, tn_trace_at(a, &x[i], k), b, tn_trace_at(b, &y[i], k));
        }
    }
}

static inline void same_fields(const struct tn_model *a, const struct tn_field *x,
                               const struct tn_model *b, const struct tn_field *y, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        same_string(a, x[i].key, b, y[i].key);
        assert_int_equal(x[i].kind, y[i].kind);
        if (x[i].kind == TN_FIELD_STRING) {
            same_string(a, x[i].value.string, b, y[i].value.string);
        } else if (x[i].kind == TN_FIELD_BOOL) {
            assert_int_equal(x[i].value.boolean, y[i].value.boolean);
        } else if (x[i].kind != TN_FIELD_NONE) {
            assert_memory_equal(&x[i].value, &y[i].value, sizeof x[i].value);
        }
    }
}

static inline void same_annotations(const struct tn_model *a, const struct tn_model *b)
{
    assert_int_equal(a->annotation_count, b->annotation_count);
    for (size_t i = 0; i < a->annotation_count; i++) {
        const struct tn_annotation *x = &a->annotations[i];
        const struct tn_annotation *y = &b->annotations[i];

        same_string(a, x->stage, b, y->stage);
        same_string(a, x->name, b, y->name);
        assert_int_equal(x->device, y->device);
        assert_int_equal(x->time_us, y->time_us);
        assert_int_equal(x->field_count, y->field_count);
        same_fields(a, x->fields, b, y->fields, x->field_count);
    }
}

static inline void same_settings(const struct tn_model *a, const struct tn_model *b)
{
    const struct tn_model_settings *x = &a->settings;
    const struct tn_model_settings *y = &b->settings;

    assert_int_equal(x->present, y->present);
    same_string(a, x->conf, b, y->conf);
    assert_int_equal(x->max_split_size, y->max_split_size);
    assert_memory_equal(&x->garbage_collection_threshold, &y->garbage_collection_threshold,
                        sizeof x->garbage_collection_threshold);
    assert_int_equal(x->expandable_segments, y->expandable_segments);
    assert_int_equal(x->has_roundup, y->has_roundup);
    assert_memory_equal(x->roundup_power2_divisions, y->roundup_power2_divisions,
                        sizeof x->roundup_power2_divisions);
    assert_int_equal(x->field_count, y->field_count);
    same_fields(a, x->fields, b, y->fields, x->field_count);
}

static inline void same_model(const struct tn_model *a, const struct tn_model *b)
{
    assert_int_equal(a->segment_count, b->segment_count);
    same_segments(a, a->segments, b, b->segments, a->segment_count);
    assert_int_equal(a->trace_count, b->trace_count);
    same_traces(a, a->traces, b, b->traces, a->trace_count);
    assert_int_equal(a->host_segment_count, b->host_segment_count);
    same_segments(a, a->host_segments, b, b->host_segments, a->host_segment_count);
    assert_int_equal(a->host_trace_count, b->host_trace_count);
    same_traces(a, a->host_traces, b, b->host_traces, a->host_trace_count);
    same_annotations(a, b);
    same_settings(a, b);
    assert_int_equal(a->is_list_only, b->is_list_only);
    assert_int_equal(a->is_legacy, b->is_legacy);
    assert_int_equal(a->has_traces, b->has_traces);
    assert_int_equal(a->has_host, b->has_host);
    assert_int_equal(a->has_annotations, b->has_annotations);
}

#endif
