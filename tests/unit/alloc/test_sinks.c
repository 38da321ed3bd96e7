/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* syscall */
#include "support/any_stream.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "alloc/engine/checkpoint.h"
#include "alloc/pool/sinks.h"
#include "support/draw.h"
#include "support/rig.h"
#include "tarn/block.h"
#include "tarn/pool.h"

static bool is_hasty; /* who waits does not sleep */

int nanosleep(const struct timespec *time, struct timespec *left)
{
    return is_hasty ? 0 : (int)syscall(SYS_nanosleep, time, left);
}

/* A sink whose stacks are numbers with counts. */
enum {
    STACKS_MAX = 20000
};

struct counting {
    uint64_t next;
    int64_t references[STACKS_MAX];
    int64_t live; /* sum of all */
    uint64_t events;
    uint64_t captured;
    struct tarn_trace_event last;
    struct tarn_trace_event completed; /* the last end of a free */
};

static uint64_t counting_capture(void *context, enum tarn_context_level level)
{
    struct counting *counting = context;

    (void)level;
    assert_true(++counting->next < STACKS_MAX);
    counting->references[counting->next] = 1;
    counting->live++;
    counting->captured++;
    return counting->next;
}

static void counting_receive(void *context, const struct tarn_trace_event *event)
{
    struct counting *counting = context;

    assert_true(event->stack == 0 || counting->references[event->stack] > 0);
    counting->events++;
    counting->last = *event;
    if (event->action == TARN_ACTION_FREE_COMPLETED) {
        counting->completed = *event;
    }
}

static void counting_retain(void *context, uint64_t stack)
{
    struct counting *counting = context;

    assert_true(counting->references[stack] > 0);
    counting->references[stack]++;
    counting->live++;
}

static void counting_release(void *context, uint64_t stack)
{
    struct counting *counting = context;

    assert_true(counting->references[stack] > 0);
    counting->references[stack]--;
    counting->live--;
}

static struct tarn_sink sink_of(struct counting *counting, enum tarn_context_level level)
{
    return (struct tarn_sink){
        .context = counting,
        .level = level,
        .capture = counting_capture,
        .receive = counting_receive,
        .retain = counting_retain,
        .release = counting_release,
    };
}

static struct counting counting;

static void open_counting(struct rig *rig, uint64_t capacity, const char *conf, bool manual)
{
    const struct tarn_sink sink = sink_of(&counting, TARN_CONTEXT_ALL);

    memset(&counting, 0, sizeof counting);
    if (manual) {
        rig_open_manual(rig, capacity, conf);
    } else {
        rig_open(rig, capacity, conf);
    }
    assert_int_equal(tarn_allocator_add_sink(rig->allocator, &sink, &rig->error), TARN_OK);
}

static void set(struct rig *rig, bool on, enum tarn_context_level level)
{
    assert_int_equal(tarn_allocator_switch_sink(rig->allocator, &counting, on, level, &rig->error),
                     TARN_OK);
}

/* A block and its segment hold one reference each. */
static void blocks_and_segments_keep_stacks(void **state)
{
    struct rig rig;

    (void)state;
    open_counting(&rig, GIB, "", false);
    const tarn_ptr a = rig_alloc(&rig, 3 * MIB, 0);

    assert_int_equal(counting.live, 2);
    const tarn_ptr b = rig_alloc(&rig, 3 * MIB, 0);

    assert_int_equal(counting.live, 3);
    rig_free(&rig, a);
    assert_int_equal(counting.live, 2);
    for (int i = 0; i < 10; i++) { /* in the undo log and not */
        const tarn_ptr x = rig_alloc(&rig, 4096, 0);
        const tarn_ptr y = rig_alloc(&rig, 8192, 0);

        assert_int_equal(counting.live, 5);
        rig_free(&rig, i % 2 ? x : y);
        rig_free(&rig, i % 2 ? y : x);
        assert_int_equal(counting.live, 3);
    }
    rig_free(&rig, b);
    rig_empty_cache(&rig);
    assert_int_equal(counting.live, 0);
    (void)rig_alloc(&rig, 3 * MIB, 0);
    rig_close(&rig); /* what is still there is released */
    assert_int_equal(counting.live, 0);
}

