/* SPDX-License-Identifier: MIT */
/* The history by its sink alone: the tests call what an allocator would. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "support/failing.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "history/history.h"
#include "support/child.h"
#include "tarn/history.h"
#include "tarn/host.h"

FAILING(int, EAGAIN, pthread_key_create, (pthread_key_t * key, void (*fini)(void *memory)),
        (key, fini))
FAILING(int, ENOMEM, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))

struct rig {
    struct tarn_history *history;
    struct tarn_sink sink;
    uint64_t host_bytes;
};

static void rig_open(struct rig *rig, struct tarn_history_options options)
{
    struct tarn_error error;

    *rig = (struct rig){.host_bytes = tarn_host_get_usage().live_bytes};
    options.struct_size = sizeof options;
    assert_int_equal(tarn_history_create(&options, &rig->history, &error), TARN_OK);
    tarn_history_get_sink(rig->history, TARN_CONTEXT_ALL, &rig->sink);
    assert_ptr_equal(rig->sink.context, rig->history);
}

static void rig_close(struct rig *rig)
{
    tarn_history_destroy(rig->history);
    assert_int_equal(tarn_host_get_usage().live_bytes, rig->host_bytes);
}

static struct tarn_history_usage usage(struct rig *rig)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    tarn_history_get_usage(rig->history, &usage);
    return usage;
}

static TN_NOINLINE uint64_t capture(struct rig *rig)
{
    const uint64_t stack = rig->sink.capture(rig->sink.context, TARN_CONTEXT_STATE);

    __asm__ volatile("" ::: "memory"); /* not by a jump */
    return stack;
}

static struct tarn_trace_event event_of(enum tarn_action action, uint64_t address, uint64_t stack)
{
    return (struct tarn_trace_event){
        .action = action,
        .device = 3,
        .address = address,
        .size = address * 2,
        .stream = address * 3,
        .stack = stack,
        .compile_context = tarn_get_compile_context(),
        .user_metadata = tarn_get_user_metadata(),
    };
}

static void send(struct rig *rig, enum tarn_action action, uint64_t address, uint64_t stack)
{
    const struct tarn_trace_event event = event_of(action, address, stack);

    rig->sink.receive(rig->sink.context, &event);
}

enum {
    SEEN_MAX = 64
};

struct seen {
    struct tarn_history_entry entries[SEEN_MAX];
    char contexts[SEEN_MAX][64];
    char metadata[SEEN_MAX][64];
    int count;
    int left; /* until the walk is ended; 0 = never */
};

static bool see(void *context, const struct tarn_history_entry *entry)
{
    struct seen *seen = context;

    assert_true(seen->count < SEEN_MAX);
    seen->entries[seen->count] = *entry;
    (void)strncpy(seen->contexts[seen->count], entry->event.compile_context, 63);
    (void)strncpy(seen->metadata[seen->count], entry->event.user_metadata, 63);
    seen->count++;
    return seen->left == 0 || --seen->left > 0;
}

static struct seen walk(struct rig *rig)
{
    static struct seen seen;

    memset(&seen, 0, sizeof seen);
    assert_int_equal(tarn_history_walk(rig->history, see, &seen), TARN_OK);
    return seen;
}

static void events_come_back_as_they_were(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = 8});
    for (uint64_t i = 1; i <= 5; i++) {
        send(&rig, (enum tarn_action)i, i, 0);
    }
    struct seen seen = walk(&rig);

    assert_int_equal(seen.count, 5);
    for (int i = 0; i < 5; i++) {
        const struct tarn_trace_event *event = &seen.entries[i].event;
        const uint64_t n = (uint64_t)i + 1;

        assert_int_equal(event->action, n);
        assert_int_equal(event->device, 3);
        assert_int_equal(event->address, n);
        assert_int_equal(event->size, 2 * n);
        assert_int_equal(event->stream, 3 * n);
        assert_int_equal(event->stack, 0);
        assert_int_equal(event->pool_id[0], 0);
        assert_string_equal(seen.contexts[i], "N/A");
        assert_string_equal(seen.metadata[i], "");
        if (i > 0) {
            assert_true(seen.entries[i].time_us >= seen.entries[i - 1].time_us);
        }
    }
    seen = (struct seen){.left = 2};
    assert_int_equal(tarn_history_walk(rig.history, see, &seen), TARN_OK);
    assert_int_equal(seen.count, 2);
    rig_close(&rig);
}

/* The second half of a free has the time of the first; another event its own. */
static void a_moment_can_be_shared(void **state)
{
    struct tarn_trace_event event;
    struct rig rig;
    uint64_t first;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = 8});
    send(&rig, TARN_ACTION_FREE_REQUESTED, 1, 0);
    first = rig.history->now;
    event = event_of(TARN_ACTION_FREE_COMPLETED, 1, 0);
    event.same_time = true;
    rig.sink.receive(rig.sink.context, &event);
    assert_int_equal(tn_ring_at(&rig.history->ring, 0)->ticks, first);
    assert_int_equal(tn_ring_at(&rig.history->ring, 1)->ticks, first);
    send(&rig, TARN_ACTION_ALLOC, 1, 0);
    assert_true(tn_ring_at(&rig.history->ring, 2)->ticks > first);
    rig_close(&rig);
}

