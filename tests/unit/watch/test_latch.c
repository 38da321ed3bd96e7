/* SPDX-License-Identifier: MIT */
/*
 * No reader gets parts of two records, however often the writer publishes. By hand, with a thousand
 * million reads: test_latch 1000000000.
 */
#include "support/test.h"

#include "alloc/watch/latch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    READERS = 2
};

static uint64_t reads_wanted = 40000; /* of each reader */
static struct tn_page_slot slot;
static atomic_bool over;

/* As a reader of the file gets at it, word by word in the memory that the writer writes. */
static bool memory_read(void *context, uint64_t offset, void *bytes_out, size_t size)
{
    _Atomic uint64_t *words = context;
    uint64_t word;

    for (size_t i = 0; i < size / sizeof word; i++) {
        word = atomic_load_explicit(&words[offset / sizeof word + i], memory_order_relaxed);
        memcpy((char *)bytes_out + i * sizeof word, &word, sizeof word);
    }
    return true;
}

/* Every word of record n is n. */
static void record_fill(struct tn_page_record *record, uint64_t n)
{
    uint64_t words[TN_RECORD_WORDS] = {0};

    for (int i = 0; i < TN_RECORD_WORDS; i++) {
        words[i] = n;
    }
    memcpy(record, words, sizeof words);
}

/* The n that it consists of; fails the test if there are two. */
static uint64_t record_number(const struct tn_page_record *record)
{
    uint64_t words[TN_RECORD_WORDS];
    uint64_t different = 0;

    memcpy(words, record, sizeof words);
    for (int i = 1; i < TN_RECORD_WORDS; i++) {
        different |= words[i] ^ words[0];
    }
    if (different != 0) {
        (void)fprintf(stderr, "a torn record\n");
        abort();
    }
    return words[0];
}

static void *publish(void *argument)
{
    struct tn_page_record record;

    (void)argument;
    for (uint64_t n = 1; !atomic_load_explicit(&over, memory_order_relaxed); n++) {
        record_fill(&record, n);
        tn_latch_write(&slot, &record);
    }
    return NULL;
}

struct reader {
    pthread_t thread;
    uint64_t read;
    uint64_t again;
};

static void *read_all(void *argument)
{
    struct reader *reader = argument;
    struct tn_page_record record;
    uint64_t newest = 0;

    while (reader->read < reads_wanted) {
        const enum tn_latch_result result = tn_latch_read(memory_read, &slot, 0, &record);

        if (result == TN_LATCH_READ) {
            const uint64_t number = record_number(&record);

            if (number < newest) {
                (void)fprintf(stderr, "an old record\n");
                abort();
            }
            newest = number;
            reader->read++;
        } else {
            reader->again += result == TN_LATCH_CHANGED;
        }
    }
    return NULL;
}

static void no_read_is_torn(void **state)
{
    struct reader readers[READERS] = {0};
    pthread_t writer;
    uint64_t read = 0;
    uint64_t again = 0;

    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, publish, NULL), 0);
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_all, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
        read += readers[i].read;
        again += readers[i].again;
    }
    atomic_store(&over, true);
    assert_int_equal(pthread_join(writer, NULL), 0);
    (void)printf("%llu reads, %llu begun again\n", (unsigned long long)read,
                 (unsigned long long)again);
}

/* What was published before can be read while the next publication is half done. */
static void a_writer_that_stops_can_be_read(void **state)
{
    struct tn_page_record record;
    struct tn_page_slot stopped = {.current = 0};

    (void)state;
    assert_int_equal(tn_latch_read(memory_read, &stopped, 0, &record), TN_LATCH_EMPTY);
    for (uint64_t n = 1; n <= 3; n++) {
        record_fill(&record, n);
        tn_latch_write(&stopped, &record);
    }
    stopped.copies[0].generation = 4;
    stopped.copies[0].words[0] = 4;
    assert_int_equal(tn_latch_read(memory_read, &stopped, 0, &record), TN_LATCH_READ);
    assert_int_equal(record_number(&record), 3);
}

