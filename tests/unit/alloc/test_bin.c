/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <stdlib.h>

#include "alloc/pool/bin.h"
#include "tarn/host.h"

enum {
    MANY = 3000
};

/* The least size of the widest class that bins have. */
static const uint64_t least_size = TN_BIN_SIZE_END / 2;

static uint64_t random_state;

static struct tn_leaf_store store;

/* As the free set does. */
static bool bin_insert(struct tn_bin *bin, struct tn_block *block)
{
    if (!bin->first || bin->leaf.holes == 0) {
        return tn_bin_insert_slow(bin, &store, block, block->address);
    }
    tn_bin_insert(bin, block, block->address);
    return true;
}

/* Likewise. */
static void bin_remove(struct tn_bin *bin, const struct tn_block *block)
{
    if (bin->directory) {
        tn_bin_remove_slow(bin, block, block->address);
    } else {
        (void)tn_bin_remove(bin, block);
    }
}

static void bin_fini(struct tn_bin *bin)
{
    tn_bin_fini(bin, &store);
    assert_int_equal(store.used, 0);
    tn_leaf_store_trim(&store);
}

static uint64_t random_below(uint64_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % bound;
}

static struct tn_block blocks[MANY];

/* The model: pointers to the blocks in the bin, in (size, address) order. */
struct model {
    struct tn_block *sorted[MANY];
    size_t count;
};

static size_t model_index(const struct model *model, uint64_t size, uint64_t address)
{
    size_t at = 0;

    while (at < model->count &&
           (model->sorted[at]->size < size ||
            (model->sorted[at]->size == size && model->sorted[at]->address < address))) {
        at++;
    }
    return at;
}

static void model_insert(struct model *model, struct tn_block *block)
{
    const size_t at = model_index(model, block->size, block->address);

    for (size_t i = model->count; i > at; i--) {
        model->sorted[i] = model->sorted[i - 1];
    }
    model->sorted[at] = block;
    model->count++;
}

static void model_remove(struct model *model, const struct tn_block *block)
{
    size_t at = model_index(model, block->size, block->address);

    assert_ptr_equal(model->sorted[at], block);
    model->count--;
    for (; at < model->count; at++) {
        model->sorted[at] = model->sorted[at + 1];
    }
}

/* Sizes repeat, addresses do not; all are of one class. */
static void blocks_make(uint64_t sizes)
{
    for (uint64_t i = 0; i < MANY; i++) {
        blocks[i] = (struct tn_block){
            .address = 0x7f0000000000 + ((i * 7919) % MANY) * 512,
            .size = least_size + 512 * random_below(sizes),
        };
    }
}

static void bin_equals(const struct tn_bin *bin, const struct model *model)
{
    assert_int_equal(tn_bin_count(bin), model->count);
    if (model->count == 0) {
        assert_null(tn_bin_find_from(bin, least_size, 0));
        assert_null(tn_bin_find_before(bin, least_size, TN_BIN_PLACE_END - 512));
        return;
    }
    assert_ptr_equal(bin->first, model->sorted[0]);
    assert_ptr_equal(tn_bin_max(bin), model->sorted[model->count - 1]);
    struct tn_block *block = tn_bin_find_from(bin, least_size, 0);

    for (size_t i = 0; i < model->count; i++) {
        assert_ptr_equal(block, model->sorted[i]);
        assert_true(tn_bin_has(bin, block, block->address));
        assert_ptr_equal(tn_bin_find_before(bin, block->size, block->address),
                         i > 0 ? model->sorted[i - 1] : NULL);
        block = tn_bin_find_from(bin, block->size, block->address + 512);
    }
    assert_null(block);
}

/* Any place between blocks, not only theirs. */
static void searches_equal(const struct tn_bin *bin, const struct model *model, uint64_t sizes)
{
    const uint64_t size = least_size + 512 * random_below(sizes + 2);
    const uint64_t address = 0x7f0000000000 + 512 * random_below(MANY + 2);
    const size_t at = model_index(model, size, address);

    assert_ptr_equal(tn_bin_find_from(bin, size, address),
                     at < model->count ? model->sorted[at] : NULL);
    assert_ptr_equal(tn_bin_find_before(bin, size, address), at > 0 ? model->sorted[at - 1] : NULL);
}