static void the_newest_are_kept(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = 4});
    for (uint64_t i = 1; i <= 10; i++) {
        send(&rig, TARN_ACTION_ALLOC, i, 0);
    }
    struct seen seen = walk(&rig);

    assert_int_equal(seen.count, 4);
    assert_int_equal(seen.entries[0].event.address, 7);
    assert_int_equal(seen.entries[3].event.address, 10);
    assert_int_equal(usage(&rig).entries, 4);
    assert_int_equal(usage(&rig).entries_overwritten, 6);
    tarn_history_clear(rig.history);
    assert_int_equal(walk(&rig).count, 0);
    assert_int_equal(usage(&rig).entries_overwritten, 0);
    rig_close(&rig);
}

static void the_number_kept_can_change(void **state)
{
    struct tarn_error error;
    struct rig rig;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = 4});
    for (uint64_t i = 1; i <= 6; i++) {
        const uint64_t stack = capture(&rig);

        send(&rig, TARN_ACTION_ALLOC, i, stack);
        rig.sink.release(rig.sink.context, stack);
    }
    assert_int_equal(tarn_history_set_max_entries(rig.history, 2, &error), TARN_OK);
    assert_int_equal(walk(&rig).entries[0].event.address, 5);
    assert_int_equal(usage(&rig).entries_overwritten, 4);
    assert_int_equal(tarn_history_set_max_entries(rig.history, 6, &error), TARN_OK);
    for (uint64_t i = 7; i <= 11; i++) {
        send(&rig, TARN_ACTION_ALLOC, i, 0);
    }
    struct seen seen = walk(&rig);

    assert_int_equal(seen.count, 6);
    assert_int_equal(seen.entries[0].event.address, 6);
    assert_int_equal(seen.entries[5].event.address, 11);
    assert_int_equal(usage(&rig).max_entries, 6);
    assert_int_equal(tarn_history_set_max_entries(rig.history, 0, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_history_set_max_entries(rig.history, UINT64_MAX, &error),
                     TARN_ERR_HOST_MEMORY);
    assert_int_equal(walk(&rig).count, 6);
    tarn_history_clear(rig.history);
    assert_int_equal(usage(&rig).stacks, 0);
    rig_close(&rig);
}

static void some_actions_can_be_skipped(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.skip_actions = 1u << TARN_ACTION_FREE_REQUESTED |
                                                                 1u << TARN_ACTION_OOM});
    for (int action = 0; action < TARN_ACTION_COUNT; action++) {
        send(&rig, (enum tarn_action)action, 1, 0);
    }
    assert_int_equal(walk(&rig).count, TARN_ACTION_COUNT - 2);
    assert_int_equal(usage(&rig).entries_skipped, 2);
    tarn_history_set_skip_actions(rig.history, 0);
    send(&rig, TARN_ACTION_OOM, 1, 0);
    assert_int_equal(walk(&rig).count, TARN_ACTION_COUNT - 1);
    rig_close(&rig);
}

static void stacks_of_c_can_be_switched(void **state)
{
    struct rig rig;
    uint64_t stack;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.stack_source = TARN_STACK_NONE});
    assert_int_equal(capture(&rig), 0);
    assert_int_equal(tarn_history_set_stack_source(rig.history, TARN_STACK_UNWIND), TARN_OK);
    stack = capture(&rig);
    assert_int_not_equal(stack, 0);
    rig.sink.release(rig.sink.context, stack);
    assert_int_equal(tarn_history_set_stack_source(rig.history, (enum tarn_stack_source)3),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_history_set_stack_source(rig.history, TARN_STACK_NONE), TARN_OK);
    assert_int_equal(capture(&rig), 0);
    rig_close(&rig);
}

