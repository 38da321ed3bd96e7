/* SPDX-License-Identifier: MIT */
/*
 * replay_latch TRACE...: runs traces of latch.pml through the real latch (replay_latch.sh makes the
 * traces). The header is compiled here so that each of its accesses comes to this program first
 * (accesses.h): memory is as weak as the model's.
 *
 * tn_latch_write runs when the model's writer begins a publication, and its stores and fences are
 * kept in a list. The model's writer must make just these, in this order. A store becomes visible
 * when the model's does, which the code's own fences must allow. tn_latch_read runs while the
 * model's reader does, and reads what the model's reads when that does; both must come to the same
 * end, and a record that was read must be the one of its generation.
 *
 * A line is "writer store PLACE VALUE", "writer fence 0 0", "writer stop 0 0", "memory visible
 * PLACE VALUE", "reader|late load PLACE VALUE" or "reader|late read|changed|empty 0 0". A word of
 * the model is half of the record's.
 */
#include "support/test.h"

#include "alloc/watch/latch.h"
#include "model/accesses.h"

#include <stdio.h>

enum {
    WORDS = 2, /* as in the model */
    CURRENT = 0,
    GENERATION = 1, /* of the first copy */
    COPY_PLACES = 1 + WORDS,
    PLACES = 1 + 2 * COPY_PLACES,
    HALF = TN_RECORD_WORDS / 2,
    PUBLICATION_STEPS = TN_RECORD_WORDS + 4 /* two stores and two fences more */
};

/* A store or a fence of the writer. */
struct access {
    bool is_fence;
    unsigned place;
    volatile void *at;
    uint64_t value;
    unsigned after; /* fences before it */
    bool is_visible;
};

struct scene {
    struct tn_page_slot slot;
    FILE *file;
    struct access writes[PUBLICATION_STEPS * 8];
    unsigned count;
    unsigned done;   /* of these, what the model's writer has done */
    unsigned fences; /* done */
    bool writes_now; /* tn_latch_write runs */
    unsigned reads;  /* places that the reader has asked for, in this try */
    unsigned acquired;
    enum tn_latch_result result;
    bool has_result;
    struct tn_page_record record;
    uint64_t current; /* that the reader has read */
};

struct line {
    char who[8];
    char what[8];
    unsigned place;
    unsigned value;
};

static struct scene scene;
static unsigned results[3];

static unsigned copy_of(unsigned place)
{
    return (place - GENERATION) / COPY_PLACES;
}

/* Its number among the words of its copy, or -1: the generation. */
static int word_of(unsigned place)
{
    return (int)((place - GENERATION) % COPY_PLACES) - 1;
}

/* ---- what the writer does ---- */

static unsigned place_of(const volatile void *at)
{
    const size_t offset = (size_t)((const volatile char *)at - (const volatile char *)&scene.slot);

    if (offset == offsetof(struct tn_page_slot, current)) {
        return CURRENT;
    }
    const size_t in_copies = offset - offsetof(struct tn_page_slot, copies);
    const unsigned copy = (unsigned)(in_copies / sizeof(struct tn_page_copy));
    const size_t in_copy = in_copies % sizeof(struct tn_page_copy);
    const unsigned generation = GENERATION + copy * COPY_PLACES;

    assert_true(copy < 2);
    if (in_copy == offsetof(struct tn_page_copy, generation)) {
        return generation;
    }
    const size_t word = (in_copy - offsetof(struct tn_page_copy, words)) / sizeof(uint64_t);

    return generation + (word < HALF ? 1 : 2);
}

static void keep(struct access access)
{
    assert_true(scene.writes_now && scene.count < sizeof scene.writes / sizeof scene.writes[0]);
    scene.writes[scene.count++] = access;
}

/* The writer sees its own stores. */
uint64_t access_load(const volatile void *at, unsigned bytes, int order)
{
    (void)order;
    for (unsigned i = scene.count; i > 0; i--) {
        if (!scene.writes[i - 1].is_fence && scene.writes[i - 1].at == at) {
            return scene.writes[i - 1].value;
        }
    }
    return memory_read(at, bytes);
}

