/* SPDX-License-Identifier: MIT */
/*
 * A history on a real allocator: what it keeps when threads allocate and somebody else switches it
 * on and off, changes its size and looks at it. The number of operations is fixed, not the time.
 * Under the tsan preset any access outside the locks is reported. In the end, with every block
 * freed, the cache given back and the history cleared, no stack and no text is left.
 */
#include "support/test.h"

#include "tarn/allocator.h"
#include "tarn/capture.h"
#include "tarn/history.h"
#include "tarn/host.h"
#include "tarn/sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

enum {
    THREADS = 4,
    OPERATIONS = 3000, /* of each thread */
    OWN = 8
};

struct analysis {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_history *history;
    atomic_int running;
    uint64_t host_bytes;
};

struct worker {
    struct analysis *analysis;
    uint64_t number;
    const char *broken;
};

static void scene_open(struct analysis *analysis, enum tarn_stack_source source)
{
    const struct tarn_sim_options sim = {.struct_size = sizeof sim, .capacity = 1024 * MIB};
    const struct tarn_history_options options = {
        .struct_size = sizeof options,
        .stack_source = source,
        .max_entries = 1000,
        .max_stack_bytes = 1 << 20,
    };
    struct tarn_sink sink;

    *analysis = (struct analysis){.host_bytes = tarn_host_get_usage().live_bytes};
    assert_int_equal(tarn_sim_open(&sim, &analysis->device, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(analysis->device, NULL, &analysis->allocator, NULL),
                     TARN_OK);
    assert_int_equal(tarn_history_create(&options, &analysis->history, NULL), TARN_OK);
    tarn_history_get_sink(analysis->history, TARN_CONTEXT_ALL, &sink);
    assert_int_equal(tarn_allocator_add_sink(analysis->allocator, &sink, NULL), TARN_OK);
}

static void scene_close(struct analysis *analysis)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    assert_int_equal(tarn_allocator_empty_cache(analysis->allocator, NULL), TARN_OK);
    tarn_history_clear(analysis->history);
    tarn_history_get_usage(analysis->history, &usage);
    assert_int_equal(usage.stacks, 0);
    assert_int_equal(usage.stack_bytes, 0);
    assert_int_equal(usage.texts, 0);
    assert_int_equal(tarn_allocator_remove_sink(analysis->allocator, analysis->history, NULL),
                     TARN_OK);
    tarn_history_destroy(analysis->history);
    tarn_allocator_destroy(analysis->allocator);
    tarn_device_close(analysis->device);
    assert_int_equal(tarn_host_get_usage().live_bytes, analysis->host_bytes);
}

static __attribute__((noinline)) enum tarn_status alloc_deep(struct analysis *analysis,
                                                             uint64_t calls, uint64_t size,
                                                             tarn_stream stream, tarn_ptr *ptr_out)
{
    const enum tarn_status st =
        calls > 0 ? alloc_deep(analysis, calls - 1, size, stream, ptr_out)
                  : tarn_allocator_alloc(analysis->allocator, size, stream, ptr_out, NULL);

    __asm__ volatile("" ::: "memory");
    return st;
}

static void work(struct worker *worker)
{
    struct analysis *analysis = worker->analysis;
    tarn_ptr own[OWN] = {0};
    uint64_t random = worker->number;

    for (uint64_t i = 0; i < OPERATIONS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        tarn_ptr *slot = &own[random >> 33 & (OWN - 1)];

        if (*slot && tarn_allocator_free(analysis->allocator, *slot, NULL)) {
            worker->broken = "a free failed";
        } else if (*slot) {
            *slot = 0;
        } else if (alloc_deep(analysis, random >> 40 & 15, 512 + (random >> 44 & 0xfffff),
                              worker->number % 3, slot)) {
            worker->broken = "an allocation failed";
        }
    }
    for (int i = 0; i < OWN; i++) {
        if (own[i] && tarn_allocator_free(analysis->allocator, own[i], NULL)) {
            worker->broken = "a free failed";
        }
    }
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    char text[16];

    (void)snprintf(text, sizeof text, "thread %d", (int)worker->number);
    if (tarn_set_user_metadata(text)) {
        worker->broken = "a text was refused";
    }
    work(worker);
    atomic_fetch_sub(&worker->analysis->running, 1);
    return NULL;
}

