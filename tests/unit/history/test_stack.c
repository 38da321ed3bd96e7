/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT, pthread_getattr_np */
#include "support/child.h"
#include "support/failing.h"
#include "support/test.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/os_stack.h"
#include "history/libunwind.h"
#include "history/stack.h"
#include "tarn/history.h"

enum {
    MAX = TARN_STACK_FRAMES_MAX
};

FAILING(int, ENOENT, pthread_getattr_np, (pthread_t thread, pthread_attr_t *out), (thread, out))
FAILING(void *, NULL, dlopen, (const char *path, int flags), (path, flags))

struct seen {
    uint64_t addresses[MAX + 1];
    size_t count;
    uint64_t hash;
};

typedef size_t walker(uint64_t *addresses, size_t max, uint64_t *hash_io);

static void look(walker *walk, size_t max, struct seen *seen)
{
    memset(seen, 0, sizeof *seen);
    seen->hash = 1;
    seen->count = walk(seen->addresses, max, &seen->hash);
}

/* No call becomes a jump. */
#define STAY() __asm__ volatile("" ::: "memory")

static TN_NOINLINE void look_deep(walker *walk, int calls, size_t max, struct seen *seen)
{
    if (calls > 0) {
        look_deep(walk, calls - 1, max, seen);
    } else {
        look(walk, max, seen);
    }
    STAY();
}

/* Deeper by so many calls: as many addresses more, all the same but for the last of them. */
static void calls_are_frames(walker *walk)
{
    struct seen flat;
    struct seen deep;

    look_deep(walk, 1, MAX, &flat);
    look_deep(walk, 41, MAX, &deep);
    assert_true(flat.count >= 3);
    assert_int_equal(deep.count, flat.count + 40);
    assert_true(deep.hash != flat.hash);
    size_t same = 0;

    for (size_t i = 1; i < deep.count; i++) {
        same += deep.addresses[i] == deep.addresses[i - 1];
    }
    assert_true(same >= 39);
}

static void both_ways_see_calls(void **state)
{
    (void)state;
    calls_are_frames(tn_stack_walk);
    calls_are_frames(tn_stack_unwind);
}

static void never_more_than_asked_for(void **state)
{
    static walker *const walkers[] = {tn_stack_walk, tn_stack_unwind};

    (void)state;
    for (int w = 0; w < 2; w++) {
        for (size_t max = 0; max < 20; max++) {
            struct seen seen;

            look_deep(walkers[w], 30, max, &seen);
            assert_int_equal(seen.count, max);
            assert_int_equal(seen.addresses[max], 0);
        }
    }
}

static void equal_stacks_have_equal_hashes(void **state)
{
    struct seen seen[2];

    (void)state;
    for (volatile int i = 0; i < 2; i++) { /* one call, not two unrolled */
        look_deep(tn_stack_walk, 10, MAX, &seen[i]);
    }
    assert_memory_equal(&seen[0], &seen[1], sizeof seen[0]);
}

/* A function that says its frame is somewhere else: the walk ends, whatever it finds there. */
static TN_NOINLINE void look_with_frame(uintptr_t outer, struct seen *seen)
{
    uintptr_t *frame = __builtin_frame_address(0);
    const uintptr_t right = *frame;

    *frame = outer;
    look(tn_stack_walk, MAX, seen);
    *frame = right;
    STAY();
}

static void broken_chains_end(void **state)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const struct tn_os_stack stack = tn_os_stack_bounds();
    const uintptr_t places[] = {0,
                                1,
                                8,
                                here + 1,
                                here + 4,
                                here - 4096,
                                stack.low,
                                stack.end - 8,
                                stack.end - 1,
                                stack.end,
                                stack.end + 4096,
                                UINTPTR_MAX,
                                UINTPTR_MAX - 7,
                                UINTPTR_MAX - 15};

    (void)state;
    assert_true(stack.low < here && here < stack.end);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct seen seen;

        look_with_frame(places[i], &seen);
        assert_true(seen.count >= 1);
        assert_true(seen.count <= 3);
    }
}

/* A function that says it returns to somewhere else. */
static TN_NOINLINE void look_with_return(uintptr_t to, struct seen *seen)
{
    uintptr_t *frame = __builtin_frame_address(0);
    const uintptr_t right = frame[1];

    frame[1] = to;
    look(tn_stack_walk, MAX, seen);
    frame[1] = right;
    STAY();
}

static void what_is_no_code_ends_the_stack(void **state)
{
    struct seen seen;

    (void)state;
    look_with_return((uintptr_t)&seen, &seen);
    assert_true(seen.count == 1 || seen.count == 2); /* with or without `look` */
    for (size_t i = 0; i < seen.count; i++) {
        assert_true(seen.addresses[i] != (uintptr_t)&seen);
    }
}

