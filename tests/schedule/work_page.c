/* SPDX-License-Identifier: MIT */
/*
 * The page of counters: two allocators come and go, each with numbers that it counts up, a reader
 * asks and reads, and the publisher's own thread answers. No record that is read is of two looks;
 * after an answer there is a look that began after the question; nobody looks at an allocator that
 * was removed; and without allocators there is neither page nor thread.
 */
#define _GNU_SOURCE /* mkdtemp */
#include "alloc/watch/latch.h"
#include "alloc/watch/publisher.h"
#include "base/os_code.h"
#include "base/os_process.h"
#include "base/os_shared.h"
#include "schedule/threads.h"
#include "schedule/workload.h"
#include "support/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    SOURCES = 2,
    READER = SOURCES,
    LENT,
    THREADS,
    LIVES = 2,         /* of each source */
    QUESTIONS = 4,     /* of the reader */
    PATIENCE = 40,     /* how often it looks for an answer before it gives up */
    TRIES = 60,        /* to read a record: more than there are publications */
    PIECE_BYTES = 512, /* that the system copies at once */
    NAP_BYTES = 2048   /* after which it lets others run */
};

struct source {
    struct tn_publisher_source source; /* of the publisher */
    struct scene *scene;
    int64_t life;
    int64_t looks;
    bool is_looking;
    bool may_look;  /* before it is added until after it is removed */
    bool is_placed; /* after it was added until before it is removed */
};

struct scene {
    char folder[64];
    char path[TN_FOLDER_PATH_MAX];
    struct source sources[SOURCES];
    uint64_t seed;
    struct tn_page_head *head; /* as the reader has mapped it; NULL: it has not */
    unsigned left;             /* threads */
    bool over;
    const char *wrong;
};

static void expect(struct scene *scene, bool holds, const char *otherwise)
{
    if (!holds && !scene->wrong) {
        scene->wrong = otherwise;
    }
}

static void point(void)
{
    schedule_point(true, (uintptr_t)__builtin_return_address(0));
}

static void yield(void)
{
    schedule_yield((uintptr_t)__builtin_return_address(0));
}

/* ---- the sources ---- */

/* A record of n: all its counters of memory are n, and what is derived from n is too. */
static bool look(void *context, struct tn_page_record *record, uint64_t now_ns, bool renews_rows)
{
    struct source *source = context;

    (void)now_ns;
    (void)renews_rows;
    expect(source->scene, source->may_look, "it looked at a source that was removed");
    expect(source->scene, !source->is_looking, "two threads look at one source");
    source->is_looking = true;
    const int64_t n = ++source->looks;

    if (n % 4 == 3) { /* it would have to wait */
        source->is_looking = false;
        return false;
    }
    record->retries = n;
    point();
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        record->by_pool[kind][0][0] = n;
        point();
    }
    record->ooms = 3 * n;
    record->device = source->life;
    source->is_looking = false;
    return true;
}

static void note_oom(struct source *source, uint64_t requested)
{
    const struct tn_page_oom oom = {.requested = requested, .rounded = 2 * requested};

    tn_publisher_note_oom(&source->source, &oom);
}

/* There may be other readers. */
static void ask_too(struct scene *scene)
{
    if (scene->head) {
        atomic_fetch_add(&scene->head->asked, 1);
        schedule_shared_wake(&scene->head->asked);
    }
}

static void live(struct scene *scene, struct source *source, uint64_t *random)
{
    source->source = (struct tn_publisher_source){.context = source, .look = look};
    source->may_look = true;
    source->life++;
    source->looks = 0;
    const enum tarn_status st = tn_publisher_add(&source->source, scene->folder, false, NULL);

    expect(scene, st == TARN_OK, "a source was refused");
    source->is_placed = true;
    for (uint64_t i = draw(random) % 6; i > 0; i--) {
        yield();
        note_oom(source, draw(random) % 1000);
        ask_too(scene);
    }
    source->is_placed = false;
    tn_publisher_remove(&source->source);
    source->may_look = false;
    note_oom(source, 1); /* of nobody */
}

/* ---- the reader ---- */

static bool file_read(void *context, uint64_t offset, void *bytes_out, size_t size)
{
    const int file = *(const int *)context;
    bool all = true;

    for (size_t at = 0; all && at < size; at += PIECE_BYTES) {
        const size_t piece = size - at < PIECE_BYTES ? size - at : PIECE_BYTES;

        if (at % NAP_BYTES == 0) {
            yield();
        } else {
            point();
        }
        all = tn_os_shared_read(file, offset + at, (char *)bytes_out + at, piece);
    }
    return all;
}

static void expect_whole(struct scene *scene, const struct tn_page_record *record)
{
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        expect(scene, record->by_pool[kind][0][0] == record->retries, "a record of two looks");
    }
    expect(scene, record->ooms == 3 * record->retries, "a record of two looks");
    expect(scene, record->oom.rounded == 2 * record->oom.requested, "half a failed request");
    expect(scene, record->state == TN_SLOT_LIVE || record->state == TN_SLOT_CLOSED,
           "a record without a state");
}

