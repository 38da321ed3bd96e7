/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* sched_setaffinity, syscall */
#include "schedule/schedule.h"

#include "support/draw.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    NOBODY = SCHEDULE_THREADS_MAX,
    YIELDS_MAX = 1 << 17, /* of one schedule; more is a livelock, */
    POINTS_MAX = 1 << 25, /* and so are more points of one thread */
    CHANGES_MAX = 4       /* of priorities in one schedule */
};

enum thread_state {
    THREAD_READY,
    THREAD_YIELDED, /* ready, after all others */
    THREAD_ASLEEP,
    THREAD_DONE
};

struct thread {
    _Atomic uint32_t turn; /* 1 = it may run */
    enum thread_state state;
    _Atomic uint32_t *word; /* it sleeps on */
    uint64_t points;
    uint64_t priority;
    uint32_t next; /* index of its next prescribed switch, or the end of the list */
    pthread_t thread;
};

static struct {
    struct schedule given;
    schedule_body *body;
    void *context;
    struct thread threads[SCHEDULE_THREADS_MAX];
    uint32_t count;
    uint32_t running;
    uint64_t random;
    bool plain_counts; /* accesses to plain memory are points as well */
    bool by_priority;
    uint64_t every;        /* points between two switches on average */
    uint64_t left;         /* points to the next switch */
    uint64_t changes_left; /* of priorities */
    uint64_t yields;
    uint64_t fingerprint;
    enum schedule_end end;
    _Atomic uint32_t over;
} run;

static _Thread_local bool is_scheduled;

static void futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void raise_flag(_Atomic uint32_t *flag)
{
    atomic_store(flag, 1);
    futex_wake(flag);
}

static void await_flag(_Atomic uint32_t *flag)
{
    while (atomic_exchange(flag, 0) == 0) {
        futex_wait(flag, 0);
    }
}

/* ---- who goes on ---- */

static void draw_distance(void)
{
    run.left = 1 + draw(&run.random) % (2 * run.every);
}

/* The strategy of the schedule: a random walk, or priorities with a few changes. */
static void draw_strategy(void)
{
    run.random = run.given.seed;
    run.plain_counts = draw(&run.random) % 2;
    run.by_priority = draw(&run.random) % 2;
    run.every = (uint64_t)4 << draw(&run.random) % 11;
    run.changes_left = 1 + draw(&run.random) % CHANGES_MAX;
    for (uint32_t i = 0; i < run.count; i++) {
        run.threads[i].priority = CHANGES_MAX + 1 + draw(&run.random) % 1000;
    }
    draw_distance();
}

/* Of these threads, the one that the strategy lets run. */
static uint32_t pick(const uint32_t *list, uint32_t count)
{
    uint32_t best = list[0];

    if (run.given.prescribed) {
        return best;
    }
    if (!run.by_priority) {
        return list[draw(&run.random) % count];
    }
    for (uint32_t i = 1; i < count; i++) {
        best = run.threads[list[i]].priority > run.threads[best].priority ? list[i] : best;
    }
    return best;
}

/* A thread in that state, NOBODY if there is none. `self` is considered last. */
static uint32_t choose_in(enum thread_state state, uint32_t self)
{
    uint32_t list[SCHEDULE_THREADS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 1; i < run.count; i++) {
        const uint32_t other = (self + i) % run.count;

        if (run.threads[other].state == state) {
            list[count++] = other;
        }
    }
    if (count > 0) {
        return pick(list, count);
    }
    return run.threads[self].state == state ? self : NOBODY;
}

/* Threads that yielded may try again, except this one. */
static void ready_yielded(uint32_t except)
{
    for (uint32_t i = 0; i < run.count; i++) {
        if (i != except && run.threads[i].state == THREAD_YIELDED) {
            run.threads[i].state = THREAD_READY;
        }
    }
}

/* When all have yielded, each goes once before one goes again: whatever the priorities are, the
 * thread that the others wait for is among them. */
static uint32_t choose(uint32_t self)
{
    uint32_t ready = choose_in(THREAD_READY, self);

    if (ready == NOBODY) {
        ready_yielded(self);
        ready = choose_in(THREAD_READY, self);
    }
    return ready != NOBODY ? ready : choose_in(THREAD_YIELDED, self);
}

static void note(uint32_t to, uintptr_t place)
{
    struct schedule_list *made = run.given.made;
    const struct schedule_switch happened = {
        .point = run.threads[run.running].points,
        .from = run.running,
        .to = to,
        .place = place,
    };

    run.fingerprint =
        (run.fingerprint ^ (happened.point << 8 | happened.from << 4 | to)) * 0x100000001b3u;
    if (made && made->count < SCHEDULE_SWITCHES_MAX) {
        made->list[made->count++] = happened;
    } else if (made) {
        made->cut = true;
    }
}

/* Lets `next` run; returns when it is this thread's turn again. */
static void hand_over(uint32_t next, uintptr_t place)
{
    struct thread *self = &run.threads[run.running];

    if (next == run.running) {
        self->state = THREAD_READY;
        return;
    }
    note(next, place);
    run.running = next;
    run.threads[next].state = THREAD_READY;
    raise_flag(&run.threads[next].turn);
    if (self->state != THREAD_DONE) {
        await_flag(&self->turn);
    }
}

static void finish(enum schedule_end end)
{
    struct thread *self = &run.threads[run.running];

    run.end = end;
    raise_flag(&run.over);
    if (self->state != THREAD_DONE) {
        await_flag(&self->turn); /* for ever */
    }
}

/* ---- prescribed switches ---- */