static void texts_and_pools_are_kept(void **state)
{
    struct rig rig;
    struct tarn_trace_event event;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = 4});
    assert_int_equal(tarn_push_compile_context("0/1"), TARN_OK);
    assert_int_equal(tarn_set_user_metadata("step 7"), TARN_OK);
    send(&rig, TARN_ACTION_ALLOC, 1, 0);
    send(&rig, TARN_ACTION_ALLOC, 2, 0);
    tarn_pop_compile_context();
    send(&rig, TARN_ACTION_ALLOC, 3, 0);
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    event = event_of(TARN_ACTION_ALLOC, 4, 0);
    event.pool_id[0] = 5;
    event.pool_id[1] = 6;
    event.compile_context = "N/A"; /* another one of that text */
    rig.sink.receive(rig.sink.context, &event);
    struct seen seen = walk(&rig);

    assert_string_equal(seen.contexts[0], "0/1");
    assert_string_equal(seen.metadata[0], "step 7");
    assert_string_equal(seen.contexts[1], "0/1");
    assert_string_equal(seen.contexts[2], "N/A");
    assert_string_equal(seen.metadata[2], "step 7");
    assert_string_equal(seen.contexts[3], "N/A");
    assert_string_equal(seen.metadata[3], "");
    assert_int_equal(seen.entries[3].event.pool_id[0], 5);
    assert_int_equal(seen.entries[3].event.pool_id[1], 6);
    assert_int_equal(usage(&rig).texts, 3);
    for (uint64_t i = 0; i < 4; i++) {
        send(&rig, TARN_ACTION_ALLOC, i, 0);
    }
    assert_int_equal(usage(&rig).texts, 1); /* the last one used */
    tarn_history_clear(rig.history);
    assert_int_equal(usage(&rig).texts, 0);
    assert_int_equal(usage(&rig).text_bytes, 0);
    rig_close(&rig);
}

/* What the library says for "no context" costs no memory, nor does a caller's copy of it. */
static void no_context_is_no_text(void **state)
{
    const char own[] = "N/A";
    struct tarn_trace_event event = event_of(TARN_ACTION_ALLOC, 1, 0);
    struct rig rig;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = 10});
    rig.sink.receive(rig.sink.context, &event);
    event.compile_context = own;
    rig.sink.receive(rig.sink.context, &event);
    assert_int_equal(usage(&rig).texts, 0);
    event.compile_context = "N/B";
    rig.sink.receive(rig.sink.context, &event);
    assert_int_equal(usage(&rig).texts, 1);
    const struct seen seen = walk(&rig);

    assert_string_equal(seen.contexts[0], "N/A");
    assert_string_equal(seen.contexts[1], "N/A");
    assert_string_equal(seen.contexts[2], "N/B");
    rig_close(&rig);
}

static void texts_are_bounded(void **state)
{
    struct rig rig;
    char text[TARN_LABEL_MAX];

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_text_bytes = 4096});
    for (int i = 0; i < 100; i++) {
        memset(text, 'a' + i % 26, 200);
        text[200] = (char)('a' + i / 26);
        text[201] = '\0';
        assert_int_equal(tarn_set_user_metadata(text), TARN_OK);
        send(&rig, TARN_ACTION_ALLOC, 1, 0);
    }
    assert_int_equal(tarn_set_user_metadata(""), TARN_OK);
    assert_true(usage(&rig).text_bytes <= 4096);
    assert_true(usage(&rig).texts_dropped > 0);
    assert_int_equal(usage(&rig).entries, 100);
    rig_close(&rig);
}

/* ---- stacks ---- */

/* References: the caller's, the event's, in any order. */
static void a_stack_goes_with_its_last_holder(void **state)
{
    struct rig rig;
    uint64_t stacks[3];

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = 2});
    for (volatile int i = 0; i < 3; i++) {
        stacks[i] = capture(&rig); /* from one place: the loop is not unrolled */
    }
    assert_true(stacks[0] != 0);
    assert_int_equal(stacks[1], stacks[0]);
    assert_int_equal(stacks[2], stacks[0]);
    assert_int_equal(usage(&rig).stacks, 1);
    send(&rig, TARN_ACTION_ALLOC, 1, stacks[0]);
    for (int i = 0; i < 3; i++) {
        rig.sink.release(rig.sink.context, stacks[i]);
    }
    assert_int_equal(usage(&rig).stacks, 1);
    assert_int_equal(walk(&rig).entries[0].event.stack, stacks[0]);
    send(&rig, TARN_ACTION_ALLOC, 2, 0);
    send(&rig, TARN_ACTION_ALLOC, 3, 0);
    assert_int_equal(usage(&rig).stacks, 0);
    assert_int_equal(usage(&rig).stack_bytes, 0);

    const uint64_t kept = capture(&rig);

    rig.sink.retain(rig.sink.context, kept);
    rig.sink.release(rig.sink.context, kept);
    tarn_history_clear(rig.history);
    assert_int_equal(usage(&rig).stacks, 1); /* a block's, say */
    rig.sink.release(rig.sink.context, kept);
    assert_int_equal(usage(&rig).stacks, 0);
    rig_close(&rig);
}

static TN_NOINLINE uint64_t capture_deep(struct rig *rig, int calls)
{
    const uint64_t stack = calls > 0 ? capture_deep(rig, calls - 1) : capture(rig);

    __asm__ volatile("" ::: "memory");
    return stack;
}

