/* SPDX-License-Identifier: MIT */
#include "plug/preload/signals.h"

#include "plug/preload/process.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static const int ending[] = {SIGTERM, SIGINT, SIGHUP};

enum {
    ENDING = sizeof ending / sizeof *ending
};

static sem_t woken;
static _Atomic int received;

static void handler(int number)
{
    const int before = errno;

    atomic_store(&received, number);
    (void)sem_post(&woken); /* one of the few calls that are allowed here */
    errno = before;
}

static void handlers_remove(void)
{
    for (int i = 0; i < ENDING; i++) {
        struct sigaction now;

        if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler == handler) {
            now.sa_handler = SIG_DFL;
            (void)sigaction(ending[i], &now, NULL);
        }
    }
}

static void handlers_add(void)
{
    for (int i = 0; i < ENDING; i++) {
        struct sigaction now;

        if (sigaction(ending[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
            now.sa_handler == SIG_DFL) {
            struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

            (void)sigemptyset(&action.sa_mask);
            (void)sigaction(ending[i], &action, NULL);
        }
    }
}

static void *wait_for_one(void *nothing)
{
    sigset_t open;

    while (sem_wait(&woken) != 0) {
    }
    const int number = atomic_load(&received);

    run_finish();
    handlers_remove();
    (void)sigemptyset(&open);
    (void)sigaddset(&open, number);
    (void)pthread_sigmask(SIG_UNBLOCK, &open, NULL);
    (void)raise(number);
    return nothing;
}

void run_signals_start(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;

    if (sem_init(&woken, 0, 0) != 0 || pthread_attr_init(&attributes) != 0) {
        return;
    }
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all); /* the program's signals are not for this thread */
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    if (pthread_create(&thread, &attributes, wait_for_one, NULL) == 0) {
        handlers_add();
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
}

void run_signals_forked(void)
{
    handlers_remove();
}