/* Off: nobody is asked or told; what blocks keep is released when they go. */
static void a_sink_can_be_switched_off(void **state)
{
    struct rig rig;

    (void)state;
    open_counting(&rig, GIB, "", false);
    const tarn_ptr a = rig_alloc(&rig, 3 * MIB, 0);
    const tarn_ptr b = rig_alloc(&rig, 4096, 0);

    set(&rig, false, TARN_CONTEXT_ALL);
    const uint64_t events = counting.events;
    const uint64_t captured = counting.captured;

    assert_false(tn_heap_has_sinks(&rig_engine(rig.allocator)->heap));
    for (int i = 0; i < 3; i++) {
        rig_free(&rig, rig_alloc(&rig, 8192, 0));
    }
    rig_free(&rig, b);
    assert_int_equal(counting.live, 3);
    const tarn_ptr c = rig_alloc(&rig, 4096, 0); /* it has no stack: nobody was asked */

    assert_int_equal(counting.events, events);
    assert_int_equal(counting.captured, captured);
    set(&rig, true, TARN_CONTEXT_ALLOC);
    rig_free(&rig, c);
    assert_int_equal(counting.events, events + 2);
    assert_int_equal(counting.last.stack, 0);
    assert_int_equal(counting.captured, captured); /* frees are asked only with ALL */
    rig_free(&rig, a);
    assert_int_equal(counting.last.stack, 1); /* of the allocation */
    rig_empty_cache(&rig);
    assert_int_equal(counting.live, 0);
    rig_close(&rig);
}

static void levels_can_change(void **state)
{
    struct rig rig;

    (void)state;
    open_counting(&rig, GIB, "", false);
    set(&rig, true, TARN_CONTEXT_NEVER);
    const tarn_ptr a = rig_alloc(&rig, 512, 0);

    assert_int_equal(counting.captured, 0);
    assert_int_equal(counting.events, 2);
    set(&rig, true, TARN_CONTEXT_STATE);
    const tarn_ptr b = rig_alloc(&rig, 512, 0);

    assert_int_equal(counting.captured, 1);
    assert_int_equal(counting.last.stack, 0);
    set(&rig, true, TARN_CONTEXT_ALLOC);
    rig_free(&rig, b);
    assert_int_equal(counting.last.stack, 1);
    rig_free(&rig, a);
    assert_int_equal(counting.last.stack, 0);
    assert_int_equal(counting.live, 0);
    rig_close(&rig);
}

static void count_event(void *context, const struct tarn_trace_event *event)
{
    (void)event;
    ++*(uint64_t *)context;
}

static void a_sink_can_be_removed(void **state)
{
    struct rig rig;
    uint64_t other = 0;
    struct tarn_sink sink = sink_of(&counting, TARN_CONTEXT_ALL);

    (void)state;
    open_counting(&rig, GIB, "", false);
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_ERR_STATE);
    sink = (struct tarn_sink){.context = &other, .receive = count_event};
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    const tarn_ptr a = rig_alloc(&rig, 3 * MIB, 0);

    assert_int_equal(counting.live, 2);
    assert_int_equal(other, 2);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &counting, &rig.error), TARN_OK);
    assert_int_equal(counting.live, 0);
    const uint64_t events = counting.events;

    rig_free(&rig, a);
    assert_int_equal(counting.events, events);
    assert_int_equal(other, 4);
    tn_allocator_yield_sink(rig.allocator, &other); /* it captures nothing: no place to give */
    assert_null(tn_sinks_yielding(&rig_engine(rig.allocator)->heap));
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &other, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &other, &rig.error),
                     TARN_ERR_NOT_FOUND);
    assert_int_equal(
        tarn_allocator_switch_sink(rig.allocator, &other, true, TARN_CONTEXT_ALL, &rig.error),
        TARN_ERR_NOT_FOUND);
    sink = sink_of(&counting, TARN_CONTEXT_ALL); /* there is room, and nobody captures */
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &counting, &rig.error), TARN_OK);
    rig_close(&rig);
}

