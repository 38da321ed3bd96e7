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
static _Atomic int received; /* the signal that ends the process, 0: it was a request */

static void handler(int number)
{
    const int before = errno;

    if (number != run_settings()->request) {
        atomic_store(&received, number);
    }
    (void)sem_post(&woken); /* one of the few calls that are allowed here */
    errno = before;
}

static void handler_remove(int number)
{
    struct sigaction now;

    if (number != 0 && sigaction(number, NULL, &now) == 0 && now.sa_handler == handler) {
        now.sa_handler = SIG_DFL;
        (void)sigaction(number, &now, NULL);
    }
}

static void handler_add(int number)
{
    struct sigaction now;

    if (number != 0 && sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
        now.sa_handler == SIG_DFL) {
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

        (void)sigemptyset(&action.sa_mask);
        (void)sigaction(number, &action, NULL);
    }
}

static void handlers_each(void (*act)(int number))
{
    for (int i = 0; i < ENDING; i++) {
        act(ending[i]);
    }
    act(run_settings()->request);
}

/* The signal that ends the process; requests until then are answered. */
static int signal_wait(void)
{
    int number = 0;

    while (number == 0) {
        while (sem_wait(&woken) != 0) {
        }
        number = atomic_load(&received);
        if (number == 0) {
            run_answer();
        }
    }
    return number;
}

static void *wait_for_one(void *nothing)
{
    sigset_t open;
    const int number = signal_wait();

    run_finish();
    handlers_each(handler_remove);
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
        handlers_each(handler_add);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
}

void run_signals_forked(void)
{
    handlers_each(handler_remove);
}
