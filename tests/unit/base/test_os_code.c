/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/os_code.h"

static int own_function(int number)
{
    return number + 1;
}

static uintptr_t address_of(int (*function)(int))
{
    return (uintptr_t)function;
}

static void code_of_all_modules_is_found(void **state)
{
    struct tn_code_range own;
    struct tn_code_range other;

    (void)state;
    assert_true(tn_os_code_find(address_of(own_function), &own));
    assert_true(tn_code_range_has(&own, address_of(own_function)));
    assert_true(tn_os_code_find(address_of(abs), &other));
    assert_true(tn_code_range_has(&other, address_of(abs)));
    assert_true(own.end <= other.begin || other.end <= own.begin);
    assert_false(tn_code_range_has(&own, own.end));
    assert_false(tn_code_range_has(&own, own.begin - 1));
}

/* The library is linked into this program, so nothing is its own. */
static void the_program_is_not_the_library(void **state)
{
    const struct tn_code_range own = tn_os_code_own();

    (void)state;
    assert_false(tn_code_range_has(&own, address_of(own_function)));
    assert_int_equal(own.begin, own.end);
}

static void data_is_no_code(void **state)
{
    static const int constant = 7;
    struct tn_code_range range;
    int local = 0;

    (void)state;
    assert_false(tn_os_code_find(0, &range));
    assert_false(tn_os_code_find(1, &range));
    assert_false(tn_os_code_find(UINTPTR_MAX, &range));
    assert_false(tn_os_code_find((uintptr_t)&local, &range));
    assert_false(tn_os_code_find((uintptr_t)&constant, &range));
    assert_false(tn_os_code_find((uintptr_t)state, &range));
}

static void *find_often(void *argument)
{
    struct tn_code_range range;
    bool *right = argument;

    for (int i = 0; i < 20000; i++) {
        *right = *right && !tn_os_code_find((uintptr_t)i, &range);
    }
    return NULL;
}

static void threads_may_ask_at_once(void **state)
{
    pthread_t threads[4];
    bool right[4] = {true, true, true, true};

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, find_often, &right[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(right[i]);
    }
}

enum {
    FINDERS = 3
};

#define CHANGES_NS 400000000u /* there is a rebuild every 10 ms at most */

static _Atomic bool is_over;

static void *find_known(void *argument)
{
    struct tn_code_range range;
    uint64_t *missed = argument;

    for (unsigned i = 0; !is_over; i++) {
        *missed += !tn_os_code_find(address_of(i % 2 ? own_function : abs), &range);
    }
    return NULL;
}

/* Misses make it look again, as often as it does. */
static void *change_modules(void *argument)
{
    struct tn_code_range range;

    (void)argument;
    for (const uint64_t begin = tn_clock_now_ns(); tn_clock_now_ns() - begin < CHANGES_NS;) {
        void *module = dlopen("libm.so.6", RTLD_NOW);

        (void)tn_os_code_find(1, &range);
        if (module) {
            (void)dlclose(module);
        }
    }
    is_over = true;
    return NULL;
}

/* What is loaded is found while the table is made anew. */
static void nothing_is_lost_while_modules_change(void **state)
{
    pthread_t finders[FINDERS];
    pthread_t changer;
    uint64_t missed[FINDERS] = {0};

    (void)state;
    assert_int_equal(pthread_create(&changer, NULL, change_modules, NULL), 0);
    for (int i = 0; i < FINDERS; i++) {
        assert_int_equal(pthread_create(&finders[i], NULL, find_known, &missed[i]), 0);
    }
    for (int i = 0; i < FINDERS; i++) {
        assert_int_equal(pthread_join(finders[i], NULL), 0);
    }
    assert_int_equal(pthread_join(changer, NULL), 0);
    for (int i = 0; i < FINDERS; i++) {
        assert_int_equal(missed[i], 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_of_all_modules_is_found),
        cmocka_unit_test(the_program_is_not_the_library),
        cmocka_unit_test(data_is_no_code),
        cmocka_unit_test(threads_may_ask_at_once),
        cmocka_unit_test(nothing_is_lost_while_modules_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