static void stacks_are_bounded(void **state)
{
    struct rig rig;
    uint64_t found = 0;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_stack_bytes = 4096, .max_frames = 200});
    for (int i = 0; i < 100; i++) {
        const uint64_t stack = capture_deep(&rig, i);

        found += stack != 0;
        send(&rig, TARN_ACTION_ALLOC, 1, stack);
        if (stack) {
            rig.sink.release(rig.sink.context, stack);
        }
    }
    assert_true(found > 0 && found < 100);
    assert_int_equal(usage(&rig).stacks_dropped, 100 - found);
    assert_int_equal(usage(&rig).stacks, found);
    assert_true(usage(&rig).stack_bytes <= 4096);
    rig_close(&rig);
}

struct frames {
    char names[80][64];
    char files[80][256];
    uint64_t lines[80];
    size_t count;
};

static void note_frame(void *context, const struct tarn_stack_frame *frame)
{
    struct frames *frames = context;

    assert_true(frames->count < 80);
    (void)snprintf(frames->names[frames->count], 64, "%s", frame->name);
    (void)snprintf(frames->files[frames->count], 256, "%s", frame->filename);
    frames->lines[frames->count++] = frame->line;
}

static bool frames_have(const struct frames *frames, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < frames->count; i++) {
        found = found || strcmp(frames->names[i], name) == 0;
    }
    return found;
}

static inline __attribute__((always_inline)) uint64_t capture_inlined(struct rig *rig)
{
    return capture_deep(rig, 2);
}

static TN_NOINLINE uint64_t capture_outside(struct rig *rig)
{
    const uint64_t stack = capture_inlined(rig);

    __asm__ volatile("" ::: "memory");
    return stack;
}

/* Innermost first, with what was inlined, file and line. */
static void stacks_have_names(void **state)
{
    struct frames frames = {.count = 0};
    struct rig rig;
    size_t at = 0;

    (void)state;
#ifndef HAS_LIBDW
    (void)printf("skip: built without libdw\n");
    skip();
#endif
    rig_open(&rig, (struct tarn_history_options){.max_frames = 64});
    const uint64_t stack = capture_outside(&rig);

    assert_int_equal(tarn_history_visit_stack(rig.history, stack, note_frame, &frames), TARN_OK);
    while (at < frames.count && strcmp(frames.names[at], "capture") != 0) {
        at++;
    }
    assert_true(at + 6 < frames.count);
    assert_string_equal(frames.names[at + 1], "capture_deep");
    assert_string_equal(frames.names[at + 2], "capture_deep");
    assert_string_equal(frames.names[at + 3], "capture_deep");
    assert_string_equal(frames.names[at + 4], "capture_inlined");
    assert_string_equal(frames.names[at + 5], "capture_outside");
    assert_string_equal(frames.names[at + 6], "stacks_have_names");
    for (size_t i = at; i < at + 7; i++) {
        assert_non_null(strstr(frames.files[i], "test_history.c"));
        assert_true(frames.lines[i] > 30);
    }
    assert_true(frames.lines[at + 4] < frames.lines[at + 5]);
    assert_true(frames.lines[at + 5] < frames.lines[at + 6]);
    rig.sink.release(rig.sink.context, stack);
    assert_int_equal(tarn_history_visit_stack(rig.history, 0, note_frame, &frames), TARN_OK);
    rig_close(&rig);
}

static void both_sources_see_this_function(void **state)
{
    static const enum tarn_stack_source sources[] = {TARN_STACK_FRAME_POINTERS, TARN_STACK_UNWIND};

    (void)state;
#ifndef HAS_LIBDW
    (void)printf("skip: built without libdw\n");
    skip();
#endif
    for (int i = 0; i < 2; i++) {
        struct frames frames = {.count = 0};
        struct rig rig;

        rig_open(&rig, (struct tarn_history_options){.stack_source = sources[i]});
        const uint64_t stack = capture(&rig);

        assert_int_equal(tarn_history_visit_stack(rig.history, stack, note_frame, &frames),
                         TARN_OK);
        assert_true(frames_have(&frames, "capture"));
        assert_true(frames_have(&frames, "both_sources_see_this_function"));
        if (sources[i] == TARN_STACK_UNWIND) { /* cmocka has no frame pointers */
            assert_true(frames_have(&frames, "main"));
        }
        rig.sink.release(rig.sink.context, stack);
        rig_close(&rig);
    }
}

/* ---- frames of a host language ---- */

struct host {
    uint64_t next;
    int live; /* references */
};

static uint64_t host_capture(void *context)
{
    struct host *host = context;

    host->live += host->next != 0;
    return host->next;
}

static void host_release(void *context, uint64_t stack)
{
    assert_true(stack != 0);
    ((struct host *)context)->live--;
}

static void host_describe(void *context, uint64_t stack, tarn_frame_visitor visit,
                          void *visit_context)
{
    const struct tarn_stack_frame frame = {.name = "forward", .filename = "m.py", .line = stack};

    (void)context;
    visit(visit_context, &frame);
}