/* A sink leaves when no stack can be on its way to it: one that takes none, at once. */
static void only_sinks_that_capture_wait(void **state)
{
    static struct counting capturing;
    static struct counting plain;
    struct tarn_sink sink = {.context = &plain, .receive = counting_receive};
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tn_heap *heap = &rig_engine(rig.allocator)->heap;

    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    sink = (struct tarn_sink){.context = &capturing,
                              .level = TARN_CONTEXT_ALL,
                              .capture = counting_capture,
                              .receive = counting_receive,
                              .retain = counting_retain,
                              .release = counting_release};
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    atomic_store(&heap->captures, 1); /* a call has a stack in its hands */
    assert_int_equal(tn_sinks_begin_removal(heap, &plain, NULL), TARN_OK);
    assert_true(tn_sinks_may_leave(heap, &plain));
    tn_sinks_end_removal(heap, &plain);
    assert_int_equal(tn_sinks_begin_removal(heap, &plain, NULL), TARN_ERR_NOT_FOUND);
    assert_int_equal(tn_sinks_begin_removal(heap, &capturing, NULL), TARN_OK);
    assert_int_equal(tn_sinks_begin_removal(heap, &capturing, NULL), TARN_ERR_NOT_FOUND);
    assert_false(tn_sinks_may_leave(heap, &capturing));
    tn_sinks_cancel_removal(heap, &plain); /* of another: changes nothing */
    assert_int_equal(tn_sinks_begin_removal(heap, &capturing, NULL), TARN_ERR_NOT_FOUND);
    tn_sinks_cancel_removal(heap, &capturing);
    tn_sinks_end_removal(heap, &capturing); /* it does not leave any more */
    atomic_store(&heap->captures, 0);
    assert_int_equal(tn_sinks_set(heap, &capturing, true, TARN_CONTEXT_ALL, NULL), TARN_OK);
    assert_null(tn_sinks_yielding(heap));
    tn_sinks_yield(heap, &capturing);
    assert_ptr_equal(tn_sinks_yielding(heap), &capturing);
    assert_int_equal(tn_sinks_begin_removal(heap, &capturing, NULL), TARN_OK);
    assert_null(tn_sinks_yielding(heap)); /* it is leaving already */
    tn_sinks_cancel_removal(heap, &capturing);
    assert_int_equal(tn_sinks_set(heap, &capturing, true, TARN_CONTEXT_ALL, NULL), TARN_OK);
    assert_int_equal(tn_sinks_set(heap, &plain, true, TARN_CONTEXT_ALL, NULL), TARN_ERR_NOT_FOUND);
    const tarn_ptr ptr = rig_alloc(&rig, 512, 0);

    assert_int_equal(capturing.last.address, ptr);
    assert_int_equal(plain.events, 0);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &capturing, NULL), TARN_OK);
    assert_int_equal(capturing.live, 0);
    rig_free(&rig, ptr);
    rig_close(&rig);
}

/* A call that captures a stack removes the sink that it does so for, which waits for it. */
static struct rig *leaving;

static uint64_t leaving_capture(void *context, enum tarn_context_level level)
{
    struct rig *rig = leaving;

    if (rig) {
        leaving = NULL;
        assert_int_equal(tarn_allocator_remove_sink(rig->allocator, context, &rig->error),
                         TARN_ERR_NOT_READY);
        assert_non_null(strstr(rig->error.text, "still in progress"));
    }
    return counting_capture(context, level);
}

/* A capture that takes a few milliseconds, on another thread. */
static atomic_bool is_capturing;

static uint64_t slow_capture(void *context, enum tarn_context_level level)
{
    const struct timespec pause = {.tv_nsec = 5000000};

    atomic_store(&is_capturing, true);
    (void)nanosleep(&pause, NULL);
    return counting_capture(context, level);
}

static void *alloc_slowly(void *context)
{
    struct rig *rig = context;
    tarn_ptr ptr = 0;

    return tarn_allocator_alloc(rig->allocator, 3 * MIB, 0, &ptr, NULL) == TARN_OK ? NULL : rig;
}

/* A sink waits for the calls that have captured a stack for it, and then leaves. */
static void a_sink_leaves_after_a_call_in_progress(void **state)
{
    struct rig rig;
    pthread_t thread;
    void *failed = NULL;

    (void)state;
    memset(&counting, 0, sizeof counting);
    rig_open(&rig, GIB, "");
    struct tarn_sink sink = sink_of(&counting, TARN_CONTEXT_ALL);

    sink.capture = slow_capture;
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    assert_int_equal(pthread_create(&thread, NULL, alloc_slowly, &rig), 0);
    while (!atomic_load(&is_capturing)) {
        (void)usleep(100);
    }
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &counting, &rig.error), TARN_OK);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(counting.captured, 1);
    assert_int_equal(counting.live, 0);
    rig_close(&rig);
}