/* A file that ends early: how much of it there is. */
struct cut {
    struct tn_page_slot slot;
    uint64_t size;
};

static bool cut_read(void *context, uint64_t offset, void *bytes_out, size_t size)
{
    struct cut *cut = context;

    return offset + size <= cut->size && memory_read(&cut->slot, offset, bytes_out, size);
}

static void a_page_may_end_early(void **state)
{
    static struct cut cut;
    struct tn_page_record record;
    const uint64_t copy = offsetof(struct tn_page_slot, copies) + sizeof(struct tn_page_copy);
    const uint64_t words_end = copy + offsetof(struct tn_page_copy, words) + sizeof record;
    const uint64_t number_end = copy + offsetof(struct tn_page_copy, generation) + sizeof(uint64_t);
    const uint64_t end = words_end > number_end ? words_end : number_end;

    (void)state;
    record_fill(&record, 1);
    tn_latch_write(&cut.slot, &record);
    assert_int_equal(cut.slot.current, 1);
    for (cut.size = 0; cut.size < end; cut.size += sizeof(uint64_t)) {
        assert_int_equal(tn_latch_read(cut_read, &cut, 0, &record), TN_LATCH_CUT_OFF);
    }
    assert_int_equal(tn_latch_read(cut_read, &cut, 0, &record), TN_LATCH_READ);
    assert_int_equal(record_number(&record), 1);
}

/* Somebody cuts the file off while it is read: the n-th piece is not there any more. */
static bool shrinking_read(void *context, uint64_t offset, void *bytes_out, size_t size)
{
    struct cut *cut = context;

    return --cut->size > 0 && memory_read(&cut->slot, offset, bytes_out, size);
}

static void a_page_may_end_while_it_is_read(void **state)
{
    static struct cut cut;
    struct tn_page_record record;

    (void)state;
    record_fill(&record, 1);
    tn_latch_write(&cut.slot, &record);
    for (uint64_t pieces = 1; pieces <= 3; pieces++) {
        cut.size = pieces;
        assert_int_equal(tn_latch_read(shrinking_read, &cut, 0, &record), TN_LATCH_CUT_OFF);
    }
    cut.size = 4;
    assert_int_equal(tn_latch_read(shrinking_read, &cut, 0, &record), TN_LATCH_READ);
}

/* The writer has come to the copy that is being read. */
static bool memory_overtaken(void *context, uint64_t offset, void *bytes_out, size_t size)
{
    struct tn_page_slot *overtaken = context;
    struct tn_page_record record;

    (void)memory_read(context, offset, bytes_out, size);
    if (size == sizeof record) {
        for (uint64_t n = 0; n < 2; n++) {
            record_fill(&record, n + 10);
            tn_latch_write(overtaken, &record);
        }
    }
    return true;
}

static void a_reader_that_is_overtaken_begins_again(void **state)
{
    struct tn_page_record record;
    struct tn_page_slot overtaken = {.current = 0};

    (void)state;
    record_fill(&record, 1);
    tn_latch_write(&overtaken, &record);
    assert_int_equal(tn_latch_read(memory_overtaken, &overtaken, 0, &record), TN_LATCH_CHANGED);
    assert_int_equal(tn_latch_read(memory_read, &overtaken, 0, &record), TN_LATCH_READ);
    assert_int_equal(record_number(&record), 11);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_read_is_torn),
        cmocka_unit_test(a_writer_that_stops_can_be_read),
        cmocka_unit_test(a_page_may_end_early),
        cmocka_unit_test(a_page_may_end_while_it_is_read),
        cmocka_unit_test(a_reader_that_is_overtaken_begins_again),
    };

    reads_wanted = argc > 1 ? strtoull(argv[1], NULL, 10) / READERS : reads_wanted;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