static void random_run(uint64_t seed, uint64_t sizes)
{
    static bool inside[MANY];
    static struct model model;
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_bin bin = {0};

    random_state = seed;
    model.count = 0;
    blocks_make(sizes);
    for (uint64_t step = 0; step < 30000; step++) {
        const uint64_t i = random_below(MANY);
        const bool growing = (step / 6000) % 2 == 0;

        if (!inside[i] && (growing || random_below(8) == 0)) {
            assert_true(bin_insert(&bin, &blocks[i]));
            model_insert(&model, &blocks[i]);
            inside[i] = true;
        } else if (inside[i] && (!growing || random_below(8) == 0)) {
            bin_remove(&bin, &blocks[i]);
            model_remove(&model, &blocks[i]);
            inside[i] = false;
        }
        searches_equal(&bin, &model, sizes);
        if (step % 1500 == 0) {
            bin_equals(&bin, &model);
        }
    }
    bin_equals(&bin, &model);
    for (uint64_t i = 0; i < MANY; i++) {
        if (inside[i]) {
            bin_remove(&bin, &blocks[i]);
            model_remove(&model, &blocks[i]);
            inside[i] = false;
        }
    }
    bin_equals(&bin, &model);
    assert_null(bin.directory);
    bin_fini(&bin);
    assert_int_equal(tn_bin_memory(&bin), 0);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

static void random_blocks_of_one_size_equal_a_sorted_list(void **state)
{
    (void)state;
    random_run(1, 1);
}

static void random_blocks_of_many_sizes_equal_a_sorted_list(void **state)
{
    (void)state;
    random_run(2, 7);
    random_run(3, 100000);
}

/* Ascending and descending insertion split leaves at their ends; a directory is given up when one
 * leaf is left. */
static void a_directory_comes_and_goes_in_every_order(void **state)
{
    static struct model model;

    (void)state;
    for (int order = 0; order < 4; order++) {
        const bool up = (order & 1) != 0;
        const bool remove_up = (order & 2) != 0;
        struct tn_bin bin = {0};

        model.count = 0;
        for (uint64_t i = 0; i < 1000; i++) {
            blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = least_size};
        }
        for (uint64_t i = 0; i < 1000; i++) {
            struct tn_block *block = &blocks[up ? i : 999 - i];

            assert_true(bin_insert(&bin, block));
            model_insert(&model, block);
            assert_int_equal(bin.directory != NULL, i > TN_LEAF_SLOTS);
        }
        bin_equals(&bin, &model);
        for (uint64_t i = 0; i < 1000; i++) {
            struct tn_block *block = &blocks[remove_up ? i : 999 - i];

            bin_remove(&bin, block);
            model_remove(&model, block);
            if (i % 50 == 0) {
                bin_equals(&bin, &model);
            }
        }
        assert_null(bin.directory);
        bin_fini(&bin);
        assert_int_equal(tn_bin_memory(&bin), 0);
    }
}

static void memory_is_what_the_host_gave(void **state)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tn_bin bin = {0};

    (void)state;
    random_state = 4;
    blocks_make(3);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_true(bin_insert(&bin, &blocks[i]));
        assert_int_equal(tn_bin_memory(&bin) + tn_leaf_store_memory(&store),
                         tarn_host_get_usage().live_bytes - live);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        if (blocks[i].address >= blocks[MANY / 2].address) { /* leaves go as well */
            bin_remove(&bin, &blocks[i]);
        }
    }
    assert_int_equal(tn_bin_memory(&bin) + tn_leaf_store_memory(&store),
                     tarn_host_get_usage().live_bytes - live);
    bin_fini(&bin);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
}