static void a_sink_does_not_leave_below_a_call(void **state)
{
    struct rig rig;

    (void)state;
    memset(&counting, 0, sizeof counting);
    rig_open(&rig, GIB, "");
    struct tarn_sink sink = sink_of(&counting, TARN_CONTEXT_ALL);

    sink.capture = leaving_capture;
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    leaving = &rig;
    is_hasty = true;
    const tarn_ptr ptr = rig_alloc(&rig, 3 * MIB, 0);

    is_hasty = false;
    assert_null(leaving);
    assert_int_equal(counting.live, 0); /* the stack went back: nobody would release the block's */
    assert_int_equal(counting.events, 0); /* switched off */
    rig_free(&rig, ptr);
    assert_int_equal(counting.events, 0);
    set(&rig, true, TARN_CONTEXT_ALL);
    rig_free(&rig, rig_alloc(&rig, 3 * MIB, 0));
    assert_true(counting.events > 0);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &counting, &rig.error), TARN_OK);
    rig_close(&rig);
    assert_int_equal(counting.live, 0);
}

/* A free that is complete at once is one moment; one that waited is two. */
static void moments_are_told_apart(void **state)
{
    struct rig rig;

    (void)state;
    open_counting(&rig, GIB, "", true);
    const tarn_ptr a = rig_alloc(&rig, 4096, 0);

    assert_false(counting.last.same_time);
    rig_free(&rig, a);
    assert_int_equal(counting.last.action, TARN_ACTION_FREE_COMPLETED);
    assert_true(counting.last.same_time);
    const tarn_ptr b = rig_alloc(&rig, 4096, 0);

    rig_record(&rig, b, 7);
    rig_free(&rig, b);
    assert_int_equal(counting.last.action, TARN_ACTION_FREE_REQUESTED);
    assert_false(counting.last.same_time);
    rig_empty_cache(&rig);
    assert_int_equal(counting.live, 0);
    rig_close(&rig);
}

/* The end of a free that waited has the stack of the call that met it, or else of the
 * allocation. */
static void a_free_that_ends_late_has_a_stack(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        struct rig rig;

        open_counting(&rig, GIB, "", true);
        const tarn_ptr ptr = rig_alloc(&rig, 4096, 0);
        const uint64_t stack = counting.next;

        rig_record(&rig, ptr, 7);
        rig_free(&rig, ptr);
        set(&rig, true, all ? TARN_CONTEXT_ALL : TARN_CONTEXT_ALLOC);
        assert_int_equal(tarn_allocator_trim(rig.allocator, TARN_SIZE_UNLIMITED, NULL, &rig.error),
                         TARN_OK);
        assert_int_equal(counting.last.action, TARN_ACTION_FREE_REQUESTED); /* it waits still */
        assert_int_equal(tarn_allocator_release_stream(rig.allocator, 0, &rig.error), TARN_OK);
        assert_int_equal(counting.completed.address, ptr);
        assert_int_equal(counting.completed.stack, all ? counting.next : stack);
        rig_empty_cache(&rig);
        assert_int_equal(counting.live, 0);
        rig_close(&rig);
    }
}

/* The device keeps a segment that it should free: whoever counts segments is told. */
static void a_segment_that_stays_is_announced_again(void **state)
{
    struct rig rig;

    (void)state;
    open_counting(&rig, GIB, "", false);
    const tarn_ptr ptr = rig_alloc(&rig, 30 * MIB, 0);

    rig_free(&rig, ptr);
    const uint64_t events = counting.events;

    tarn_sim_fail_nth(rig.device, TARN_SIM_FREE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_allocator_empty_cache(rig.allocator, &rig.error), TARN_ERR_DEVICE);
    assert_int_equal(counting.events, events + 2);
    assert_int_equal(counting.last.action, TARN_ACTION_SEGMENT_ALLOC);
    assert_int_equal(counting.last.address, ptr);
    assert_int_equal(counting.last.size, 30 * MIB);
    rig_empty_cache(&rig);
    assert_int_equal(counting.last.action, TARN_ACTION_SEGMENT_FREE);
    assert_int_equal(counting.live, 0);
    rig_close(&rig);
}

