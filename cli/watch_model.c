/* SPDX-License-Identifier: MIT */
#include "watch_model.h"

#include <stdlib.h>
#include <string.h>

const char *const cli_watch_orders[] = {"reserved", "allocated", "rate", "pid", NULL};

enum {
    ANSWER_MS = 100,  /* that a process is waited for */
    SILENT_MS = 5,    /* if it did not answer the last time */
    DIGITS_OF_PID = 9 /* fit into an int */
};

uint64_t cli_watch_number(int64_t number)
{
    return number > 0 ? (uint64_t)number : 0;
}

const struct tarn_stat *cli_watch_stat(const struct tarn_watch_record *record,
                                       enum tarn_stat_kind kind)
{
    return &record->stats.by_pool[kind][TARN_STAT_ALL];
}

uint64_t cli_watch_ooms(const struct tarn_watch_record *record)
{
    return cli_watch_number(record->stats.num_ooms) +
           cli_watch_number(record->stats.num_oom_rejections);
}

uint64_t cli_watch_cached(uint64_t reserved, uint64_t allocated)
{
    return reserved > allocated ? reserved - allocated : 0;
}

/* ---- processes ---- */

static void process_destroy(struct cli_watch_process *process)
{
    tarn_watch_close(process->watch);
    free(process->records);
    free(process);
}

/* NULL with the status in *status_out. */
static struct cli_watch_process *process_create(const char *runtime, int64_t number,
                                                enum tarn_status *status_out,
                                                struct tarn_error *error)
{
    struct cli_watch_process *process = calloc(1, sizeof *process);
    struct tarn_watch_record *records = calloc(TARN_WATCH_ALLOCATORS, sizeof *records);

    if (!process || !records) {
        free(process);
        free(records);
        *status_out = TARN_ERR_HOST_MEMORY;
        return NULL;
    }
    process->records = records;
    process->answers = true;
    *status_out = tarn_watch_open(runtime, number, &process->watch, error);
    if (*status_out) {
        process_destroy(process);
        return NULL;
    }
    process->head.struct_size = sizeof process->head;
    tarn_watch_get_process(process->watch, &process->head);
    return process;
}

static void process_sum(struct cli_watch_process *process)
{
    process->allocated = process->peak = process->reserved = 0;
    process->allocs = process->frees = process->ooms = 0;
    process->time_ns = 0;
    for (uint32_t i = 0; i < process->count; i++) {
        const struct tarn_watch_record *record = &process->records[i];
        const struct tarn_stat *blocks = cli_watch_stat(record, TARN_STAT_ALLOCATION);
        const struct tarn_stat *bytes = cli_watch_stat(record, TARN_STAT_ALLOCATED_BYTES);

        process->allocated += cli_watch_number(bytes->current);
        process->peak += cli_watch_number(bytes->peak);
        process->reserved +=
            cli_watch_number(cli_watch_stat(record, TARN_STAT_RESERVED_BYTES)->current);
        process->allocs += cli_watch_number(blocks->allocated);
        process->frees += cli_watch_number(blocks->freed);
        process->ooms += cli_watch_ooms(record);
        if (process->time_ns == 0 || record->time_ns < process->time_ns) {
            process->time_ns = record->time_ns;
        }
    }
}

static void process_add_sample(struct cli_watch_process *process)
{
    if (process->sample_count == CLI_WATCH_SAMPLES) {
        memmove(process->samples, process->samples + 1,
                (CLI_WATCH_SAMPLES - 1) * sizeof *process->samples);
        process->sample_count--;
    }
    process->samples[process->sample_count++] = process->reserved;
}

static double rate_of(uint64_t before, uint64_t now, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

/* Reads what is published of every allocator that lives. */
static void process_read(struct cli_watch_process *process)
{
    process->count = 0;
    process->unreadable = false;
    for (uint32_t i = 0; i < TARN_WATCH_ALLOCATORS; i++) {
        struct tarn_watch_record *record = &process->records[process->count];

        record->struct_size = sizeof *record;
        const enum tarn_status status = tarn_watch_read(process->watch, i, record, NULL);

        if (status == TARN_OK && !record->closed) {
            process->slots[process->count++] = i;
        }
        process->unreadable |= status != TARN_OK && status != TARN_ERR_NOT_FOUND;
    }
}

static void process_refresh(struct cli_watch_process *process)
{
    const uint64_t time_before = process->time_ns;
    const uint64_t allocs_before = process->allocs;
    const uint64_t frees_before = process->frees;

    process->ended = !tarn_watch_is_alive(process->watch);
    process->answers =
        !process->ended && tarn_watch_ask(process->watch, process->answers ? ANSWER_MS : SILENT_MS);
    process_read(process);
    process_sum(process);
    if (time_before > 0 && process->time_ns > time_before) {
        const double seconds = (double)(process->time_ns - time_before) / 1e9;

        process->alloc_rate = rate_of(allocs_before, process->allocs, seconds);
        process->free_rate = rate_of(frees_before, process->frees, seconds);
    } else {
        process->alloc_rate = process->free_rate = 0;
    }
    process_add_sample(process);
}

/* ---- all of them ---- */

static struct cli_watch_process *watch_find(const struct cli_watch *watch, int64_t number)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->processes[i]->head.process == number && !watch->processes[i]->ended) {
            return watch->processes[i];
        }
    }
    return NULL;
}