/* Functions of two modules that call each other, as far as the frames say. */
static void modules_may_call_back_and_forth(void **state)
{
    enum {
        CALLS = 10
    };
    struct {
        uintptr_t outer;
        uintptr_t return_address;
    } frames[CALLS];
    const uintptr_t places[] = {(uintptr_t)&look + 1, (uintptr_t)&strlen + 1};
    struct seen seen;

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        frames[i].outer = i + 1 < CALLS ? (uintptr_t)&frames[i + 1] : 0;
        frames[i].return_address = places[i % 2];
    }
    look_with_frame((uintptr_t)&frames[0], &seen);
    assert_true(seen.count > CALLS);
    for (int i = 0; i < CALLS; i++) {
        assert_true(seen.addresses[seen.count - CALLS + (size_t)i] == places[i % 2]);
    }
}

static void *look_without_bounds(void *argument)
{
    struct seen *seen = argument;

    fail_calls("pthread_getattr_np", 0, 1, 0);
    look_deep(tn_stack_walk, 20, MAX, &seen[0]);
    look_deep(tn_stack_walk, 20, 0, &seen[1]);
    return NULL;
}

/* Nothing of it is read but where the walk itself returns to. */
static void a_stack_without_bounds_has_one_frame(void **state)
{
    struct seen seen[2];
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, look_without_bounds, seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(fail_none());
    assert_int_equal(seen[0].count, 1);
    assert_true(seen[0].addresses[0] != 0);
    assert_true(seen[0].hash != 1);
    assert_int_equal(seen[1].count, 0);
    assert_int_equal(seen[1].hash, 1);
}

static void *look_in_thread(void *argument)
{
    look_deep(tn_stack_walk, 20, MAX, argument);
    return NULL;
}

static void threads_have_stacks_of_their_own(void **state)
{
    struct seen seen;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, look_in_thread, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(seen.count >= 22);
    assert_true(seen.count <= 30);
}

/* ---- with libunwind ---- */

/* A call that neither has a frame pointer to follow nor is the last thing that its caller does. */
static TN_NOINLINE void look_twice(int calls, struct seen *first, struct seen *second,
                                   void (*between)(void))
{
    if (calls > 0) {
        look_twice(calls - 1, first, second, between);
    } else {
        for (volatile int i = 0; i < 2; i++) { /* from one place */
            look(tn_stack_unwind, MAX, i == 0 ? first : second);
            if (i == 0) {
                between();
            }
        }
    }
    STAY();
}

/* Loads a module and unloads it: what is remembered of code may then be untrue. */
static void unload(void)
{
    void *module = dlopen(EXPORTER, RTLD_NOW | RTLD_LOCAL);

    assert_non_null(module);
    assert_int_equal(dlclose(module), 0);
}

static void nothing(void)
{
}

static void load_none(void *context)
{
    fail_calls("dlopen", 0, context == NULL, ENOENT);
    CHILD_REQUIRE(!context || dlopen(context, RTLD_NOW | RTLD_LOCAL));
    tn_libunwind_load();
    CHILD_REQUIRE(fail_none());
    CHILD_REQUIRE(!tn_libunwind_get());
}

/* Where there is none, or one without the function, the compiler's unwinder does. */
static void libunwind_may_be_missing(void **state)
{
    char path[] = LIBUNWIND_INCOMPLETE;

    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("libunwind is not opened under the thread sanitizer\n");
    skip();
#endif
    child_run(load_none, NULL);
    child_run(load_none, path);
}

static void libunwind_sees_what_the_compiler_s_unwinder_sees(void **state)
{
    struct seen seen[2];

    (void)state;
    assert_null(tn_libunwind_get()); /* not yet loaded: the tests before were without it */
    tn_libunwind_load();
    if (!tn_libunwind_get()) {
        print_message("libunwind is not installed\n");
        skip();
    }
    calls_are_frames(tn_stack_unwind);
    for (size_t max = 0; max < 20; max++) {
        look_deep(tn_stack_unwind, 30, max, &seen[0]);
        assert_int_equal(seen[0].count, max);
        assert_int_equal(seen[0].addresses[max], 0);
    }
    look_deep(tn_stack_unwind, MAX, MAX, &seen[0]);
    assert_int_equal(seen[0].count, MAX);
    look_twice(20, &seen[0], &seen[1], nothing);
    assert_memory_equal(&seen[0], &seen[1], sizeof seen[0]);
    look_twice(20, &seen[0], &seen[1], unload);
    assert_null(tn_libunwind_get());
    assert_memory_equal(&seen[0], &seen[1], sizeof seen[0]);
    tn_libunwind_load(); /* for good */
    assert_null(tn_libunwind_get());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_see_calls),
        cmocka_unit_test(never_more_than_asked_for),
        cmocka_unit_test(equal_stacks_have_equal_hashes),
        cmocka_unit_test(broken_chains_end),
        cmocka_unit_test(what_is_no_code_ends_the_stack),
        cmocka_unit_test(modules_may_call_back_and_forth),
        cmocka_unit_test(a_stack_without_bounds_has_one_frame),
        cmocka_unit_test(threads_have_stacks_of_their_own),
        cmocka_unit_test(libunwind_may_be_missing),
        cmocka_unit_test(libunwind_sees_what_the_compiler_s_unwinder_sees), /* last: loads it */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