static void a_host_language_adds_frames(void **state)
{
    struct host host = {.next = 42};
    const struct tarn_host_frames callbacks = {&host, host_capture, host_release, host_describe};
    struct frames frames = {.count = 0};
    struct rig rig;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.host = &callbacks, .max_stack_bytes = 2048});
    uint64_t stacks[3];

    for (volatile int i = 0; i < 3; i++) {
        host.next = i < 2 ? 42 : 43;
        stacks[i] = capture(&rig);
    }
    assert_int_equal(stacks[0], stacks[1]);
    assert_true(stacks[2] != stacks[0]);
    assert_int_equal(host.live, 2); /* one a stack */
    assert_int_equal(tarn_history_visit_stack(rig.history, stacks[2], note_frame, &frames),
                     TARN_OK);
    assert_true(frames.count > 1);
    assert_string_equal(frames.names[frames.count - 1], "forward");
    assert_int_equal(frames.lines[frames.count - 1], 43);
    assert_int_equal(tarn_history_host_stack(rig.history, stacks[0]), 42);
    assert_int_equal(tarn_history_host_stack(rig.history, stacks[2]), 43);
    assert_int_equal(tarn_history_host_stack(rig.history, 0), 0);
    for (int i = 0; i < 3; i++) {
        rig.sink.release(rig.sink.context, stacks[i]);
    }
    assert_int_equal(host.live, 0);
    uint64_t kept = 0;

    for (host.next = 1; host.next <= 50; host.next++) { /* beyond the bound nothing is kept */
        kept += capture(&rig) != 0;
    }
    assert_true(kept > 0 && kept < 50);
    assert_int_equal((uint64_t)host.live, kept);
    rig_close(&rig);
    assert_int_equal(host.live, 0);
}

static void a_host_language_may_be_alone(void **state)
{
    struct host host = {.next = 0};
    const struct tarn_host_frames callbacks = {&host, host_capture, NULL, host_describe};
    struct frames frames = {.count = 0};
    struct rig rig;

    (void)state;
    rig_open(&rig,
             (struct tarn_history_options){.host = &callbacks, .stack_source = TARN_STACK_NONE});
    assert_int_equal(capture(&rig), 0);
    host.next = 9;
    const uint64_t stack = capture(&rig);

    assert_int_equal(tarn_history_visit_stack(rig.history, stack, note_frame, &frames), TARN_OK);
    assert_int_equal(frames.count, 1);
    assert_int_equal(frames.lines[0], 9);
    rig.sink.release(rig.sink.context, stack);
    rig_close(&rig);
}

/* Numbers of stacks need not mean anything to the history's user. */
static void a_host_language_need_not_describe(void **state)
{
    struct host host = {.next = 9};
    const struct tarn_host_frames callbacks = {&host, host_capture, NULL, NULL};
    struct frames frames = {.count = 0};
    struct rig rig;

    (void)state;
    rig_open(&rig,
             (struct tarn_history_options){.host = &callbacks, .stack_source = TARN_STACK_NONE});
    const uint64_t stack = capture(&rig);

    assert_int_equal(tarn_history_host_stack(rig.history, stack), 9);
    assert_int_equal(tarn_history_visit_stack(rig.history, stack, note_frame, &frames), TARN_OK);
    assert_int_equal(frames.count, 0);
    rig.sink.release(rig.sink.context, stack);
    rig_close(&rig);
}

/* ---- annotations ---- */

static const char *text_of(const struct tn_interned *piece)
{
    return (const char *)piece->bytes;
}

static void annotations_are_a_ring_too(void **state)
{
    const struct tarn_annotation_field fields[] = {
        {"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}, {"e", "5"}};
    struct tn_history_copy copy;
    struct rig rig;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_annotations = 3});
    for (int i = 0; i < 5; i++) {
        const char name[] = {(char)('0' + i), '\0'};

        assert_int_equal(tarn_history_annotate(rig.history,
                                               i % 2 ? TARN_ANNOTATION_END : TARN_ANNOTATION_START,
                                               i, name, fields, (size_t)i),
                         TARN_OK);
    }
    assert_int_equal(usage(&rig).annotations, 3);
    assert_int_equal(usage(&rig).annotations_overwritten, 2);
    assert_true(tn_history_copy_prepare(rig.history, &copy));
    tn_history_copy_take(rig.history, &copy);
    assert_int_equal(copy.annotation_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct tn_annotation_entry *entry = &copy.annotations[i];

        assert_int_equal(entry->device, i + 2);
        assert_int_equal(text_of(entry->name)[0], '0' + (int)i + 2);
        assert_int_equal(entry->field_count, i + 2);
        assert_string_equal(text_of(entry->fields[2]), "b");
        assert_string_equal(text_of(entry->fields[3]), "2");
        assert_int_equal(entry->stage, (i + 2) % 2);
    }
    tarn_history_clear(rig.history); /* the copy's texts stay until it is released */
    assert_string_equal(text_of(copy.annotations[0].name), "2");
    tn_history_copy_release(rig.history, &copy);
    assert_int_equal(usage(&rig).texts, 0);
    assert_int_equal(usage(&rig).text_bytes, 0);

    assert_int_equal(tarn_history_annotate(rig.history, TARN_ANNOTATION_START, 0, NULL, NULL, 0),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_history_annotate(rig.history, TARN_ANNOTATION_START, 0, "x", NULL, 1),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_history_annotate(rig.history, TARN_ANNOTATION_START, 0, "x", fields, 5),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_close(&rig);
}

static void annotations_without_room_are_refused(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_text_bytes = 700});
    const struct tarn_annotation_field field = {"a key", "a value that is too much"};
    enum tarn_status st = TARN_OK;
    int count = 0;

    for (; st == TARN_OK && count < 50; count++) {
        const char name[] = {(char)('0' + count), '\0'};

        st = tarn_history_annotate(rig.history, TARN_ANNOTATION_START, 0, name, &field, 1);
    }
    assert_int_equal(st, TARN_ERR_LIMIT);
    assert_true(count > 1);
    assert_int_equal(usage(&rig).annotations, count - 1);
    assert_true(usage(&rig).texts_dropped > 0);
    rig_close(&rig);
}