/* A growing segment has the stack of what mapped its beginning; what is unmapped, that of the call,
 * or else the segment's. */
static void a_growing_segment_keeps_the_stack_of_its_beginning(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct rig rig;
        tarn_ptr first = 0;

        memset(&counting, 0, sizeof counting);
        rig_open(&rig, GIB, "expandable_segments:True");
        if (late) {
            first = rig_alloc(&rig, 20 * MIB, 0);
        }
        const struct tarn_sink sink = sink_of(&counting, TARN_CONTEXT_ALL);

        assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
        first = late ? first : rig_alloc(&rig, 20 * MIB, 0);
        assert_int_equal(counting.live, late ? 0 : 2);
        const tarn_ptr second = rig_alloc(&rig, 20 * MIB, 0);
        const tarn_ptr third = rig_alloc(&rig, 20 * MIB, 0);

        assert_int_equal(counting.live, late ? 2 : 4); /* the segment's and the blocks' */
        rig_free(&rig, first);
        rig_empty_cache(&rig);
        assert_int_equal(counting.last.action, TARN_ACTION_SEGMENT_UNMAP);
        assert_int_equal(counting.last.stack, counting.next);
        assert_int_equal(rig_alloc(&rig, 20 * MIB, 0), first);
        assert_int_equal(counting.live, 4);
        set(&rig, true, TARN_CONTEXT_ALLOC); /* none for what follows */
        rig_free(&rig, second);
        rig_empty_cache(&rig);
        assert_int_equal(counting.last.action, TARN_ACTION_SEGMENT_UNMAP);
        assert_int_equal(counting.last.stack, late ? counting.next : 1);
        rig_free(&rig, first);
        rig_free(&rig, third);
        rig_empty_cache(&rig);
        assert_int_equal(counting.live, 0);
        rig_close(&rig);
    }
}

/* No stack is asked for where nobody captures any more, and a sink without a context is none. */
static void nobody_is_asked_for_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    struct tn_heap *heap = &rig_engine(rig.allocator)->heap;

    assert_int_equal(tn_heap_capture_slow(heap, TARN_CONTEXT_ALL), 0);
    assert_int_equal(atomic_load(&heap->captures), 0);
    assert_int_equal(
        tarn_allocator_switch_sink(rig.allocator, NULL, true, TARN_CONTEXT_ALL, &rig.error),
        TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, NULL, &rig.error),
                     TARN_ERR_NOT_FOUND);
    rig_close(&rig);
}

/* A sink that comes back captures nothing now: when it goes again, stacks of another one stay. */
static void a_sink_takes_only_its_own_stacks_along(void **state)
{
    static uint64_t events[2];
    struct tarn_sink sink = {.context = &events[0], .receive = count_event};
    struct rig rig;

    (void)state;
    memset(&counting, 0, sizeof counting);
    rig_open(&rig, GIB, "");
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    sink = sink_of(&counting, TARN_CONTEXT_ALL);
    sink.context = &counting;
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &counting, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &events[0], NULL), TARN_OK);
    sink = (struct tarn_sink){.context = &counting, .receive = counting_receive};
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_remove_sink(rig.allocator, &counting, NULL), TARN_OK);
    sink = (struct tarn_sink){.context = &counting, .receive = counting_receive};
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, NULL), TARN_OK);
    atomic_store(&rig_engine(rig.allocator)->heap.captures, 1); /* of another sink */
    assert_int_equal(tn_sinks_begin_removal(&rig_engine(rig.allocator)->heap, &counting, NULL),
                     TARN_OK);
    assert_true(tn_sinks_may_leave(&rig_engine(rig.allocator)->heap, &counting));
    tn_sinks_end_removal(&rig_engine(rig.allocator)->heap, &counting);
    atomic_store(&rig_engine(rig.allocator)->heap.captures, 0);
    rig_close(&rig);
}

/* The thread's text, however short, or else the name of the pool. */
static void events_have_a_text(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options, .name = "weights"};
    struct tarn_pool *pool = NULL;
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    open_counting(&rig, GIB, "", false);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 4096, 0, &ptr, &rig.error), TARN_OK);
    assert_string_equal(counting.last.user_metadata, "weights");
    assert_int_equal(tarn_set_user_metadata("x"), TARN_OK);
    rig_free(&rig, ptr);
    assert_string_equal(counting.last.user_metadata, "x");
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    tarn_pool_destroy(pool);
    rig_close(&rig);
}

