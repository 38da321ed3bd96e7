/* SPDX-License-Identifier: MIT */
/*
 * One tracker that two threads report their storages to, one of them modules as well, while a third
 * reads it. The writers know what their own storages are, so afterwards its bytes by device and
 * category are the sums of theirs; meanwhile every answer must be of one moment: the tracker's own
 * check finds nothing, categories add up to totals, and peaks never fall.
 */
#include "schedule/workload.h"
#include "support/draw.h"
#include "tarn/tracker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 3, /* the first reads */
    READS = 8,
    STEPS = 24,
    OWN = 4,
    DEVICES = 2,
    MODULES = 3,
    UNIT = 512 /* of a GPU; sizes are multiples of it */
};

static const char *const device_names[DEVICES] = {"cpu", "cuda:0"};

struct storage {
    uint64_t id; /* 0: none */
    uint32_t device;
    uint32_t category;
    uint64_t bytes;
};

struct writer {
    struct storage own[OWN];
    uint64_t made;
    uint32_t module; /* its innermost one's number, from 1; 0: none */
};

struct scene {
    struct tarn_tracker *tracker;
    struct writer writers[THREADS];
    uint64_t seed;
    int64_t peak; /* of the first device, as read last */
    const char *wrong;
};

static void expect(struct scene *scene, bool holds, const char *otherwise)
{
    if (!holds && !scene->wrong) {
        scene->wrong = otherwise;
    }
}

/* ---- the writers ---- */

static void report(struct scene *scene, struct tarn_track_event event)
{
    size_t applied = 0;

    expect(scene,
           tarn_tracker_apply(scene->tracker, &event, 1, &applied, NULL) == TARN_OK && applied == 1,
           "an event was refused");
}

/* The same text has the same number, whoever adds it first, and keeps it. */
static uint32_t name_of(struct scene *scene, enum tarn_track_names names, const char *text)
{
    uint32_t id = 0;
    uint32_t again = 0;

    expect(scene,
           tarn_tracker_add_name(scene->tracker, names, text, &id, NULL) == TARN_OK &&
               tarn_tracker_add_name(scene->tracker, names, text, &again, NULL) == TARN_OK,
           "a name was refused");
    const char *kept = tarn_tracker_get_name(scene->tracker, names, id);

    expect(scene, id == again && kept && strcmp(kept, text) == 0, "a name has two numbers");
    return id;
}

static void create(struct scene *scene, unsigned thread, struct storage *storage, uint64_t draw_of)
{
    const uint32_t device = (uint32_t)(draw_of % DEVICES);

    *storage = (struct storage){.id = (uint64_t)thread << 32 | ++scene->writers[thread].made,
                                .device = device,
                                .category = (uint32_t)(draw_of / 2 % TARN_TRACK_CATEGORY_COUNT),
                                .bytes = (1 + draw_of / 16 % 8) * UNIT};
    report(scene, (struct tarn_track_event){
                      .kind = TARN_TRACK_CREATE,
                      .category = storage->category,
                      .name = name_of(scene, TARN_TRACK_DEVICE, device_names[device]),
                      .id = storage->id,
                      .bytes = storage->bytes});
}

static void change(struct scene *scene, struct storage *storage, uint64_t draw_of)
{
    switch (draw_of % 3) {
    case 0:
        storage->category = (uint32_t)(draw_of / 4 % TARN_TRACK_CATEGORY_COUNT);
        report(scene, (struct tarn_track_event){.kind = TARN_TRACK_CLASSIFY,
                                                .category = storage->category,
                                                .id = storage->id});
        break;
    case 1:
        storage->bytes = (1 + draw_of / 4 % 8) * UNIT;
        report(scene, (struct tarn_track_event){
                          .kind = TARN_TRACK_RESIZE, .id = storage->id, .bytes = storage->bytes});
        break;
    default:
        report(scene, (struct tarn_track_event){.kind = TARN_TRACK_DELETE, .id = storage->id});
        *storage = (struct storage){0};
        break;
    }
}

/* Modules are entered one inside the other, and left. */
static void go_on(struct scene *scene, struct writer *writer)
{
    char text[16];

    if (writer->module == MODULES) {
        for (; writer->module > 0; writer->module--) {
            report(scene,
                   (struct tarn_track_event){.kind = TARN_TRACK_LEAVE, .id = writer->module});
        }
        return;
    }
    writer->module++;
    (void)snprintf(text, sizeof text, "Model%u", (unsigned)writer->module);
    report(scene, (struct tarn_track_event){.kind = TARN_TRACK_ENTER,
                                            .name = name_of(scene, TARN_TRACK_MODULE, text),
                                            .id = writer->module});
    report(scene, (struct tarn_track_event){.kind = TARN_TRACK_READY});
}