static bool target_is_all(const char *target)
{
    return !target || strcmp(target, "all") == 0;
}

/* The process that the target names by its number; 0 if it does not. */
static int64_t target_process(const char *target)
{
    const size_t length = target ? strlen(target) : 0;

    return length > 0 && length <= DIGITS_OF_PID && strspn(target, "0123456789") == length
               ? strtoll(target, NULL, 10)
               : 0;
}

static enum tarn_status watch_add(struct cli_watch *watch, int64_t number, struct tarn_error *error)
{
    enum tarn_status status = TARN_OK;

    if (watch->count == CLI_WATCH_PROCESSES_MAX) {
        watch->left_out++;
        return TARN_OK;
    }
    struct cli_watch_process *process = process_create(watch->runtime, number, &status, error);

    if (process) {
        watch->processes[watch->count++] = process;
    }
    return status;
}

static bool visit_process(void *context, const struct tarn_watch_process *process)
{
    struct cli_watch *watch = context;

    if ((target_is_all(watch->target) || strstr(process->program, watch->target)) &&
        !watch_find(watch, process->process)) {
        const enum tarn_status status = watch_add(watch, process->process, NULL);

        watch->unreadable += status != TARN_OK && status != TARN_ERR_NOT_FOUND; /* it has ended */
    }
    return true;
}

static void refuse_process(void *context, int64_t process, const struct tarn_error *reason)
{
    struct cli_watch *watch = context;

    (void)process;
    (void)reason;
    watch->unreadable++;
}

static void watch_drop_ended(struct cli_watch *watch)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < watch->count; i++) {
        if (watch->processes[i]->ended) {
            process_destroy(watch->processes[i]);
        } else {
            watch->processes[kept++] = watch->processes[i];
        }
    }
    watch->count = kept;
}

static int compare_numbers(double a, double b)
{
    return (b > a) - (b < a);
}

static int compare(const struct cli_watch_process *a, const struct cli_watch_process *b,
                   enum cli_watch_order order)
{
    int by = 0;

    switch (order) {
    case CLI_WATCH_BY_RESERVED:
        by = compare_numbers((double)a->reserved, (double)b->reserved);
        break;
    case CLI_WATCH_BY_ALLOCATED:
        by = compare_numbers((double)a->allocated, (double)b->allocated);
        break;
    case CLI_WATCH_BY_RATE:
        by = compare_numbers(a->alloc_rate, b->alloc_rate);
        break;
    case CLI_WATCH_BY_PID:
        break;
    }
    return by ? by : (a->head.process > b->head.process) - (a->head.process < b->head.process);
}

/* There are few, and they are nearly in order. */
static void watch_sort(struct cli_watch *watch)
{
    for (uint32_t i = 1; i < watch->count; i++) {
        struct cli_watch_process *process = watch->processes[i];
        uint32_t at = i;

        while (at > 0 && compare(watch->processes[at - 1], process, watch->order) > 0) {
            watch->processes[at] = watch->processes[at - 1];
            at--;
        }
        watch->processes[at] = process;
    }
}

enum tarn_status cli_watch_refresh(struct cli_watch *watch, struct tarn_error *error)
{
    const int64_t number = target_process(watch->target);
    enum tarn_status status = TARN_OK;

    if (number == 0) {
        watch_drop_ended(watch);
        watch->left_out = watch->unreadable = 0;
        status = tarn_watch_list_all(watch->runtime, visit_process, refuse_process, watch, error);
    } else if (watch->count == 0) {
        status = watch_add(watch, number, error);
    }
    for (uint32_t i = 0; i < watch->count; i++) {
        process_refresh(watch->processes[i]);
    }
    watch_sort(watch);
    return status;
}

void cli_watch_fini(struct cli_watch *watch)
{
    for (uint32_t i = 0; i < watch->count; i++) {
        process_destroy(watch->processes[i]);
    }
    watch->count = 0;
}
