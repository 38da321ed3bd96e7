/* SPDX-License-Identifier: MIT */
/*
 * What `tarn watch` knows: the processes that publish counters, their allocators, and how both
 * changed since it began to look. No text, no screen. Numbers come from other processes: sums wrap
 * around rather than overflow.
 */
#ifndef CLI_WATCH_MODEL_H
#define CLI_WATCH_MODEL_H

#include "tarn/watch_read.h"

enum {
    CLI_WATCH_PROCESSES_MAX = 64,
    CLI_WATCH_SAMPLES = 120, /* kept for the timeline */
    CLI_WATCH_FILTER_MAX = 40
};

struct cli_watch_process {
    struct tarn_watch *watch;
    struct tarn_watch_process head;
    bool answers; /* the last time that it was asked */
    bool ended;
    bool unreadable;                   /* the page does not hold what it should */
    uint32_t count;                    /* of records */
    struct tarn_watch_record *records; /* TARN_WATCH_ALLOCATORS; those of closed allocators are left
                                          out */
    uint32_t slots[TARN_WATCH_ALLOCATORS]; /* of each record: the allocator's index in the page */
    uint64_t time_ns;                      /* of the oldest record, since 1970 */
    uint64_t allocated;                    /* bytes of all allocators, as the following */
    uint64_t peak;                         /* sum of the allocators' peaks */
    uint64_t reserved;
    uint64_t allocs; /* since the start */
    uint64_t frees;
    uint64_t ooms;
    double alloc_rate; /* per second, between the last two looks; 0 at first */
    double free_rate;
    uint64_t samples[CLI_WATCH_SAMPLES]; /* reserved bytes, oldest first */
    uint32_t sample_count;
};

enum cli_watch_order {
    CLI_WATCH_BY_RESERVED,
    CLI_WATCH_BY_ALLOCATED,
    CLI_WATCH_BY_RATE,
    CLI_WATCH_BY_PID
};
extern const char *const cli_watch_orders[];

struct cli_watch {
    const char *runtime; /* value of XDG_RUNTIME_DIR, or NULL */
    const char *target;  /* a process, a part of a program's name, "all"; NULL = all */
    enum cli_watch_order order;
    char filter[CLI_WATCH_FILTER_MAX]; /* part of the program's name; "" = all */
    struct cli_watch_process *processes[CLI_WATCH_PROCESSES_MAX];
    uint32_t count;
    uint32_t left_out;   /* for which there was no room */
    uint32_t unreadable; /* whose pages cannot be opened */
};

/* Finds processes, asks each and reads its numbers. Processes that have ended stay for one more
 * look, as `ended`. Errors are those of tarn_watch_list and, for one process, tarn_watch_open. */
enum tarn_status cli_watch_refresh(struct cli_watch *watch, struct tarn_error *error);

void cli_watch_fini(struct cli_watch *watch);

/* A counter as an unsigned number: 0 where the page says something negative. */
uint64_t cli_watch_number(int64_t number);

/* Of one allocator. */
const struct tarn_stat *cli_watch_stat(const struct tarn_watch_record *record,
                                       enum tarn_stat_kind kind);

/* Of one allocator: requests that failed, whoever refused them. */
uint64_t cli_watch_ooms(const struct tarn_watch_record *record);

/* Reserved memory that is not allocated; 0 if the numbers contradict each other. */
uint64_t cli_watch_cached(uint64_t reserved, uint64_t allocated);

#endif