static void failures_give_stacks_back(void **state)
{
    struct rig rig;
    tarn_ptr ptr;

    (void)state;
    open_counting(&rig, 64 * MIB, "", false);
    rig_alloc_oom(&rig, 100 * MIB, 0);
    assert_int_equal(counting.last.action, TARN_ACTION_OOM);
    assert_int_equal(counting.last.stack, 1);
    assert_int_equal(counting.live, 0);
    rig_alloc_oom(&rig, UINT64_MAX / 2, 0);
    assert_int_equal(tarn_allocator_free(rig.allocator, 512, &rig.error), TARN_ERR_INVALID_POINTER);
    assert_int_equal(counting.live, 0);
    for (uint64_t n = 1; n < 12; n++) {
        tarn_host_fail_nth(n);
        const enum tarn_status st =
            tarn_allocator_alloc(rig.allocator, 30 * MIB, n, &ptr, &rig.error);

        tarn_host_fail_nth(0);
        if (st == TARN_OK) {
            rig_free(&rig, ptr);
        }
        rig_empty_cache(&rig);
        assert_int_equal(counting.live, 0);
    }
    rig_close(&rig);
}

/* ---- whatever a program does ---- */

enum {
    SLOTS = 24
};

struct program {
    struct rig rig;
    tarn_ptr slots[SLOTS];
    uint64_t seed;
};

static void program_alloc(struct program *p, tarn_ptr *slot)
{
    const uint64_t size = 1 + draw(&p->seed) % (draw(&p->seed) % 2 ? 4 * MIB : 100 * KIB);

    if (tarn_allocator_alloc(p->rig.allocator, size, draw(&p->seed) % 3, slot, NULL)) {
        *slot = 0;
    }
}

static void program_free(struct program *p, tarn_ptr *slot)
{
    assert_int_equal(tarn_allocator_free(p->rig.allocator, *slot, &p->rig.error), TARN_OK);
    *slot = 0;
}

static void program_step(struct program *p)
{
    tarn_ptr *slot = &p->slots[draw(&p->seed) % SLOTS];
    const uint64_t kind = draw(&p->seed) % 64;

    if (kind == 0) {
        rig_empty_cache(&p->rig);
    } else if (kind == 1) {
        set(&p->rig, draw(&p->seed) % 3 != 0,
            (enum tarn_context_level)(draw(&p->seed) % (TARN_CONTEXT_ALL + 1)));
    } else if (kind < 10 && *slot) {
        rig_record(&p->rig, *slot, 1 + draw(&p->seed) % 3);
    } else if (*slot) {
        program_free(p, slot);
    } else {
        program_alloc(p, slot);
    }
}

/* After everything is freed and given back no stack is held, with sinks switched on and off at any
 * time, streams, failures and expandable segments. */
static void references_add_up(void **state)
{
    static const char *const confs[] = {"", "expandable_segments:True"};

    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct program p = {.seed = seed};

        open_counting(&p.rig, seed % 4 == 0 ? 48 * MIB : GIB, confs[seed % 2], seed % 3 == 0);
        for (int i = 0; i < 300; i++) {
            program_step(&p);
        }
        for (int i = 0; i < SLOTS; i++) {
            if (p.slots[i]) {
                program_free(&p, &p.slots[i]);
            }
        }
        rig_empty_cache(&p.rig);
        assert_int_equal(counting.live, 0);
        rig_close(&p.rig);
    }
}

/* Restoring a checkpoint hands out several blocks with one stack. */
/* That of the call too, though no event of it has one. */
static void destroying_a_pool_gives_stacks_back(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options};
    struct tarn_pool *pool = NULL;
    struct rig rig;
    tarn_ptr ptr = 0;

    (void)state;
    open_counting(&rig, GIB, "", false);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &pool, &rig.error), TARN_OK);
    assert_int_equal(tarn_pool_alloc(pool, 4096, 0, &ptr, &rig.error), TARN_OK);
    rig_free(&rig, ptr);
    tarn_pool_destroy(pool);
    assert_int_equal(counting.live, 0);
    rig_close(&rig);
}

