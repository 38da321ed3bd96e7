/* SPDX-License-Identifier: MIT */
#include "property/stream_clock.h"

#include "support/test.h"

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether the end of the stream's next work is known; then stores it. */
static bool next_end(const struct stream_clock *clock, const struct clock_stream *stream,
                     uint64_t *end_out)
{
    const struct clock_work *work = &stream->works[stream->known];
    uint64_t end = stream->known > 0 ? work[-1].end : 0;

    if (work->blocks && !work->unblocked) {
        return false;
    }
    if (work->other == CLOCK_NOBODY) {
        *end_out = later_of(end, work->from) + work->ns;
        return true;
    }
    const struct clock_stream *other = &clock->streams[work->other];

    if (work->until > other->known) {
        return false;
    }
    *end_out = work->until > 0 ? later_of(end, other->works[work->until - 1].end) : end;
    return true;
}

static bool range_is_used(const struct stream_clock *clock, const struct clock_range *range)
{
    for (unsigned i = 0; i < CLOCK_STREAMS; i++) {
        const struct clock_stream *stream = &clock->streams[i];
        const unsigned after = range->after[i];

        if (after > stream->known || (after > 0 && stream->works[after - 1].end > clock->now)) {
            return true;
        }
    }
    return false;
}

/* Finds out what can be known, until nothing more can, and forgets what nobody uses any more. */
static void settle(struct stream_clock *clock)
{
    unsigned kept = 0;

    for (bool progress = true; progress;) {
        progress = false;
        for (unsigned i = 0; i < CLOCK_ALL; i++) {
            struct clock_stream *stream = &clock->streams[i];

            while (stream->known < stream->count &&
                   next_end(clock, stream, &stream->works[stream->known].end)) {
                stream->known++;
                progress = true;
            }
        }
    }
    for (unsigned i = 0; i < clock->range_count; i++) {
        if (range_is_used(clock, &clock->ranges[i])) {
            clock->ranges[kept++] = clock->ranges[i];
        }
    }
    clock->range_count = kept;
}

static void add(struct stream_clock *clock, unsigned stream, struct clock_work work)
{
    struct clock_stream *to = &clock->streams[stream];

    assert_true(to->count < CLOCK_WORKS);
    work.from = clock->now;
    to->works[to->count++] = work;
    settle(clock);
}

void clock_work_add(struct stream_clock *clock, unsigned stream, uint64_t ns)
{
    add(clock, stream, (struct clock_work){.other = CLOCK_NOBODY, .ns = ns});
}

void clock_block(struct stream_clock *clock, unsigned stream)
{
    add(clock, stream, (struct clock_work){.other = CLOCK_NOBODY, .blocks = true});
}

bool clock_unblock(struct stream_clock *clock, unsigned stream)
{
    struct clock_stream *of = &clock->streams[stream];

    for (unsigned i = of->known; i < of->count; i++) {
        if (of->works[i].blocks && !of->works[i].unblocked) {
            of->works[i].unblocked = true;
            of->works[i].from = clock->now;
            settle(clock);
            return true;
        }
    }
    return false;
}

void clock_join(struct stream_clock *clock, unsigned stream, unsigned other)
{
    const unsigned until = clock->streams[other].count;

    if (stream != other) {
        add(clock, stream, (struct clock_work){.other = other, .until = until});
    }
}

void clock_advance(struct stream_clock *clock, uint64_t ns)
{
    clock->now += ns;
    settle(clock);
}

void clock_all_done(struct stream_clock *clock, uint64_t now)
{
    for (unsigned i = 0; i < CLOCK_ALL; i++) {
        clock->streams[i].count = 0;
        clock->streams[i].known = 0;
    }
    clock->range_count = 0;
    clock->now = now;
}

void clock_free(struct stream_clock *clock, uint64_t start, uint64_t size, unsigned owner,
                unsigned streams)
{
    struct clock_range *range = &clock->ranges[clock->range_count];

    assert_true(clock->range_count < CLOCK_RANGES);
    clock->range_count++;
    *range = (struct clock_range){.start = start, .size = size, .owner = owner};
    for (unsigned i = 0; i < CLOCK_STREAMS; i++) {
        range->after[i] = (streams >> i & 1) ? clock->streams[i].count : 0;
    }
    settle(clock);
}

bool clock_is_used(const struct stream_clock *clock, uint64_t start, uint64_t size, unsigned stream)
{
    for (unsigned i = 0; i < clock->range_count; i++) {
        const struct clock_range *range = &clock->ranges[i];

        if (range->owner != stream && range->start < start + size &&
            start < range->start + range->size) {
            return true;
        }
    }
    return false;
}
