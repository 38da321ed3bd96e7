/* SPDX-License-Identifier: MIT */
#include "replay/verify_run.h"

#include "base/escaped.h"
#include "base/host_mem.h"
#include "tarn/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the run ---- */

static void receive_event(void *context, const struct tarn_trace_event *event)
{
    struct tn_verify_run *run = context;

    if (!tn_vec_add(&run->events, event)) {
        run->no_host_memory = true;
        return;
    }
    tn_verify_device_refuse(run);
}

static enum tarn_status run_open_device(struct tn_verify_run *run,
                                        const struct tarn_verify_options *given,
                                        struct tarn_error *error)
{
    const struct tarn_sim_options options = {
        .struct_size = sizeof options,
        .capacity = run->log.device_total,
        .manual_events = !run->log.settled,
        .memory = given ? given->memory : NULL,
    };
    const enum tarn_status st = tarn_sim_open(&options, &run->device, error);

    if (st != TARN_OK) {
        return st;
    }
    tn_verify_device_attach(run);
    return options.memory ? tn_verify_contents_open(run, error) : TARN_OK;
}

enum tarn_status tn_verify_open(struct tn_verify_run *run, const char *path,
                                const struct tarn_verify_options *options, struct tarn_error *error)
{
    const struct tarn_sink sink = {
        .context = run, .level = TARN_CONTEXT_NEVER, .receive = receive_event};
    struct tarn_config config;
    enum tarn_status st;

    memset(run, 0, sizeof *run);
    tn_vec_init(&run->ids, sizeof(struct tn_verify_block));
    tn_vec_init(&run->events, sizeof(struct tarn_trace_event));
    tn_vec_init(&run->completions, sizeof(struct tn_completion));
    st = tn_decision_log_open(&run->log, path, error);
    if (st) {
        return st;
    }
    st = tn_verify_read_ahead(run, path, error);
    st = st ? st : tarn_config_parse(run->log.conf, &config, error);
    st = st ? st : run_open_device(run, options, error);
    st = st ? st : tn_allocator_create_own(run->device, &config, &run->allocator, error);
    st = st ? st : tarn_allocator_add_sink(run->allocator, &sink, error);
    if (st) {
        tn_verify_close(run);
    }
    return st;
}

void tn_verify_close(struct tn_verify_run *run)
{
    for (uint32_t i = 0; i < run->pool_count; i++) {
        tarn_checkpoint_destroy(run->pools[i].checkpoint);
    }
    tarn_allocator_destroy(run->allocator);
    tarn_device_close(run->device);
    tn_verify_contents_close(run);
    tn_map_fini(&run->id_indices);
    tn_vec_fini(&run->ids);
    tn_vec_fini(&run->events);
    tn_vec_fini(&run->completions);
    tn_decision_log_close(&run->log);
}

struct tn_verify_block *tn_verify_block(const struct tn_verify_run *run, uint64_t id)
{
    const uint64_t *index = tn_map_find(&run->id_indices, id + 1);

    return index ? (struct tn_verify_block *)run->ids.items + *index : NULL;
}

tarn_ptr tn_verify_ptr(const struct tn_verify_run *run, uint64_t id)
{
    const struct tn_verify_block *block = tn_verify_block(run, id);

    return block ? block->ptr : 0;
}

enum tarn_status tn_verify_set_ptr(struct tn_verify_run *run, uint64_t id, tarn_ptr ptr,
                                   struct tarn_error *error)
{
    struct tn_verify_block *known = tn_verify_block(run, id);

    if (known) {
        *known = (struct tn_verify_block){.ptr = ptr};
        return TARN_OK;
    }
    if (id > INT64_MAX) {
        return tn_fail_at(error, TARN_ERR_FORMAT, (int64_t)run->call.line,
                          "line %llu of the decision log: id %lld is not a number from 0 on",
                          (unsigned long long)run->call.line, (long long)id);
    }
    if (!tn_map_reserve(&run->id_indices, 1) ||
        !tn_vec_add(&run->ids, &(struct tn_verify_block){.ptr = ptr})) {
        return tn_fail_memory(error);
    }
    tn_map_insert(&run->id_indices, id + 1, run->ids.count - 1);
    return TARN_OK;
}

struct tn_verify_pool *tn_verify_pool(struct tn_verify_run *run, struct tarn_pool_id id)
{
    for (uint32_t i = 0; i < run->pool_count; i++) {
        if (run->pools[i].id.first == id.first && run->pools[i].id.second == id.second) {
            return &run->pools[i];
        }
    }
    if (run->pool_count == TN_VERIFY_POOLS_MAX) {
        return NULL;
    }
    run->pools[run->pool_count] = (struct tn_verify_pool){.id = id, .device = run->device};
    return &run->pools[run->pool_count++];
}

void tn_verify_differs(struct tn_verify_run *run, const char *format, ...)
{
    char line[sizeof run->text];
    va_list args;

    run->differs = true;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (sizeof run->text - run->text_used > TN_ESCAPED_MAX) {
        (void)tn_escaped_copy(line, strlen(line), TN_ESCAPED_PLAIN, run->text + run->text_used,
                              sizeof run->text - run->text_used - 1);
        run->text_used += strlen(run->text + run->text_used);
        run->text[run->text_used++] = '\n';
        run->text[run->text_used] = '\0';
    }
}
