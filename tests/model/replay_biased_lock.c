/* SPDX-License-Identifier: MIT */
/*
 * replay_biased_lock TRACE...: runs traces of biased_lock.pml through the real lock
 * (replay_biased_lock.sh makes the traces). The lock is compiled so that each access of its comes
 * to this program first (accesses.h). There are three threads as in the model, each of which stops
 * before every access that the model has, until the trace says that it is done. It must be the one
 * that the model does, with the same value, and the lock must be had and refused where the model's
 * is.
 *
 * Memory is as weak as the model's: what a thread stores waits in a buffer of its own until the
 * trace says that it is visible; only the barrier empties it. Accesses that the model does not
 * have, of counts and of who sits where, are done at once.
 *
 * A line is "THREAD ACTION NUMBER NUMBER". "acquire", "try", "visit": a call begins; "has",
 * "fails": it ends; "leave LEANS SEAT": the lock is given back, to be biased or not. "leans SEAT"
 * and "biased SEAT": `leans` is read, 7 is nobody's; "store PLACE VALUE"; "word": `taken` is taken;
 * "busy": it was not free; "owner INSIDE SEAT": who had the bias last is inside or not; "end": the
 * bias ends; "drain THREAD", "passed": the barrier; "visible": the thread's oldest store is.
 */
#include "support/test.h"

#include "base/biased_lock.h"
#include "base/os_barrier.h"
#include "base/os_wait.h"
#include "model/accesses.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

enum {
    THREADS = 3, /* as in the model */
    SEATS = 2,
    DEPTH = 2,
    NONE = 7,
    LEANS = 0,
    TAKEN = 1,
    INSIDE = 2, /* of the first seat */
    PLACES = INSIDE + SEATS,
    ELSEWHERE /* not in the model */
};

enum what {
    IDLE, /* waits for a call */
    LOAD,
    STORE,
    EXCHANGE,
    BARRIER
};

enum call {
    ACQUIRE,
    TRY,
    VISIT,
    LEAVE,
    QUIT
};

struct store {
    unsigned place;
    uint64_t value;
};

struct thread {
    pthread_t thread;
    sem_t goes;
    /* what it stopped before, and what comes of it */
    enum what what;
    unsigned place;
    uint64_t value;
    int order;
    /* the call that it is to make, and its result */
    enum call call;
    bool has;
    bool visits;
    struct store buffer[DEPTH];
    unsigned stored;
};

static struct tn_biased_lock lock;
static struct thread threads[THREADS];
static sem_t stopped; /* a thread has */

/* What is rare, in all traces: the owner was found inside, or came too late. */
static unsigned found_inside;
static unsigned came_late;
static _Thread_local struct thread *self;

/* ---- memory ---- */

static volatile void *address_of(unsigned place)
{
    switch (place) {
    case LEANS:
        return &lock.leans;
    case TAKEN:
        return &lock.taken;
    default:
        return &lock.seats[place - INSIDE].inside;
    }
}

static unsigned bytes_of(unsigned place)
{
    return place == LEANS ? sizeof(uint64_t) : sizeof(uint32_t);
}

static unsigned place_of(const volatile void *at)
{
    unsigned place = 0;

    while (place < PLACES && address_of(place) != at) {
        place++;
    }
    return place == PLACES ? ELSEWHERE : place;
}

/* As the model has it. */
static uint64_t modelled(unsigned place, uint64_t value)
{
    if (place != LEANS) {
        return value;
    }
    return value == 0 ? NONE : (value - (uintptr_t)lock.seats) / sizeof lock.seats[0];
}

static void make_visible(struct thread *thread)
{
    assert_true(thread->stored > 0);
    memory_write(address_of(thread->buffer[0].place), bytes_of(thread->buffer[0].place),
                 thread->buffer[0].value);
    thread->buffer[0] = thread->buffer[1];
    thread->stored--;
}

static void drain(struct thread *thread)
{
    while (thread->stored > 0) {
        make_visible(thread);
    }
}

/* A thread sees its own stores. */
static uint64_t seen_by(const struct thread *thread, unsigned place)
{
    for (unsigned i = thread->stored; i > 0; i--) {
        if (thread->buffer[i - 1].place == place) {
            return thread->buffer[i - 1].value;
        }
    }
    return memory_read(address_of(place), bytes_of(place));
}

/* ---- in the threads ---- */

static uint64_t stop_before(enum what what, unsigned place, uint64_t value, int order)
{
    self->order = order;
    self->what = what;
    self->place = place;
    self->value = value;
    (void)sem_post(&stopped);
    (void)sem_wait(&self->goes);
    return self->value;
}

uint64_t access_load(const volatile void *at, unsigned bytes, int order)
{
    const unsigned place = place_of(at);

    return place == ELSEWHERE || !self ? memory_read(at, bytes)
                                       : stop_before(LOAD, place, 0, order);
}