static bool may_run(uint32_t number)
{
    return number < run.count && (run.threads[number].state == THREAD_READY ||
                                  run.threads[number].state == THREAD_YIELDED);
}

/* Index in the list of the thread's first switch at `from` or behind it. */
static uint32_t prescribed_find(uint32_t number, uint32_t from)
{
    const struct schedule_list *list = run.given.prescribed;

    while (from < list->count && list->list[from].from != number) {
        from++;
    }
    return from;
}

/* The thread that the list has for this point, if that can run; NOBODY otherwise. */
static uint32_t prescribed_now(void)
{
    const struct schedule_list *list = run.given.prescribed;
    struct thread *self = &run.threads[run.running];

    while (self->next < list->count && list->list[self->next].point < self->points) {
        self->next = prescribed_find(run.running, self->next + 1);
    }
    if (self->next == list->count || list->list[self->next].point != self->points) {
        return NOBODY;
    }
    return may_run(list->list[self->next].to) ? list->list[self->next].to : NOBODY;
}

/* ---- points ---- */

/* This thread cannot go on now: another does, or all is over. */
static void hand_over_forced(enum schedule_end otherwise, uintptr_t place)
{
    uint32_t next = run.given.prescribed ? prescribed_now() : NOBODY;

    next = next != NOBODY ? next : choose(run.running);
    if (next == NOBODY) {
        finish(otherwise);
    } else {
        hand_over(next, place);
    }
}

/* The end of the distance that was drawn. */
static void point_drawn(uintptr_t place)
{
    draw_distance();
    ready_yielded(NOBODY);
    if (run.by_priority && run.changes_left == 0) {
        return;
    }
    if (run.by_priority) {
        run.threads[run.running].priority = run.changes_left--; /* below all others */
    }
    hand_over(choose(run.running), place);
}

void schedule_point(bool is_atomic, uintptr_t place)
{
    if (!is_scheduled) {
        return;
    }
    if (++run.threads[run.running].points > POINTS_MAX) {
        finish(SCHEDULE_LIVELOCK);
    }
    if (run.given.prescribed) {
        const uint32_t next = prescribed_now();

        if (next != NOBODY) {
            hand_over(next, place);
        }
    } else if ((is_atomic || run.plain_counts) && --run.left == 0) {
        point_drawn(place);
    }
}

void schedule_yield(uintptr_t place)
{
    if (!is_scheduled) {
        return;
    }
    run.threads[run.running].points++;
    run.threads[run.running].state = THREAD_YIELDED;
    if (++run.yields > YIELDS_MAX) {
        finish(SCHEDULE_LIVELOCK);
    }
    hand_over_forced(SCHEDULE_LIVELOCK, place);
}

void schedule_sleep(_Atomic uint32_t *word, uint32_t expected, uintptr_t place)
{
    if (!is_scheduled || atomic_load(word) != expected) {
        return;
    }
    struct thread *self = &run.threads[run.running];

    self->points++;
    self->word = word;
    self->state = THREAD_ASLEEP;
    hand_over_forced(SCHEDULE_DEADLOCK, place);
}

void schedule_wake_one(_Atomic uint32_t *word)
{
    for (uint32_t i = 0; is_scheduled && i < run.count; i++) {
        if (run.threads[i].state == THREAD_ASLEEP && run.threads[i].word == word) {
            run.threads[i].state = THREAD_READY;
            return;
        }
    }
}

/* ---- a run ---- */

static bool all_are_done(void)
{
    for (uint32_t i = 0; i < run.count; i++) {
        if (run.threads[i].state != THREAD_DONE) {
            return false;
        }
    }
    return true;
}

static void *thread_main(void *argument)
{
    struct thread *self = argument;

    await_flag(&self->turn);
    is_scheduled = true;
    run.body(run.context, (unsigned)(self - run.threads));
    is_scheduled = false;
    self->points++;
    self->state = THREAD_DONE;
    hand_over_forced(all_are_done() ? SCHEDULE_DONE : SCHEDULE_DEADLOCK, 0);
    await_flag(&self->turn); /* what frees its labels when it ends is not scheduled */
    return NULL;
}

/* Handing over is cheaper on one processor, and only one thread runs anyway. */
static void stay_on_this_processor(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)sched_getcpu(), &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void threads_start(void)
{
    for (uint32_t i = 0; i < run.count; i++) {
        struct thread *thread = &run.threads[i];

        atomic_store(&thread->turn, 0);
        thread->state = THREAD_READY;
        thread->word = NULL;
        thread->points = 0;
        thread->next = run.given.prescribed ? prescribed_find(i, 0) : 0;
        if (pthread_create(&thread->thread, NULL, thread_main, thread) != 0) {
            abort();
        }
    }
}

enum schedule_end schedule_run(const struct schedule *schedule, unsigned threads,
                               schedule_body *body, void *context)
{
    run.given = *schedule;
    run.body = body;
    run.context = context;
    run.count = threads;
    run.yields = 0;
    run.fingerprint = 0xcbf29ce484222325u;
    run.end = SCHEDULE_DONE;
    atomic_store(&run.over, 0);
    stay_on_this_processor();
    threads_start();
    draw_strategy();
    run.running = 0; /* the choice of the first is the first switch */
    raise_flag(&run.threads[0].turn);
    await_flag(&run.over);
    for (uint32_t i = 0; i < run.count && run.end == SCHEDULE_DONE; i++) {
        raise_flag(&run.threads[i].turn);
        (void)pthread_join(run.threads[i].thread, NULL);
    }
    return run.end;
}

uint64_t schedule_fingerprint(void)
{
    return run.fingerprint;
}
