/* SPDX-License-Identifier: MIT */
/*
 * The work of a few streams on a virtual clock, slowly: every piece of work is kept, with the time
 * of its end as soon as that is known. It says which freed memory other streams may not yet have.
 *
 * Work is one of three: it takes some time, or ends when the test unblocks its stream, or ends with
 * what another stream had queued. It begins when the work before it on its stream has ended, not
 * before it was queued.
 */
#ifndef TESTS_PROPERTY_STREAM_CLOCK_H
#define TESTS_PROPERTY_STREAM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CLOCK_STREAMS = 4,             /* handles 0, 1, 2 and 3 */
    CLOCK_JOINING = CLOCK_STREAMS, /* one more, which only waits for others */
    CLOCK_ALL,
    CLOCK_WORKS = 1024,
    CLOCK_RANGES = 1024,
    CLOCK_NOBODY = CLOCK_ALL /* no stream may have the memory earlier than others */
};

struct clock_work {
    bool blocks;    /* until it is unblocked */
    bool unblocked; /* at `from` */
    unsigned other; /* the stream that it waits for, CLOCK_NOBODY: none */
    unsigned until; /* so many works of that stream */
    uint64_t from;  /* when it was queued */
    uint64_t ns;
    uint64_t end; /* of the first `known` works of the stream */
};

struct clock_stream {
    struct clock_work works[CLOCK_WORKS];
    unsigned count;
    unsigned known;
};

/* Freed memory: what each stream had queued then. */
struct clock_range {
    uint64_t start;
    uint64_t size;
    unsigned owner; /* has it at once */
    unsigned after[CLOCK_STREAMS];
};

struct stream_clock {
    uint64_t now;
    struct clock_stream streams[CLOCK_ALL];
    struct clock_range ranges[CLOCK_RANGES]; /* that somebody may still use */
    unsigned range_count;
};

void clock_work_add(struct stream_clock *clock, unsigned stream, uint64_t ns);
void clock_block(struct stream_clock *clock, unsigned stream);

/* Whether there was anything to unblock. */
bool clock_unblock(struct stream_clock *clock, unsigned stream);

/* Later work of `stream` waits for what `other` has queued. */
void clock_join(struct stream_clock *clock, unsigned stream, unsigned other);

void clock_advance(struct stream_clock *clock, uint64_t ns);

/* Everybody was waited for, until `now`. */
void clock_all_done(struct stream_clock *clock, uint64_t now);

/* Memory was freed behind what is now queued on the streams whose bits are set. */
void clock_free(struct stream_clock *clock, uint64_t start, uint64_t size, unsigned owner,
                unsigned streams);

/* Whether work that was queued before the memory was freed may still use it while `stream` does. */
bool clock_is_used(const struct stream_clock *clock, uint64_t start, uint64_t size,
                   unsigned stream);

#endif
