/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* RTLD_NEXT, pthread_getattr_np */
#include "support/failing.h"
#include "support/test.h"

#include "base/os_stack.h"

#include <pthread.h>

FAILING(int, ENOENT, pthread_getattr_np, (pthread_t thread, pthread_attr_t *out), (thread, out))
FAILING(int, EINVAL, pthread_attr_getstack,
        (const pthread_attr_t *from, void **low_out, size_t *size_out), (from, low_out, size_out))

struct answer {
    struct tn_os_stack stack;
    bool contains; /* a local variable */
};

static void *ask(void *argument)
{
    struct answer *answer = argument;

    answer->stack = tn_os_stack_bounds();
    answer->contains =
        (uintptr_t)&answer >= answer->stack.low && (uintptr_t)&answer < answer->stack.end;
    return NULL;
}

/* Each thread asks once. */
static struct answer in_a_thread(void)
{
    struct answer answer = {.contains = true};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, ask, &answer), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return answer;
}

static void a_local_variable_is_within(void **state)
{
    (void)state;
    assert_true(in_a_thread().contains);
}

static void bounds_may_be_unknown(void **state)
{
    static const char *const calls[] = {"pthread_getattr_np", "pthread_attr_getstack"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fail_calls(calls[i], 0, 1, 0);
        const struct answer answer = in_a_thread();

        assert_true(fail_none());
        assert_int_equal(answer.stack.low, 0);
        assert_int_equal(answer.stack.end, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_local_variable_is_within),
        cmocka_unit_test(bounds_may_be_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