/* False if there is none yet. */
static bool slot_read(struct scene *scene, int file, int slot, struct tn_page_record *record_out)
{
    const uint64_t offset = TN_PAGE_HEAD_SIZE + (uint64_t)slot * TN_PAGE_SLOT_SIZE;

    for (int i = 0; i < TRIES; i++) {
        const enum tn_latch_result result = tn_latch_read(file_read, &file, offset, record_out);

        expect(scene, result != TN_LATCH_CUT_OFF, "the page is too short");
        if (result == TN_LATCH_READ) {
            expect_whole(scene, record_out);
            return true;
        }
        if (result == TN_LATCH_EMPTY) {
            return false;
        }
    }
    expect(scene, false, "a record cannot be read");
    return false;
}

/* What the reader knows of a source when it asks. */
struct known {
    int64_t life; /* 0: it is not placed */
    int64_t looks;
};

static struct known known_now(const struct source *source)
{
    return source->is_placed ? (struct known){source->life, source->looks}
                             : (struct known){.life = 0};
}

/* After an answer: the sources that have been there all the time were looked at. */
static void expect_newer(struct scene *scene, int file, const struct known *before)
{
    for (int i = 0; i < SOURCES; i++) {
        const struct source *source = &scene->sources[i];
        struct tn_page_record record = {0};
        const struct known now = known_now(source);
        const bool has_read = now.life != 0 && slot_read(scene, file, source->source.slot, &record);

        if (now.life == 0 || now.life != before[i].life || known_now(source).life != now.life) {
            continue;
        }
        expect(scene, now.looks > before[i].looks, "an answer without a look");
        expect(scene, has_read, "an answer without a record");
        expect(scene, record.retries + (int64_t)record.missed > before[i].looks,
               "an answer with an old record");
        expect(scene, record.state == TN_SLOT_LIVE, "a live source is closed");
    }
}

static void ask(struct scene *scene, int file)
{
    struct tn_page_head *head = scene->head;
    struct known before[SOURCES];
    int patience = PATIENCE;

    for (int i = 0; i < SOURCES; i++) {
        before[i] = known_now(&scene->sources[i]);
    }
    const uint32_t number = atomic_fetch_add(&head->asked, 1) + 1;

    schedule_shared_wake(&head->asked);
    while ((int32_t)(atomic_load(&head->answered) - number) < 0 && patience-- > 0) {
        yield();
    }
    if (patience > 0) {
        expect_newer(scene, file, before);
    }
    for (int i = 0; i < SOURCES; i++) {
        struct tn_page_record record;

        (void)slot_read(scene, file, i, &record);
    }
}

static void read_page(struct scene *scene)
{
    bool writable;
    const int file = tn_os_shared_open(scene->path, &writable);

    yield();
    if (file < 0) {
        return;
    }
    struct tn_page_head *head = tn_os_shared_map(file, TN_PAGE_HEAD_SIZE);

    scene->head = head;
    if (head) {
        ask(scene, file);
    }
    scene->head = NULL;
    tn_os_shared_unmap(head, TN_PAGE_HEAD_SIZE);
    tn_os_descriptor_close(file);
}

/* ---- threads ---- */

static void work(void *context, unsigned thread)
{
    struct scene *scene = context;
    uint64_t random = scene->seed * SCHEDULE_THREADS_MAX + thread;

    if (thread == LENT) {
        schedule_lend_thread(&scene->over);
        return;
    }
    for (int i = 0; thread == READER && i < QUESTIONS; i++) {
        read_page(scene);
    }
    for (int i = 0; thread < SOURCES && i < LIVES; i++) {
        live(scene, &scene->sources[thread], &random);
    }
    if (--scene->left == 0) {
        expect(scene, !tn_os_shared_exists(scene->path), "a page without sources");
        expect(scene, !schedule_runs_lent(), "a thread without sources");
        scene->over = true;
    }
}

/* ---- before and afterwards ---- */

static void *scene_open(uint64_t seed)
{
    struct scene *scene = calloc(1, sizeof *scene);
    const char *temporary =
        access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* memory, if any */

    scene->seed = seed;
    scene->left = THREADS - 1;
    for (int i = 0; i < SOURCES; i++) {
        scene->sources[i].scene = scene;
    }
    (void)snprintf(scene->folder, sizeof scene->folder, "%s/tarn-schedule-XXXXXX", temporary);
    if (!mkdtemp(scene->folder)) {
        perror(scene->folder);
        abort();
    }
    (void)snprintf(scene->path, sizeof scene->path, "%s/tarn/%lld.page", scene->folder,
                   (long long)tn_os_process_id());
    return scene;
}

static const char *scene_close(void *context)
{
    struct scene *scene = context;
    char inner[sizeof scene->folder + 8];
    const char *wrong = scene->wrong;

    (void)snprintf(inner, sizeof inner, "%s/tarn", scene->folder);
    if ((rmdir(inner) != 0 || rmdir(scene->folder) != 0) && !wrong) {
        wrong = "files are left";
    }
    free(scene);
    return wrong;
}

const struct workload workload_page = {
    .name = "page", .threads = THREADS, .open = scene_open, .body = work, .close = scene_close};
