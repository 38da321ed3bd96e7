/* SPDX-License-Identifier: MIT */
#include "alloc/watch/publisher.h"

#include "alloc/watch/latch.h"
#include "base/clock.h"
#include "base/errinfo.h"
#include "base/os_fork.h"
#include "base/os_process.h"
#include "base/os_shared.h"
#include "base/os_wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    ROUNDS_PER_SECOND_MAX = 100, /* however often readers ask */
    ROWS_SHARE = 500,            /* of the time, at most one part in that many goes into rows */
    NAPS_AT_EXIT = 1000          /* of a millisecond at most: then the program ends all the same */
};

#define SECOND_NS UINT64_C(1000000000)

struct place {
    struct tn_publisher_source *source; /* NULL: free */
    struct tn_page_record record;
    uint64_t rows_next_ns; /* on the monotonic clock */
};

/* All zero but for the mutexes before the first source, after the last one and in a new child. */
struct publisher {
    pthread_mutex_t changes; /* held while sources come and go; taken before `lock` */
    pthread_mutex_t lock;    /* guards the places */
    struct place places[TN_PAGE_SLOTS];
    unsigned count; /* of sources; this and the following are guarded by `changes` */
    struct tn_page_head *page;
    char path[TN_FOLDER_PATH_MAX];
    pthread_t thread;
    bool thread_runs;
    _Atomic bool stops; /* the thread is to end */
    _Atomic bool ended; /* and has */
};

static const struct publisher nothing = {.changes = PTHREAD_MUTEX_INITIALIZER,
                                         .lock = PTHREAD_MUTEX_INITIALIZER};
static struct publisher publisher = {.changes = PTHREAD_MUTEX_INITIALIZER,
                                     .lock = PTHREAD_MUTEX_INITIALIZER};

/* Forks and the end of the program are watched from the first source on; guarded by `changes`. */
static struct tn_fork_watch fork_watch;
static bool is_watching;

static uint64_t time_of_day_ns(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- publishing ---- */

static struct tn_page_slot *page_slot(struct tn_page_head *page, int slot)
{
    return (struct tn_page_slot *)(void *)((char *)page + TN_PAGE_HEAD_SIZE) + slot;
}

/* Looks at one source and writes its record; rows not more often than once a second, and less when
 * they take long. */
static void place_publish(struct place *place, int slot)
{
    const uint64_t begin = tn_clock_now_ns();
    const bool renews_rows = begin >= place->rows_next_ns;
    struct tn_page_record *record = &place->record;

    const uint64_t now = time_of_day_ns();

    if (place->source->look(place->source->context, record, now, renews_rows)) {
        record->time_ns = now;
        record->missed = 0;
        if (renews_rows) {
            const uint64_t pause = (tn_clock_now_ns() - begin) * ROWS_SHARE;

            place->rows_next_ns = begin + (pause > SECOND_NS ? pause : SECOND_NS);
        }
    } else {
        record->missed++;
    }
    tn_latch_write(page_slot(publisher.page, slot), record);
}

static void publish_all(void)
{
    (void)pthread_mutex_lock(&publisher.lock);
    for (int i = 0; i < TN_PAGE_SLOTS; i++) {
        if (publisher.places[i].source) {
            place_publish(&publisher.places[i], i);
        }
    }
    (void)pthread_mutex_unlock(&publisher.lock);
}

static void *publish_on_request(void *argument)
{
    const struct timespec pause = {.tv_nsec = (long)SECOND_NS / ROUNDS_PER_SECOND_MAX};
    struct tn_page_head *page = argument;
    uint32_t answered = 0;

    tn_os_thread_name("tarn-watch");
    while (!atomic_load_explicit(&publisher.stops, memory_order_acquire)) {
        const uint32_t asked = atomic_load_explicit(&page->asked, memory_order_acquire);

        if (asked == answered) {
            tn_os_shared_wait(&page->asked, asked, UINT64_MAX);
            continue;
        }
        publish_all();
        answered = asked;
        atomic_store_explicit(&page->answered, answered, memory_order_release);
        tn_os_shared_wake(&page->answered);
        (void)nanosleep(&pause, NULL);
    }
    atomic_store_explicit(&publisher.ended, true, memory_order_release);
    return NULL;
}

/* ---- the thread ---- */

/* Signals are the program's own threads' business. */
static bool thread_start(void)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
        return false;
    }
    atomic_store(&publisher.stops, false);
    atomic_store(&publisher.ended, false);
    publisher.thread_runs =
        pthread_create(&publisher.thread, NULL, publish_on_request, publisher.page) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return publisher.thread_runs;
}

