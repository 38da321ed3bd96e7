/* SPDX-License-Identifier: MIT */
/*
 * Reading what other processes publish of their allocators (tarn/watch.h), as `tarn watch` does.
 *
 * A reader never waits for the process, sends it no signal and takes none of its locks: a process
 * that hangs is read as well as any, with the numbers that it published last. What a page contains
 * is not trusted: whatever it is, the calls below return numbers or fail.
 *
 * A struct tarn_watch may be used by one thread at a time; different ones at the same time.
 */
#ifndef TARN_WATCH_READ_H
#define TARN_WATCH_READ_H

#include "graph_pool.h"
#include "pages.h"
#include "stats.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_watch;

enum {
    TARN_WATCH_NAME_MAX = 64,  /* bytes of a program's name with its NUL */
    TARN_WATCH_WORD_MAX = 16,  /* of a backend's, a policy's and a version's */
    TARN_WATCH_ROWS_MAX = 64,  /* streams and pools of an allocator */
    TARN_WATCH_ALLOCATORS = 16 /* of a process */
};

/* A process that publishes. Texts are as it wrote them: any bytes, with a NUL at the end. */
struct tarn_watch_process {
    uint32_t struct_size; /* in: sizeof(struct tarn_watch_process) */
    int64_t process;
    uint64_t created_ns; /* when it began to publish, in nanoseconds since 1970 */
    bool controlled;     /* it takes requests (tarn/watch_control.h) */
    bool wants_control;  /* it was asked to, and lacks libtarn-tools */
    char program[TARN_WATCH_NAME_MAX];
    char version[TARN_WATCH_WORD_MAX]; /* of its libtarn */
};

/* Visits the processes of this user that publish and are running, in no order, until `visit`
 * returns false. `runtime_folder` is the value of XDG_RUNTIME_DIR, NULL where it is not set. Pages
 * of processes that have ended are removed, files that are no pages skipped. That there is no
 * folder is no failure. TARN_ERR_UNSAFE when the folder is somebody else's or open to others,
 * TARN_ERR_IO when it cannot be read. */
TARN_API enum tarn_status tarn_watch_list(const char *runtime_folder,
                                          bool (*visit)(void *context,
                                                        const struct tarn_watch_process *process),
                                          void *context, struct tarn_error *error) TARN_MUST_CHECK;

/* As tarn_watch_list, and reports the pages of running processes that cannot be read, such as those
 * of another version: `refuse` gets the number of the process and why. */
TARN_API enum tarn_status
tarn_watch_list_all(const char *runtime_folder,
                    bool (*visit)(void *context, const struct tarn_watch_process *process),
                    void (*refuse)(void *context, int64_t process, const struct tarn_error *reason),
                    void *context, struct tarn_error *error) TARN_MUST_CHECK;

/* Opens the page of a process. Caller owns *watch_out, close with tarn_watch_close.
 * TARN_ERR_NOT_FOUND when the process publishes nothing or has ended, TARN_ERR_FORMAT for a page of
 * another version, or that is none, TARN_ERR_UNSAFE and TARN_ERR_IO as above,
 * TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_watch_open(const char *runtime_folder, int64_t process,
                                          struct tarn_watch **watch_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_watch_close(struct tarn_watch *watch);

/* What process it is. Fields beyond struct_size are not written. */
TARN_API void tarn_watch_get_process(const struct tarn_watch *watch,
                                     struct tarn_watch_process *process_out);

/* Whether the process still runs. */
TARN_API bool tarn_watch_is_alive(const struct tarn_watch *watch);

/* Asks the process for new numbers and waits for them, at most `timeout_ms` milliseconds. False if
 * they did not come: what was published last can be read all the same. */
TARN_API bool tarn_watch_ask(struct tarn_watch *watch, uint32_t timeout_ms);

/* A stream in a pool: sums over its segments. In bytes. */
struct tarn_watch_row {
    struct tarn_pool_id pool; /* {0, 0}: the default pools */
    tarn_stream stream;
    bool is_large;
    uint64_t segments;
    uint64_t reserved;
    uint64_t allocated;
    uint64_t active;
    uint64_t requested;    /* of active blocks */
    uint64_t largest_free; /* block */
};

/* The last request that failed, as struct tarn_oom. */
struct tarn_watch_oom {
    uint64_t time_ns; /* since 1970; 0 = none has */
    uint64_t requested;
    uint64_t rounded;
    uint64_t segment_size;
    tarn_stream stream;
    uint64_t limit; /* TARN_SIZE_UNLIMITED = none */
    uint64_t device_free;
    uint64_t device_total;
    uint64_t allocated;
    uint64_t reserved;
    uint64_t private_free;
    bool rejected;
};

/* One allocator: all numbers of one moment, but the rows, which are counted less often. */
struct tarn_watch_record {
    uint32_t struct_size; /* in: sizeof(struct tarn_watch_record) */
    bool closed;          /* the allocator was destroyed: these numbers are its last */
    uint64_t time_ns;     /* of the numbers, since 1970 */
    uint64_t missed;      /* how often since then its lock was held for too long to look */
    int device;           /* number */
    char backend[TARN_WATCH_WORD_MAX];
    char policy[TARN_WATCH_WORD_MAX];
    uint64_t limit;          /* bytes that may be reserved; TARN_SIZE_UNLIMITED = no limit */
    uint64_t device_total;   /* bytes, as the following */
    uint64_t device_free;    /* of all processes: when this was read where NVML is there (not of a
                              part of a GPU), else when the allocator last asked the driver */
    uint64_t device_time_ns; /* when that was, since 1970 */
    struct tarn_stats stats; /* max_split_size and the oversize counters are not published */
    struct tarn_page_stats pages; /* all zero but under the compact policy; without by_time */
    struct tarn_watch_oom oom;
    uint64_t rows_time_ns;  /* when the rows were counted; 0 = never: there are too many blocks */
    uint64_t rows_left_out; /* segments of streams and pools for which there is no row */
    uint32_t row_count;
    struct tarn_watch_row rows[TARN_WATCH_ROWS_MAX];
};

/* Reads what is published of allocator `index`, below TARN_WATCH_ALLOCATORS. Fields beyond
 * struct_size are not written. TARN_ERR_NOT_FOUND when there is no such allocator,
 * TARN_ERR_TRUNCATED when the page ends early, TARN_ERR_NOT_READY when it changed whenever it was
 * looked at, which no honest process does for long. */
TARN_API enum tarn_status tarn_watch_read(struct tarn_watch *watch, uint32_t index,
                                          struct tarn_watch_record *record_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