void access_store(volatile void *at, unsigned bytes, uint64_t value, int order)
{
    assert_int_equal(bytes, sizeof(uint64_t));
    if (order == memory_order_release || order == memory_order_seq_cst) {
        keep((struct access){.is_fence = true});
    }
    keep((struct access){.place = place_of(at), .at = at, .value = value});
}

uint64_t access_exchange(volatile void *at, unsigned bytes, uint64_t value, int order)
{
    (void)order;
    (void)value;
    fail_msg("an exchange, which the model does not have");
    return memory_read(at, bytes);
}

void access_fence(int order)
{
    const bool releases = order == memory_order_release || order >= memory_order_acq_rel;

    if (scene.writes_now && releases) {
        keep((struct access){.is_fence = true});
    }
    scene.acquired += !scene.writes_now && order != memory_order_release;
}

static uint64_t word_value(uint64_t generation, uint64_t word)
{
    return generation << 32 | word;
}

static void publish(uint64_t generation)
{
    uint64_t words[TN_RECORD_WORDS] = {0};
    struct tn_page_record record;

    for (uint64_t i = 0; i < TN_RECORD_WORDS; i++) {
        words[i] = word_value(generation, i);
    }
    memcpy(&record, words, sizeof record);
    scene.writes_now = true;
    tn_latch_write(&scene.slot, &record);
    scene.writes_now = false;
}

static uint64_t value_of(const struct access *access, unsigned value)
{
    if (access->place == CURRENT || word_of(access->place) < 0) {
        return value;
    }
    const struct tn_page_copy *copy = &scene.slot.copies[copy_of(access->place)];
    const size_t offset = (uintptr_t)access->at - (uintptr_t)copy->words;

    return word_value(value, offset / sizeof(uint64_t));
}

/* The code's next accesses are the model's. */
static void writer_stores(const struct line *line)
{
    const unsigned all = line->place == CURRENT || word_of(line->place) < 0 ? 1
                         : word_of(line->place) == 0                        ? HALF
                                                     : TN_RECORD_WORDS - HALF;

    if (scene.done == scene.count) {
        publish(line->value);
    }
    for (unsigned i = 0; i < all; i++) {
        assert_true(scene.done < scene.count);
        struct access *access = &scene.writes[scene.done++];

        assert_false(access->is_fence);
        assert_int_equal(access->place, line->place);
        assert_int_equal(access->value, value_of(access, line->value));
        access->after = scene.fences;
    }
}

static void writer_fences(void)
{
    assert_true(scene.done < scene.count && scene.writes[scene.done].is_fence);
    scene.done++;
    scene.fences++;
}

/* What was stored before an earlier fence is visible already. */
static void become_visible(const struct line *line)
{
    unsigned found = 0;

    for (unsigned i = 0; i < scene.done; i++) {
        struct access *access = &scene.writes[i];

        if (!access->is_fence && access->place == line->place && !access->is_visible) {
            for (unsigned k = 0; k < i; k++) {
                assert_true(scene.writes[k].is_fence || scene.writes[k].is_visible ||
                            scene.writes[k].after >= access->after);
            }
            memory_write(access->at, sizeof(uint64_t), access->value);
            access->is_visible = true;
            found++;
        }
    }
    assert_true(found > 0);
}

/* ---- what the reader does ---- */

static bool line_read(struct line *line)
{
    /* NOLINTBEGIN(cert-err34-c): written by the model, and checked */
    const int found =
        fscanf(scene.file, "%7s %7s %u %u", line->who, line->what, &line->place, &line->value);
    /* NOLINTEND(cert-err34-c) */

    assert_true(found == 4 || found == EOF);
    return found == 4;
}

static void other_line(const struct line *line)
{
    if (strcmp(line->what, "store") == 0) {
        writer_stores(line);
    } else if (strcmp(line->what, "fence") == 0) {
        writer_fences();
    } else if (strcmp(line->what, "visible") == 0) {
        become_visible(line);
    } else {
        assert_string_equal(line->what, "stop");
    }
}

/* Others go on until the model's reader loads something. */
static struct line await_load(void)
{
    struct line line;

    while (line_read(&line) && strcmp(line.what, "load") != 0) {
        other_line(&line);
    }
    assert_string_equal(line.what, "load");
    return line;
}