/* It is to end after what it is doing. */
static void thread_call(void)
{
    struct tn_page_head *page = publisher.page;

    atomic_store(&publisher.stops, true);
    atomic_fetch_add(&page->asked, 1);
    tn_os_shared_wake(&page->asked);
}

/* Without `lock`, which the thread may be waiting for. */
static void thread_join(void)
{
    (void)pthread_join(publisher.thread, NULL);
    publisher.thread_runs = false;
}

/* ---- the page ---- */

/* In the child, which has no thread and no mapping. */
static void publisher_forked(struct tn_fork_watch *watch)
{
    (void)watch;
    memcpy(&publisher, &nothing, sizeof publisher);
}

/* What is destroyed later still finds its place. */
static void publisher_at_exit(void)
{
    if (!publisher.thread_runs) {
        return;
    }
    tn_os_shared_remove(publisher.path);
    thread_call();
    for (unsigned i = 0; i < NAPS_AT_EXIT && !atomic_load(&publisher.ended); i++) {
        tn_os_nap(i);
    }
    if (atomic_load(&publisher.ended)) {
        thread_join();
    }
}

static void head_write(struct tn_page_head *head, bool controlled)
{
    head->version = TN_PAGE_VERSION;
    head->head_size = TN_PAGE_HEAD_SIZE;
    head->slot_size = TN_PAGE_SLOT_SIZE;
    head->slot_count = TN_PAGE_SLOTS;
    head->process = (uint64_t)tn_os_process_id();
    if (!tn_os_process_start(tn_os_process_id(), &head->process_start)) {
        head->process_start = 0; /* without /proc no reader finds the process either */
    }
    head->created_ns = time_of_day_ns();
    tn_os_process_name(head->program, sizeof head->program);
    (void)snprintf(head->tarn_version, sizeof head->tarn_version, "%s", tarn_version());
    head->controlled = controlled ? TN_CONTROL_WANTED : TN_CONTROL_OFF;
    atomic_thread_fence(memory_order_release); /* the magic number says that the rest is there */
    memcpy(head->magic, TN_PAGE_MAGIC, sizeof head->magic);
}

static enum tarn_status page_create(const char *runtime, bool controlled, struct tarn_error *error)
{
    char folder[TN_FOLDER_PATH_MAX];
    const int room = TN_FOLDER_PATH_MAX - 24;

    if (!tn_os_folder_private(runtime, "tarn", true, folder)) {
        return tn_fail(error, TARN_ERR_IO, "no folder for what is watched: %s: %s", folder,
                       errno == EPERM ? "it belongs to somebody else, is a link, or is open to "
                                        "others"
                                      : strerror(errno));
    }
    (void)snprintf(publisher.path, sizeof publisher.path, "%.*s/%lld.page", room, folder,
                   (long long)tn_os_process_id());
    publisher.page = tn_os_shared_create(publisher.path, TN_PAGE_SIZE);
    if (!publisher.page) {
        return tn_fail(error, TARN_ERR_IO, "%s: %s", publisher.path, strerror(errno));
    }
    head_write(publisher.page, controlled);
    return TARN_OK;
}

/* No thread uses it. */
static void page_remove(void)
{
    tn_os_shared_remove(publisher.path);
    tn_os_shared_unmap(publisher.page, TN_PAGE_SIZE);
    publisher.page = NULL;
}

static bool watching_begin(void)
{
    if (!is_watching && tn_os_forks_watch() && atexit(publisher_at_exit) == 0) {
        tn_fork_watch_init(&fork_watch, publisher_forked);
        is_watching = true;
    }
    return is_watching;
}

