/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "base/os_stack.h"

#include "base/attr.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

static TN_COLD struct tn_os_stack stack_ask(void)
{
    struct tn_os_stack stack = {0, 0};
    pthread_attr_t attributes;
    void *low = NULL;
    size_t size = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
            stack.low = (uintptr_t)low;
            stack.end = stack.low + size;
        }
        (void)pthread_attr_destroy(&attributes);
    }
    return stack;
}

struct tn_os_stack tn_os_stack_bounds(void)
{
    static _Thread_local struct tn_os_stack known __attribute__((tls_model("initial-exec")));
    static _Thread_local bool asked __attribute__((tls_model("initial-exec")));

    if (tn_unlikely(!asked)) {
        asked = true;
        known = stack_ask();
    }
    return known;
}