static void checkpoints_keep_stacks(void **state)
{
    const struct tarn_pool_id id = {0, 1};
    struct tarn_checkpoint *checkpoint = NULL;
    struct tarn_checkpoint_delta delta = {0};
    struct rig rig;
    tarn_ptr blocks[3];

    (void)state;
    open_counting(&rig, GIB, "", false);
    assert_int_equal(tarn_allocator_begin_pool(rig.allocator, id, any_stream, NULL, &rig.error),
                     TARN_OK);
    for (int i = 0; i < 3; i++) {
        blocks[i] = rig_alloc(&rig, 4096, 0);
    }
    assert_int_equal(tarn_allocator_end_pool(rig.allocator, id, &rig.error), TARN_OK);
    assert_int_equal(tarn_allocator_get_checkpoint(rig.allocator, id, &checkpoint, &rig.error),
                     TARN_OK);
    const int64_t before = counting.live;

    for (int i = 0; i < 3; i++) {
        rig_free(&rig, blocks[i]);
    }
    assert_int_equal(counting.live, before - 3);
    assert_int_equal(tarn_allocator_set_checkpoint(rig.allocator, checkpoint, &delta, &rig.error),
                     TARN_OK);
    assert_int_equal(counting.live, before);
    for (int i = 0; i < 3; i++) {
        rig_free(&rig, blocks[i]);
    }
    assert_int_equal(counting.live, before - 3);
    tarn_checkpoint_delta_fini(&delta);
    tarn_checkpoint_destroy(checkpoint);
    rig_close(&rig);
    assert_int_equal(counting.live, 0);
}

/* A call that captures a stack switches the sink off meanwhile. */
static struct rig *switching;

static uint64_t switching_capture(void *context, enum tarn_context_level level)
{
    const uint64_t stack = counting_capture(context, level);

    if (switching) {
        set(switching, false, TARN_CONTEXT_ALL);
    }
    switching = NULL;
    return stack;
}

/* The call goes on without it, and the stack is released, whether the undo log has the block or
 * not. */
static void a_stack_of_a_sink_that_is_switched_off_is_released(void **state)
{
    (void)state;
    for (int is_logged = 0; is_logged < 2; is_logged++) {
        struct rig rig;

        memset(&counting, 0, sizeof counting);
        rig_open(&rig, GIB, "");
        struct tarn_sink sink = sink_of(&counting, TARN_CONTEXT_ALL);
        const tarn_ptr base = rig_alloc(&rig, 512, 0);

        sink.capture = switching_capture;
        assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
        rig_free(&rig, rig_alloc(&rig, 1024, 0));
        assert_int_equal(counting.live, 0);
        const uint64_t events = counting.events;

        switching = &rig;
        const tarn_ptr ptr = rig_alloc(&rig, is_logged ? 1024 : 2048, 0);

        assert_null(switching);
        assert_int_equal(counting.events, events);
        rig_free(&rig, ptr);
        rig_free(&rig, rig_alloc(&rig, 1024, 0));
        assert_int_equal(counting.live, 0);
        rig_free(&rig, base);
        rig_close(&rig);
        assert_int_equal(counting.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_and_segments_keep_stacks),
        cmocka_unit_test(a_sink_can_be_switched_off),
        cmocka_unit_test(levels_can_change),
        cmocka_unit_test(a_sink_can_be_removed),
        cmocka_unit_test(only_sinks_that_capture_wait),
        cmocka_unit_test(a_sink_does_not_leave_below_a_call),
        cmocka_unit_test(a_sink_leaves_after_a_call_in_progress),
        cmocka_unit_test(moments_are_told_apart),
        cmocka_unit_test(a_free_that_ends_late_has_a_stack),
        cmocka_unit_test(a_segment_that_stays_is_announced_again),
        cmocka_unit_test(a_growing_segment_keeps_the_stack_of_its_beginning),
        cmocka_unit_test(nobody_is_asked_for_nothing),
        cmocka_unit_test(a_sink_takes_only_its_own_stacks_along),
        cmocka_unit_test(events_have_a_text),
        cmocka_unit_test(failures_give_stacks_back),
        cmocka_unit_test(references_add_up),
        cmocka_unit_test(destroying_a_pool_gives_stacks_back),
        cmocka_unit_test(checkpoints_keep_stacks),
        cmocka_unit_test(a_stack_of_a_sink_that_is_switched_off_is_released),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