static void write_some(struct scene *scene, unsigned thread)
{
    struct writer *writer = &scene->writers[thread];
    uint64_t random = scene->seed * SCHEDULE_THREADS_MAX + thread;

    for (int i = 0; i < STEPS; i++) {
        struct storage *storage = &writer->own[draw(&random) % OWN];
        const uint64_t choice = draw(&random);

        if (choice % 4 == 0) {
            report(scene, (struct tarn_track_event){.kind = TARN_TRACK_OP_DONE});
        } else if (thread == 1 && choice % 4 == 1) {
            go_on(scene, writer);
        } else if (storage->id == 0) {
            create(scene, thread, storage, choice / 4);
        } else {
            change(scene, storage, choice / 4);
        }
    }
}

/* ---- the reader ---- */

static size_t rows_of(struct scene *scene, enum tarn_track_point point,
                      struct tarn_track_row rows[DEVICES])
{
    size_t count = 0;

    tarn_tracker_get_rows(scene->tracker, point, rows, DEVICES, &count);
    expect(scene, count <= DEVICES, "there are more devices than there were names");
    for (size_t i = 0; i < count; i++) {
        int64_t sum = 0;

        for (int category = 0; category < TARN_TRACK_CATEGORY_COUNT; category++) {
            expect(scene, rows[i].bytes[category] >= 0, "bytes are negative");
            sum += rows[i].bytes[category];
        }
        expect(scene, rows[i].total == sum, "categories do not add up");
    }
    return count;
}

static enum tarn_status count_bytes(void *context, const char *bytes, size_t size)
{
    (void)bytes;
    *(size_t *)context += size;
    return TARN_OK;
}

static void read_some(struct scene *scene)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_track_row rows[DEVICES];
    size_t written = 0;
    const struct tarn_writer writer = {.context = &written, .write = count_bytes};

    for (int i = 0; i < READS; i++) {
        schedule_yield((uintptr_t)__builtin_return_address(0));
        (void)rows_of(scene, TARN_TRACK_NOW, rows);
        if (rows_of(scene, TARN_TRACK_PEAKS, rows) > 0) {
            expect(scene, rows[0].total >= scene->peak, "a peak fell");
            scene->peak = rows[0].total;
        }
        (void)rows_of(scene, TARN_TRACK_TOTAL_PEAK, rows);
        expect(scene, tarn_tracker_check(scene->tracker, &findings) == 0,
               "the tracker's check found something");
        expect(scene,
               tarn_tracker_write_json(scene->tracker, true, &writer, NULL) == TARN_OK &&
                   written > 0,
               "the tracker cannot be written");
        expect(scene,
               tarn_tracker_count_modules(scene->tracker) <= MODULES + 1 &&
                   tarn_tracker_count_names(scene->tracker, TARN_TRACK_DEVICE) <= DEVICES,
               "there is more than was added");
    }
}

static void work(void *context, unsigned thread)
{
    if (thread == 0) {
        read_some(context);
    } else {
        write_some(context, thread);
    }
}

/* ---- before and afterwards ---- */

static void *scene_open(uint64_t seed)
{
    struct scene *scene = calloc(1, sizeof *scene);
    const struct tarn_tracker_options options = {.struct_size = sizeof options,
                                                 .calls_kept = (uint32_t)(seed % 3)};

    scene->seed = seed;
    if (tarn_tracker_create(&options, &scene->tracker, NULL) != TARN_OK) {
        abort();
    }
    return scene;
}

/* Bytes of all writers' storages on the device, by category. */
static void expect_sums(struct scene *scene, const struct tarn_track_row *row)
{
    int64_t bytes[TARN_TRACK_CATEGORY_COUNT] = {0};
    const char *device = tarn_tracker_get_name(scene->tracker, TARN_TRACK_DEVICE, row->device);

    for (int thread = 0; thread < THREADS; thread++) {
        for (int i = 0; i < OWN; i++) {
            const struct storage *storage = &scene->writers[thread].own[i];

            if (storage->id && device && strcmp(device, device_names[storage->device]) == 0) {
                bytes[storage->category] += (int64_t)storage->bytes;
            }
        }
    }
    expect(scene, memcmp(bytes, row->bytes, sizeof bytes) == 0, "bytes are not those of storages");
}

static const char *scene_close(void *context)
{
    struct scene *scene = context;
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_track_row rows[DEVICES];
    const size_t count = rows_of(scene, TARN_TRACK_NOW, rows);

    for (size_t i = 0; i < count; i++) {
        expect_sums(scene, &rows[i]);
    }
    expect(scene, tarn_tracker_check(scene->tracker, &findings) == 0,
           "the tracker's check found something at the end");
    const char *wrong = scene->wrong;

    tarn_tracker_destroy(scene->tracker);
    free(scene);
    return wrong;
}

const struct workload workload_tracker = {
    .name = "tracker", .threads = THREADS, .open = scene_open, .body = work, .close = scene_close};