/* The first source: page and thread. */
static enum tarn_status publisher_begin(const char *runtime, bool controlled,
                                        struct tarn_error *error)
{
    if (!watching_begin()) {
        return tn_fail_memory(error);
    }
    const enum tarn_status st = page_create(runtime, controlled, error);

    if (st) {
        return st;
    }
    if (!thread_start()) {
        page_remove();
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no thread for what is watched");
    }
    return TARN_OK;
}

static void publisher_end(void)
{
    if (publisher.thread_runs) { /* else it ended with the program */
        thread_call();
        thread_join();
    }
    page_remove();
}

/* ---- sources ---- */

/* Under `changes`. */
static int place_free(void)
{
    for (int i = 0; i < TN_PAGE_SLOTS; i++) {
        if (!publisher.places[i].source) {
            return i;
        }
    }
    return -1;
}

static void place_take(int slot, struct tn_publisher_source *source)
{
    struct place *place = &publisher.places[slot];

    (void)pthread_mutex_lock(&publisher.lock);
    *place = (struct place){.source = source};
    place->record.state = TN_SLOT_LIVE;
    place->record.device_free = source->device_free;
    place->record.device_total = source->device_total;
    place->record.device_time_ns = time_of_day_ns();
    (void)snprintf(publisher.page->bus_ids[slot], TN_PAGE_BUS_ID_MAX, "%s",
                   source->bus_id ? source->bus_id : "");
    place_publish(place, slot);
    (void)pthread_mutex_unlock(&publisher.lock);
    source->slot = slot;
    publisher.count++;
}

enum tarn_status tn_publisher_add(struct tn_publisher_source *source, const char *runtime,
                                  bool controlled, struct tarn_error *error)
{
    enum tarn_status st;

    (void)pthread_mutex_lock(&publisher.changes);
    const int slot = place_free();

    if (slot < 0) {
        st = tn_fail(error, TARN_ERR_LIMIT, "no more than %d allocators of a process are watched",
                     (int)TN_PAGE_SLOTS);
    } else {
        st = publisher.count == 0 ? publisher_begin(runtime, controlled, error) : TARN_OK;
    }
    if (st == TARN_OK) {
        place_take(slot, source);
    }
    (void)pthread_mutex_unlock(&publisher.changes);
    return st;
}

/* Under `changes` or `lock`. */
static bool source_is_placed(const struct tn_publisher_source *source)
{
    return source->slot >= 0 && publisher.places[source->slot].source == source;
}

static void place_leave(struct place *place, int slot)
{
    (void)pthread_mutex_lock(&publisher.lock);
    place->record.state = TN_SLOT_CLOSED;
    place_publish(place, slot);
    place->source = NULL;
    (void)pthread_mutex_unlock(&publisher.lock);
    publisher.count--;
}

void tn_publisher_remove(struct tn_publisher_source *source)
{
    (void)pthread_mutex_lock(&publisher.changes);
    if (source_is_placed(source)) {
        place_leave(&publisher.places[source->slot], source->slot);
        if (publisher.count == 0) {
            publisher_end();
        }
    }
    (void)pthread_mutex_unlock(&publisher.changes);
}

void tn_publisher_set_controlled(void)
{
    (void)pthread_mutex_lock(&publisher.changes);
    if (publisher.page) {
        atomic_store_explicit(&publisher.page->controlled, TN_CONTROL_TAKEN, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&publisher.changes);
}

void tn_publisher_note_oom(const struct tn_publisher_source *source, const struct tn_page_oom *oom)
{
    (void)pthread_mutex_lock(&publisher.lock);
    if (source_is_placed(source)) {
        struct tn_page_record *record = &publisher.places[source->slot].record;

        record->oom = *oom;
        record->oom.time_ns = time_of_day_ns();
        record->device_free = oom->device_free;
        record->device_total = oom->device_total;
        record->device_time_ns = record->oom.time_ns;
    }
    (void)pthread_mutex_unlock(&publisher.lock);
}