/* ---- failing ---- */

static void options_are_checked(void **state)
{
    const struct tarn_history_options wrong[] = {
        {.struct_size = 0},
        {.struct_size = sizeof wrong[0], .max_frames = TARN_STACK_FRAMES_MAX + 1},
        {.struct_size = sizeof wrong[0], .stack_source = (enum tarn_stack_source)7},
    };
    const struct tarn_history_options huge = {.struct_size = sizeof huge,
                                              .max_entries = UINT64_MAX / 2};
    struct tarn_history *history = NULL;
    struct tarn_error error;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tarn_history_create(&wrong[i], &history, &error),
                         TARN_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "history"));
    }
    assert_int_equal(tarn_history_create(&huge, &history, &error), TARN_ERR_HOST_MEMORY);
    tarn_history_destroy(NULL);
}

static void ignore_frame(void *context, const struct tarn_stack_frame *frame)
{
    (void)context;
    (void)frame;
}

/* From open to close with the n-th host allocation failing: it is reported, nothing leaks. */
static enum tarn_status live(void)
{
    struct tarn_history *history = NULL;
    struct tarn_sink sink;
    struct seen seen = {.count = 0};
    enum tarn_status st = tarn_history_create(NULL, &history, NULL);

    if (st) {
        assert_null(history);
        return st;
    }
    tarn_history_get_sink(history, TARN_CONTEXT_ALL, &sink);
    const uint64_t stack = sink.capture(sink.context, TARN_CONTEXT_ALL);
    struct tarn_trace_event event = event_of(TARN_ACTION_ALLOC, 1, stack);

    event.user_metadata = "some text";
    sink.receive(sink.context, &event);
    const struct tarn_annotation_field field = {"key", "value"};

    st = tarn_history_annotate(history, TARN_ANNOTATION_START, 0, "name", &field, 1);
    if (st == TARN_OK) {
        st = tarn_history_walk(history, see, &seen);
    }
    if (st == TARN_OK) {
        st = tarn_history_visit_stack(history, stack, ignore_frame, NULL);
    }
    if (st == TARN_OK) {
        st = tarn_history_set_max_entries(history, 10, NULL);
    }
    if (stack) {
        sink.release(sink.context, stack);
    }
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    tarn_history_get_usage(history, &usage);
    if (usage.stacks_dropped > 0 || usage.texts_dropped > 0) {
        st = TARN_ERR_HOST_MEMORY; /* counted where nothing is returned */
    }
    assert_int_equal(usage.entries, 1);
    tarn_history_destroy(history);
    return st;
}

static void every_host_allocation_may_fail(void **state)
{
    const uint64_t before = tarn_host_get_usage().live_bytes;
    enum tarn_status st;
    uint64_t n = 0;

    (void)state;
    do {
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        n++;
        tarn_host_fail_nth(n);
        st = live();
        const bool failed = tarn_host_get_usage().alloc_calls - calls >= n;

        tarn_host_fail_nth(0);
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
        if (failed) {
            assert_int_not_equal(st, TARN_OK);
        } else {
            assert_int_equal(st, TARN_OK);
        }
    } while (st != TARN_OK && n < 500);
    assert_true(n > 8);
}

/* ---- a copy in two steps ---- */

enum {
    RING = 6000 /* more than are copied at a time */
};

static void send_many(struct rig *rig, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        send(rig, TARN_ACTION_ALLOC, i, 0);
    }
}