/* Each insertion first with every host allocation that it makes failing. */
static void without_host_memory_nothing_changes(void **state)
{
    static struct model model;
    struct tn_bin bin = {0};
    uint64_t failures = 0;

    (void)state;
    random_state = 5;
    model.count = 0;
    blocks_make(3);
    for (uint64_t i = 0; i < MANY; i++) {
        const bool had_directory = bin.directory != NULL;
        bool good = false;

        for (uint64_t n = 1; !good; n++) {
            tarn_host_fail_nth(n);
            good = bin_insert(&bin, &blocks[i]);
            tarn_host_fail_nth(0);
            if (!good) {
                failures++;
                assert_int_equal(tn_bin_count(&bin), model.count);
                assert_int_equal(bin.directory != NULL, had_directory);
                if (model.count < 300) {
                    bin_equals(&bin, &model);
                }
            }
        }
        model_insert(&model, &blocks[i]);
    }
    bin_equals(&bin, &model);
    assert_true(failures > 20);
    bin_fini(&bin);
}

static void removing_needs_no_host_memory(void **state)
{
    struct tn_bin bin = {0};

    (void)state;
    random_state = 6;
    blocks_make(3);
    for (uint64_t i = 0; i < MANY; i++) {
        assert_true(bin_insert(&bin, &blocks[i]));
    }
    const uint64_t calls = tarn_host_get_usage().alloc_calls;

    for (uint64_t i = 0; i < MANY; i++) {
        bin_remove(&bin, &blocks[i]);
    }
    assert_int_equal(tarn_host_get_usage().alloc_calls, calls);
    bin_fini(&bin);
}

/* Keys are in the order of sizes and addresses at both ends of what bins can hold. */
static void keys_are_ordered_at_their_limits(void **state)
{
    static const uint64_t addresses[] = {0, 512, 1024, TN_BIN_PLACE_END - 512};
    const uint64_t sizes[] = {least_size, least_size + 512, TN_BIN_SIZE_END - 512};
    uint64_t before = TN_BIN_KEY_BASE - 1;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t k = 0; k < sizeof addresses / sizeof addresses[0]; k++) {
            const uint64_t key = tn_bin_key(sizes[i], addresses[k]);

            assert_true(tn_bin_can_hold(sizes[i], addresses[k]));
            assert_true(key > before);
            assert_int_equal(tn_bin_key_slot(key), 0);
            before = key + TN_LEAF_SLOTS - 1;
        }
    }
    assert_true(before < TN_BIN_KEY_NONE);
    assert_false(tn_bin_can_hold(TN_BIN_SIZE_END, 0));
    assert_false(tn_bin_can_hold(512, TN_BIN_PLACE_END));
}

/* For checkers: a block is where it says, behind the first. */
static void what_is_in_no_slot_or_out_of_order_is_not_in_the_bin(void **state)
{
    struct tn_bin bin = {0};

    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        blocks[i] = (struct tn_block){.address = 512 * (i + 1), .size = least_size};
    }
    assert_true(bin_insert(&bin, &blocks[0]));
    assert_false(tn_bin_has(&bin, &blocks[1], blocks[1].address)); /* there are no slots */
    assert_true(bin_insert(&bin, &blocks[1]));
    assert_true(tn_bin_has(&bin, &blocks[1], blocks[1].address));
    assert_false(tn_bin_has(&bin, &blocks[2], blocks[2].address));
    const uint64_t least = bin.least;

    for (int i = 1; i < 3; i++) {
        bin.least = tn_bin_key(blocks[i].size, blocks[i].address);
        assert_false(tn_bin_has(&bin, &blocks[1], blocks[1].address));
    }
    bin.least = least;
    bin_remove(&bin, &blocks[1]);
    bin_remove(&bin, &blocks[0]);
    bin_fini(&bin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_ordered_at_their_limits),
        cmocka_unit_test(random_blocks_of_one_size_equal_a_sorted_list),
        cmocka_unit_test(random_blocks_of_many_sizes_equal_a_sorted_list),
        cmocka_unit_test(a_directory_comes_and_goes_in_every_order),
        cmocka_unit_test(memory_is_what_the_host_gave),
        cmocka_unit_test(without_host_memory_nothing_changes),
        cmocka_unit_test(removing_needs_no_host_memory),
        cmocka_unit_test(what_is_in_no_slot_or_out_of_order_is_not_in_the_bin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