void access_store(volatile void *at, unsigned bytes, uint64_t value, int order)
{
    const unsigned place = place_of(at);

    if (place == ELSEWHERE || !self) {
        memory_write(at, bytes, value);
    } else {
        (void)stop_before(STORE, place, value, order);
    }
}

uint64_t access_exchange(volatile void *at, unsigned bytes, uint64_t value, int order)
{
    const unsigned place = place_of(at);

    if (place == ELSEWHERE || !self) {
        const uint64_t old = memory_read(at, bytes);

        memory_write(at, bytes, value);
        return old;
    }
    return stop_before(EXCHANGE, place, value, order);
}

void access_fence(int order)
{
    (void)order;
}

bool tn_os_barrier_available(void)
{
    return true;
}

void tn_os_barrier(void)
{
    (void)stop_before(BARRIER, ELSEWHERE, 0, memory_order_seq_cst);
}

void tn_os_nap(unsigned nap)
{
    (void)nap;
}

void tn_os_relax(void)
{
}

static bool make_call(enum call call)
{
    switch (call) {
    case ACQUIRE:
        tn_biased_lock_acquire_another(&lock);
        return true;
    case TRY:
        return tn_biased_lock_try(&lock);
    case VISIT:
        if (tn_biased_lock_visit(&lock)) {
            tn_lock_leaving(&lock); /* the rest of it is `leave` */
            return true;
        }
        return false;
    case LEAVE:
        tn_biased_lock_leave(&lock);
        return false;
    case QUIT:
        break;
    }
    return false;
}

static void *thread_main(void *argument)
{
    self = argument;
    for (;;) {
        (void)stop_before(IDLE, ELSEWHERE, 0, memory_order_relaxed);
        if (self->call == QUIT) {
            return NULL;
        }
        self->has = make_call(self->call);
    }
}

/* ---- steps ---- */

struct line {
    unsigned thread;
    char action[8];
    unsigned a;
    unsigned b;
};

static void go_on(struct thread *thread)
{
    (void)sem_post(&thread->goes);
    (void)sem_wait(&stopped);
}

static void call_begins(struct thread *thread, enum call call)
{
    assert_int_equal(thread->what, IDLE);
    thread->call = call;
    go_on(thread);
}

static void expect(const struct thread *thread, enum what what, unsigned place)
{
    assert_int_equal(thread->what, what);
    assert_int_equal(thread->place, place);
}

static void load(struct thread *thread, unsigned place, uint64_t expected)
{
    expect(thread, LOAD, place);
    thread->value = seen_by(thread, place);
    assert_int_equal(modelled(place, thread->value), expected);
    go_on(thread);
}

/* What the holder did is visible to who sees this store: the model has no other memory. */
static bool gives_up(unsigned place, uint64_t value)
{
    return place == LEANS ? value != NONE : value == 0;
}

static void expect_acquire(const struct thread *thread)
{
    assert_true(thread->order != memory_order_relaxed && thread->order != memory_order_release);
}

static void store(struct thread *thread, unsigned place, uint64_t value)
{
    expect(thread, STORE, place);
    assert_int_equal(modelled(place, thread->value), value);
    assert_true(thread->stored < DEPTH);
    assert_true(!gives_up(place, value) || thread->order == memory_order_release);
    came_late += place >= INSIDE && value == 0 && thread->call == ACQUIRE;
    thread->buffer[thread->stored++] = (struct store){.place = place, .value = thread->value};
    go_on(thread);
}

/* As the model's, it is not what the thread stored itself and nobody sees yet: then a thread that
 * tries fails without need. */
static void look_at_word(struct thread *thread, uint64_t expected)
{
    expect(thread, LOAD, TAKEN);
    thread->value = memory_read(&lock.taken, sizeof(uint32_t));
    assert_int_equal(thread->value, expected);
    go_on(thread);
}

static void take_word(struct thread *thread)
{
    look_at_word(thread, 0);
    expect(thread, EXCHANGE, TAKEN);
    assert_int_equal(thread->value, 1);
    expect_acquire(thread);
    memory_write(&lock.taken, sizeof(uint32_t), 1);
    thread->value = 0;
    go_on(thread);
}

/* Who visits looks several times. */
static void look_for_owner(struct thread *thread, const struct line *line)
{
    if (line->b == NONE) {
        assert_null(lock.seat); /* nothing to look at */
        return;
    }
    assert_ptr_equal(lock.seat, &lock.seats[line->b]);
    found_inside += line->a;
    do {
        expect_acquire(thread);
        load(thread, INSIDE + line->b, line->a);
    } while (line->a == 1 && thread->what == LOAD);
}

static void end_bias(struct thread *thread)
{
    drain(thread); /* the barrier's, which is part of this step in the model */
    store(thread, LEANS, NONE);
    drain(thread);
    expect(thread, BARRIER, ELSEWHERE);
}