/* The copy has `count` entries with addresses from `first` on, as the ring when it was taken. */
static void copy_expect(struct rig *rig, struct tn_history_copy *copy, uint64_t first,
                        uint64_t count)
{
    tn_history_copy_take(rig->history, copy);
    assert_int_equal(copy->count, count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(copy->entries[i].address, first + i);
    }
}

/* Whatever comes between the first step and the second, the copy is of the second. */
static void a_copy_is_of_when_it_was_taken(void **state)
{
    struct rig rig;
    struct tn_history_copy copy;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = RING});
    send_many(&rig, 1, RING - 1000);
    assert_true(tn_history_copy_prepare(rig.history, &copy));
    assert_int_equal(copy.filled, RING - 1000);
    copy_expect(&rig, &copy, 1, RING - 1000);
    send_many(&rig, RING - 999, 2000); /* 1000 are overwritten */
    copy_expect(&rig, &copy, 1001, RING);
    send_many(&rig, RING + 1001, (uint64_t)3 * RING); /* all, and more than there is room for */
    copy_expect(&rig, &copy, 3 * RING + 1001, RING);
    assert_int_equal(tarn_history_set_max_entries(rig.history, 10, NULL), TARN_OK);
    copy_expect(&rig, &copy, 4 * RING + 991, 10);
    tarn_history_clear(rig.history);
    copy_expect(&rig, &copy, 0, 0);
    send_many(&rig, 7, 20);
    copy_expect(&rig, &copy, 17, 10);
    tn_history_copy_release(rig.history, &copy);
    rig_close(&rig);
}

/* Room is made for what there is and a little more: of many more the newest are copied. */
static void a_copy_has_room_for_some_more(void **state)
{
    struct rig rig;
    struct tn_history_copy copy;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = (uint64_t)2 * RING});
    send_many(&rig, 1, 10);
    assert_true(tn_history_copy_prepare(rig.history, &copy));
    send_many(&rig, 11, copy.capacity - 10);
    copy_expect(&rig, &copy, 1, copy.capacity);
    send_many(&rig, copy.capacity + 1, 100);
    copy_expect(&rig, &copy, 101, copy.capacity);
    tn_history_copy_release(rig.history, &copy);
    rig_close(&rig);
}

/* ---- pins ---- */

static void *unpin_later(void *history)
{
    const struct timespec while_destroyed = {.tv_nsec = 2000000};

    (void)nanosleep(&while_destroyed, NULL);
    tn_history_unpin(history);
    return NULL;
}

static uint64_t other_capture(void *context, enum tarn_context_level level)
{
    (void)context;
    (void)level;
    return 0;
}

static void a_pinned_history_stays(void **state)
{
    struct rig rig;
    pthread_t thread;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = 10});
    struct tarn_sink other = rig.sink;

    other.capture = other_capture;
    assert_null(tn_history_pin(&other)); /* a receiver of another kind */
    assert_ptr_equal(tn_history_pin(&rig.sink), rig.history);
    assert_int_equal(pthread_create(&thread, NULL, unpin_later, rig.history), 0);
    rig_close(&rig); /* waits */
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- forked children ---- */

static void child_asks(void *context)
{
    struct rig *rig = context;
    struct tn_history_copy copy;
    struct frames frames = {.count = 0};
    struct seen seen = {.count = 0};

    CHILD_REQUIRE(!tn_history_copy_prepare(rig->history, &copy));
    CHILD_REQUIRE(tarn_history_visit_stack(rig->history, 0, note_frame, &frames) == TARN_ERR_STATE);
    CHILD_REQUIRE(tarn_history_walk(rig->history, see, &seen) != TARN_OK && seen.count == 0);
    CHILD_REQUIRE(tarn_history_host_stack(rig->history, 0) == 0);
}

/* Its parent's threads may have held any lock. */
static void a_child_gets_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = 10});
    send_many(&rig, 1, 3);
    child_run(child_asks, &rig);
    assert_int_equal(walk(&rig).count, 3);
    rig_close(&rig);
}

struct sending {
    struct rig *rig;
    atomic_bool over;
};

static void *send_on(void *argument)
{
    struct sending *sending = argument;

    for (uint64_t n = RING + 1; !atomic_load(&sending->over); n++) {
        send(sending->rig, TARN_ACTION_ALLOC, n, 0);
    }
    return NULL;
}