static bool count_entry(void *context, const struct tarn_history_entry *entry)
{
    (void)entry;
    ++*(uint64_t *)context;
    return true;
}

static void take_snapshot(const struct analysis *analysis)
{
    const struct tarn_capture_source source = {analysis->allocator, analysis->history};
    struct tarn_snapshot *snapshot = NULL;

    assert_int_equal(tarn_snapshot_capture(&source, 1, NULL, &snapshot, NULL), TARN_OK);
    assert_true(tarn_snapshot_entry_count(snapshot) <= 1000);
    tarn_snapshot_destroy(snapshot);
}

/* Until the workers are done. */
static void disturb(struct analysis *analysis)
{
    for (unsigned round = 0; atomic_load(&analysis->running) > 0; round++) {
        uint64_t count = 0;

        assert_int_equal(tarn_allocator_switch_sink(analysis->allocator, analysis->history,
                                                    round % 4 != 0,
                                                    (enum tarn_context_level)(round % 4), NULL),
                         TARN_OK);
        assert_int_equal(tarn_history_walk(analysis->history, count_entry, &count), TARN_OK);
        assert_true(count <= 1000);
        if (round % 8 == 6) {
            take_snapshot(analysis);
        }
        if (round % 8 == 3) {
            assert_int_equal(
                tarn_history_set_max_entries(analysis->history, 100 + round % 900, NULL), TARN_OK);
        }
        if (round % 16 == 5) {
            tarn_history_clear(analysis->history);
        }
        tarn_history_set_skip_actions(analysis->history, round % 2);
        assert_int_equal(
            tarn_history_annotate(analysis->history, TARN_ANNOTATION_START, 0, "round", NULL, 0),
            TARN_OK);
    }
}

static void threads_and_one_that_disturbs(void **state)
{
    struct analysis analysis;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];

    (void)state;
    scene_open(&analysis, TARN_STACK_FRAME_POINTERS);
    atomic_store(&analysis.running, THREADS);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.analysis = &analysis, .number = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &workers[i]), 0);
    }
    disturb(&analysis);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_null(workers[i].broken);
    }
    scene_close(&analysis);
}

/* What one thread does is all there, in order, with the stack of each call. */
struct frames {
    bool has_deep; /* the calls of the library itself may have become jumps */
};

static void look_at_frame(void *context, const struct tarn_stack_frame *frame)
{
    struct frames *frames = context;

    frames->has_deep = frames->has_deep || strcmp(frame->name, "alloc_deep") == 0;
}

struct order {
    struct tarn_history *history;
    enum tarn_action actions[8];
    int count;
    int64_t last_us;
};

static bool look_at_entry(void *context, const struct tarn_history_entry *entry)
{
    struct order *order = context;
    struct frames frames = {false};

    assert_true(order->count < 8);
    assert_true(entry->time_us >= order->last_us);
    order->last_us = entry->time_us;
    order->actions[order->count++] = entry->event.action;
    assert_int_equal(
        tarn_history_visit_stack(order->history, entry->event.stack, look_at_frame, &frames),
        TARN_OK);
    if (order->count <= 2) {
        assert_true(frames.has_deep);
    }
    return true;
}

static void one_thread(enum tarn_stack_source source)
{
    static const enum tarn_action expected[] = {
        TARN_ACTION_SEGMENT_ALLOC, TARN_ACTION_ALLOC, TARN_ACTION_FREE_REQUESTED,
        TARN_ACTION_FREE_COMPLETED, TARN_ACTION_SEGMENT_FREE};
    struct analysis analysis;
    tarn_ptr ptr;

    scene_open(&analysis, source);
    struct order order = {.history = analysis.history};

    assert_int_equal(alloc_deep(&analysis, 3, 4096, 0, &ptr), TARN_OK);
    assert_int_equal(tarn_allocator_free(analysis.allocator, ptr, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_empty_cache(analysis.allocator, NULL), TARN_OK);
    assert_int_equal(tarn_history_walk(analysis.history, look_at_entry, &order), TARN_OK);
    assert_int_equal(order.count, 5);
    assert_memory_equal(order.actions, expected, sizeof expected);
    scene_close(&analysis);
}

static void a_call_is_told_with_its_stack(void **state)
{
    (void)state;
    one_thread(TARN_STACK_FRAME_POINTERS);
    one_thread(TARN_STACK_UNWIND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_one_that_disturbs),
        cmocka_unit_test(a_call_is_told_with_its_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