/* Whether the lock is biased afterwards is decided by counts, which the model does not have. */
static void leave(struct thread *thread, const struct line *line)
{
    const bool leans = line->a == 1;

    lock.streak = 1;
    lock.needed = leans ? 1 : UINT32_MAX;
    memory_write(&lock.wanted, sizeof(uint32_t), thread->visits && !leans);
    call_begins(thread, LEAVE);
    if (leans && line->b != NONE) {
        expect(thread, STORE, LEANS);
    } else {
        expect(thread, STORE, line->b == NONE ? TAKEN : INSIDE + line->b);
    }
}

static bool begins(struct thread *thread, const struct line *line)
{
    if (strcmp(line->action, "acquire") == 0) {
        call_begins(thread, ACQUIRE);
    } else if (strcmp(line->action, "try") == 0) {
        call_begins(thread, TRY);
    } else if (strcmp(line->action, "visit") == 0) {
        thread->visits = true;
        call_begins(thread, VISIT);
    } else if (strcmp(line->action, "leave") == 0) {
        leave(thread, line);
    } else {
        return false;
    }
    return true;
}

static bool ends(const struct thread *thread, const struct line *line)
{
    const bool has = strcmp(line->action, "has") == 0;

    if (!has && strcmp(line->action, "fails") != 0) {
        return false;
    }
    assert_int_equal(thread->what, IDLE);
    assert_int_equal(thread->has, has);
    assert_true(!has || lock.visited == thread->visits);
    return true;
}

static void step(const struct line *line)
{
    struct thread *thread = &threads[line->thread];

    if (begins(thread, line) || ends(thread, line)) {
        return;
    }
    if (strcmp(line->action, "leans") == 0 || strcmp(line->action, "biased") == 0) {
        load(thread, LEANS, line->a);
    } else if (strcmp(line->action, "store") == 0) {
        store(thread, line->a, line->b);
    } else if (strcmp(line->action, "word") == 0) {
        take_word(thread);
    } else if (strcmp(line->action, "busy") == 0) {
        look_at_word(thread, 1);
    } else if (strcmp(line->action, "owner") == 0) {
        look_for_owner(thread, line);
    } else if (strcmp(line->action, "end") == 0) {
        end_bias(thread);
    } else if (strcmp(line->action, "drain") == 0) {
        drain(&threads[line->a]);
    } else if (strcmp(line->action, "visible") == 0) {
        make_visible(thread);
    } else {
        assert_string_equal(line->action, "passed");
        expect(thread, BARRIER, ELSEWHERE);
        go_on(thread);
    }
}

/* ---- traces ---- */

static int trace_count;
static char **traces;
static char place_in_trace[64];

/* The lock has as many seats as the model's: somebody else sits on the others. */
static void scene_open(void)
{
    tn_biased_lock_init(&lock, TN_LOCK_ALLOCATOR);
    for (int i = SEATS; i < TN_SEATS; i++) {
        memory_write(&lock.seats[i].thread, sizeof(uint64_t), 1);
    }
    memset(threads, 0, sizeof threads);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(sem_init(&threads[i].goes, 0, 0), 0);
        assert_int_equal(pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]), 0);
        (void)sem_wait(&stopped);
    }
}

static void scene_close(void)
{
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(threads[i].what, IDLE);
        threads[i].call = QUIT;
        (void)sem_post(&threads[i].goes);
        assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
        drain(&threads[i]);
        (void)sem_destroy(&threads[i].goes);
    }
    tn_biased_lock_fini(&lock);
}

static void the_lock_does_what_the_model_does(void **state)
{
    unsigned long steps = 0;

    (void)state;
    assert_int_equal(sem_init(&stopped, 0, 0), 0);
    for (int i = 0; i < trace_count; i++) {
        struct line line;
        FILE *file = fopen(traces[i], "r");

        assert_non_null(file);
        scene_open();
        /* NOLINTNEXTLINE(cert-err34-c): written by the model, and checked */
        while (fscanf(file, "%u %7s %u %u", &line.thread, line.action, &line.a, &line.b) == 4) {
            (void)snprintf(place_in_trace, sizeof place_in_trace, "%s, step %lu: %u %s", traces[i],
                           ++steps, line.thread, line.action);
            assert_true(line.thread < THREADS);
            step(&line);
        }
        scene_close();
        (void)fclose(file);
    }
    place_in_trace[0] = '\0';
    print_message("%d traces, %lu steps: %u times inside, %u times too late\n", trace_count, steps,
                  found_inside, came_late);
    assert_true(steps > 10000);
    assert_true(found_inside > 5);
    assert_true(came_late > 2);
}

static int say_where(void **state)
{
    (void)state;
    if (place_in_trace[0] != '\0') {
        print_message("%s\n", place_in_trace);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_lock_does_what_the_model_does, say_where)};

    trace_count = argc - 1;
    traces = argv + 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