/* No entry is missing, doubled, or of another time, however fast the ring turns. */
static void a_copy_of_a_busy_history_has_no_gap(void **state)
{
    struct rig rig;
    struct sending sending = {.rig = &rig};
    struct tn_history_copy copy;
    pthread_t thread;
    uint64_t last = 0;

    (void)state;
    rig_open(&rig, (struct tarn_history_options){.max_entries = RING});
    send_many(&rig, 1, RING);
    assert_int_equal(pthread_create(&thread, NULL, send_on, &sending), 0);
    for (int round = 0; round < 300; round++) {
        assert_true(tn_history_copy_prepare(rig.history, &copy));
        tn_history_copy_take(rig.history, &copy);
        for (uint64_t i = 1; i < copy.count; i++) {
            assert_int_equal(copy.entries[i].address, copy.entries[i - 1].address + 1);
        }
        assert_int_equal(copy.count, RING);
        assert_true(copy.entries[RING - 1].address >= last);
        last = copy.entries[RING - 1].address;
        tn_history_copy_release(rig.history, &copy);
    }
    atomic_store(&sending.over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rig_close(&rig);
}

static void contexts_are_entered_in_any_depth(void **state)
{
    char text[TARN_LABEL_MAX + 10];

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    tarn_enter_compile_context(NULL);
    tarn_enter_compile_context(text);
    assert_int_equal(strlen(tarn_get_compile_context()), TARN_LABEL_MAX - 1);
    for (int i = 2; i < TARN_COMPILE_CONTEXTS_MAX; i++) {
        tarn_enter_compile_context("kept");
    }
    tarn_enter_compile_context("beyond");
    tarn_enter_compile_context("beyond");
    assert_string_equal(tarn_get_compile_context(), "kept");
    tarn_pop_compile_context();
    tarn_pop_compile_context();
    assert_string_equal(tarn_get_compile_context(), "kept");
    for (int i = 1; i < TARN_COMPILE_CONTEXTS_MAX; i++) {
        tarn_pop_compile_context();
    }
    assert_string_equal(tarn_get_compile_context(), "");
    tarn_pop_compile_context();
    assert_string_equal(tarn_get_compile_context(), "N/A");
    tarn_host_fail_nth(1);
    tarn_enter_compile_context("no memory");
    assert_string_equal(tarn_get_compile_context(), "N/A");
    tarn_pop_compile_context();
    tarn_pop_compile_context();
}

static void push_without(void *context)
{
    const uint64_t before = tarn_host_get_usage().live_bytes;

    fail_calls(context, 0, 1, 0);
    CHILD_REQUIRE(tarn_push_compile_context("step") == TARN_ERR_HOST_MEMORY);
    CHILD_REQUIRE(fail_none());
    CHILD_REQUIRE(tarn_host_get_usage().live_bytes == before);
    CHILD_REQUIRE(tarn_set_user_metadata("x") ==
                  (strcmp(context, "pthread_key_create") == 0 ? TARN_ERR_HOST_MEMORY : TARN_OK));
    CHILD_REQUIRE(tarn_set_user_metadata("") == TARN_OK);
    CHILD_REQUIRE(tarn_host_get_usage().live_bytes == before);
}

/* The system has a limited number of places for what belongs to a thread. */
static void threads_may_have_no_place_for_labels(void **state)
{
    char key_create[] = "pthread_key_create";
    char setspecific[] = "pthread_setspecific";

    (void)state;
    child_run(push_without, key_create);
    child_run(push_without, setspecific);
}

static void actions_have_names(void **state)
{
    enum tarn_action action = TARN_ACTION_OOM;

    (void)state;
    assert_false(tarn_action_find("segment", &action));
    assert_int_equal(action, TARN_ACTION_OOM);
    assert_string_equal(tarn_action_name(TARN_ACTION_COUNT), "unknown");
    for (int i = 0; i < TARN_ACTION_COUNT; i++) {
        assert_true(tarn_action_find(tarn_action_name((enum tarn_action)i), &action));
        assert_int_equal(action, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_may_have_no_place_for_labels), /* before any has one */
        cmocka_unit_test(events_come_back_as_they_were),
        cmocka_unit_test(a_moment_can_be_shared),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(the_number_kept_can_change),
        cmocka_unit_test(some_actions_can_be_skipped),
        cmocka_unit_test(stacks_of_c_can_be_switched),
        cmocka_unit_test(texts_and_pools_are_kept),
        cmocka_unit_test(no_context_is_no_text),
        cmocka_unit_test(texts_are_bounded),
        cmocka_unit_test(a_stack_goes_with_its_last_holder),
        cmocka_unit_test(stacks_are_bounded),
        cmocka_unit_test(stacks_have_names),
        cmocka_unit_test(both_sources_see_this_function),
        cmocka_unit_test(a_host_language_adds_frames),
        cmocka_unit_test(a_host_language_may_be_alone),
        cmocka_unit_test(a_host_language_need_not_describe),
        cmocka_unit_test(annotations_are_a_ring_too),
        cmocka_unit_test(annotations_without_room_are_refused),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_copy_is_of_when_it_was_taken),
        cmocka_unit_test(a_copy_has_room_for_some_more),
        cmocka_unit_test(a_pinned_history_stays),
        cmocka_unit_test(a_child_gets_nothing),
        cmocka_unit_test(a_copy_of_a_busy_history_has_no_gap),
        cmocka_unit_test(every_host_allocation_may_fail),
        cmocka_unit_test(contexts_are_entered_in_any_depth),
        cmocka_unit_test(actions_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