static void read_at(uintptr_t at, void *out, size_t size)
{
    for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
        const uint64_t value = *(const volatile uint64_t *)(at + i);

        memcpy((char *)out + i, &value, sizeof value);
    }
}

/* Both halves, in the model's order. */
static void read_words(const struct tn_page_copy *copy, void *out)
{
    unsigned seen = 0;

    for (unsigned i = 0; i < WORDS; i++) {
        const struct line line = await_load();
        const int word = line.place == CURRENT ? -1 : word_of(line.place);
        const size_t half = word > 0;
        const size_t offset = half * HALF * sizeof(uint64_t);

        assert_true(word >= 0 && copy == &scene.slot.copies[copy_of(line.place)]);
        assert_false(seen >> half & 1U);
        seen |= 1U << half;
        read_at((uintptr_t)copy->words + offset, (char *)out + offset,
                (half ? TN_RECORD_WORDS - HALF : HALF) * sizeof(uint64_t));
    }
}

/* The first load is known already: with it the try began. */
static bool read_page(void *context, uint64_t offset, void *out, size_t size)
{
    const struct line *first = context;
    const char *at = (const char *)&scene.slot + offset;

    assert_true(scene.reads == 0 || scene.acquired > 0);
    scene.acquired = 0;
    if (size == sizeof scene.record) {
        const size_t words = offsetof(struct tn_page_copy, words);

        assert_int_equal(scene.reads++, 1);
        read_words((const struct tn_page_copy *)(const void *)(at - words), out);
        return true;
    }
    const struct line line = scene.reads == 0 ? *first : await_load();

    assert_int_equal(size, sizeof(uint64_t));
    assert_int_equal(scene.reads++, line.place == CURRENT ? 0 : 2);
    assert_int_equal(place_of(at), line.place);
    read_at((uintptr_t)at, out, size);
    uint64_t value;

    memcpy(&value, out, sizeof value);
    assert_int_equal(value, line.value);
    scene.current = line.place == CURRENT ? value : scene.current;
    return true;
}

static void try_to_read(struct line *line)
{
    scene.reads = 0;
    scene.acquired = 0;
    assert_false(scene.has_result);
    scene.result = tn_latch_read(read_page, line, 0, &scene.record);
    scene.has_result = true;
}

static void end_reading(const struct line *line)
{
    const enum tn_latch_result expected = strcmp(line->what, "read") == 0      ? TN_LATCH_READ
                                          : strcmp(line->what, "changed") == 0 ? TN_LATCH_CHANGED
                                                                               : TN_LATCH_EMPTY;
    uint64_t words[TN_RECORD_WORDS];

    assert_true(scene.has_result);
    assert_int_equal(scene.result, expected);
    scene.has_result = false;
    results[expected]++;
    memcpy(words, &scene.record, sizeof words);
    for (uint64_t i = 0; i < TN_RECORD_WORDS && expected == TN_LATCH_READ; i++) {
        assert_int_equal(words[i], word_value(scene.current, i));
    }
}

/* ---- traces ---- */

static int trace_count;
static char **traces;

static void the_latch_does_what_the_model_does(void **state)
{
    (void)state;
    for (int i = 0; i < trace_count; i++) {
        struct line line;

        memset(&scene, 0, sizeof scene);
        scene.file = fopen(traces[i], "r");
        assert_non_null(scene.file);
        while (line_read(&line)) {
            const bool reads = line.who[0] == 'r' || line.who[0] == 'l'; /* reader or late */

            if (!reads) {
                other_line(&line);
            } else if (strcmp(line.what, "load") == 0) {
                try_to_read(&line);
            } else {
                end_reading(&line);
            }
        }
        assert_false(scene.has_result);
        (void)fclose(scene.file);
    }
    print_message("read %u, empty %u, changed %u\n", results[TN_LATCH_READ],
                  results[TN_LATCH_EMPTY], results[TN_LATCH_CHANGED]);
    assert_true(results[TN_LATCH_READ] > 100);
    assert_true(results[TN_LATCH_EMPTY] > 5);
    assert_true(results[TN_LATCH_CHANGED] > 5);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_latch_does_what_the_model_does)};

    trace_count = argc - 1;
    traces = argv + 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
