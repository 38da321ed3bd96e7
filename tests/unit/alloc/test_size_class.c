/* SPDX-License-Identifier: MIT */
/* Sizes that PyTorch's allocator gives to requests, segments and remainders. */
#include "support/test.h"

#include "alloc/config/size_class.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static struct tarn_config parsed(const char *text)
{
    struct tarn_config config;

    assert_int_equal(tarn_config_parse(text, &config, NULL), TARN_OK);
    return config;
}

static void requests_are_multiples_of_512(void **state)
{
    const struct tarn_config config = parsed("");

    (void)state;
    assert_int_equal(tn_round_size(0, &config), 512);
    assert_int_equal(tn_round_size(1, &config), 512);
    assert_int_equal(tn_round_size(512, &config), 512);
    assert_int_equal(tn_round_size(513, &config), 1024);
    assert_int_equal(tn_round_size(1200, &config), 1536);
    assert_int_equal(tn_round_size(84 * MIB, &config), 84 * MIB);
    assert_int_equal(tn_round_size(TN_MAX_REQUEST - 1, &config), TN_MAX_REQUEST);
}

/* test_allocator_settings of test/test_cuda.py. */
static void a_number_of_divisions_counts_everywhere(void **state)
{
    const struct tarn_config config = parsed("roundup_power2_divisions:4");

    (void)state;
    assert_int_equal(tn_round_size(84 * MIB, &config), 96 * MIB);
    assert_int_equal(tn_round_size(96 * MIB, &config), 96 * MIB);
    assert_int_equal(tn_round_size(96 * MIB + 1, &config), 112 * MIB);
    assert_int_equal(tn_round_size(64 * MIB, &config), 64 * MIB);
    assert_int_equal(tn_round_size(64 * MIB + 1, &config), 80 * MIB);
    assert_int_equal(tn_round_size(127 * MIB, &config), 128 * MIB);
    assert_int_equal(tn_round_size(400 * MIB, &config), 448 * MIB);
}

static void a_list_of_divisions_counts_by_size(void **state)
{
    const struct tarn_config config =
        parsed("roundup_power2_divisions:[64:8,128:2,256:2,512:2,1024:1,>:1]");

    (void)state;
    assert_int_equal(tn_round_size(84 * MIB, &config), 88 * MIB);
    assert_int_equal(tn_round_size(400 * MIB, &config), 512 * MIB);
    assert_int_equal(tn_round_size(127 * MIB + 1, &config), 128 * MIB);
    assert_int_equal(tn_round_size(3 * GIB + 1, &config), 3 * GIB + 512);
    assert_int_equal(tn_round_size(5 * MIB + 1, &config), 5 * MIB + 512 * KIB);
}

/* Up to 512 bytes a division a request is rounded to 512 as ever: 1200 bytes with 4 divisions are
 * 1536, not the 1280 of the division. */
static void small_requests_are_beyond_divisions(void **state)
{
    const struct tarn_config config = parsed("roundup_power2_divisions:4");

    (void)state;
    assert_int_equal(tn_round_size(1200, &config), 1536);
    assert_int_equal(tn_round_size(2048, &config), 2048);
    assert_int_equal(tn_round_size(2049, &config), 2560);
    assert_int_equal(tn_round_size(2561, &config), 3072);
    assert_int_equal(tn_round_size(3585, &config), 4096);
}

/* With 2 divisions 1200 is beyond 512 bytes a division, and one step is 512. */
static void two_divisions_reach_down_to_1_kib(void **state)
{
    const struct tarn_config config = parsed("roundup_power2_divisions:2");

    (void)state;
    assert_int_equal(tn_round_size(1024, &config), 1024);
    assert_int_equal(tn_round_size(1200, &config), 1536);
    assert_int_equal(tn_round_size(1537, &config), 2048);
    assert_int_equal(tn_round_size(5000, &config), 6144);
}

static void one_and_zero_divisions_are_off(void **state)
{
    const struct tarn_config config = parsed("roundup_power2_divisions:[1:1,32:0,>:1]");

    (void)state;
    assert_int_equal(tn_round_size(1200, &config), 1536);
    assert_int_equal(tn_round_size(33 * MIB + 1, &config), 33 * MIB + 512);
    assert_int_equal(tn_round_size(84 * MIB + 1, &config), 84 * MIB + 512);
}

static void divisions_are_looked_up_by_the_highest_bit(void **state)
{
    struct tarn_config config = parsed("");

    (void)state;
    config.roundup_power2_divisions[0] = 2;
    config.roundup_power2_divisions[2] = 2;
    config.roundup_power2_divisions[15] = 2;
    assert_int_equal(tn_round_size(2 * MIB - 1, &config), 2 * MIB);
    assert_int_equal(tn_round_size(MIB + 1, &config), MIB + 512 * KIB);
    assert_int_equal(tn_round_size(2 * MIB + 1, &config), 2 * MIB + 512);
    assert_int_equal(tn_round_size(4 * MIB + 1, &config), 6 * MIB);
    assert_int_equal(tn_round_size(8 * MIB + 1, &config), 8 * MIB + 512);
    assert_int_equal(tn_round_size(32 * GIB - 1, &config), 32 * GIB);
    assert_int_equal(tn_round_size(32 * GIB + 1, &config), 48 * GIB);
    assert_int_equal(tn_round_size(64 * GIB + 1, &config), 96 * GIB);
}

static void segments_are_2_mib_or_20_or_as_large_as_the_request(void **state)
{
    const struct tarn_config config = parsed("");
    const struct tarn_config other = parsed("large_segment_size_mb:12");

    (void)state;
    assert_true(tn_size_is_small(MIB));
    assert_false(tn_size_is_small(MIB + 512));
    assert_int_equal(tn_segment_size(512, &config), 2 * MIB);
    assert_int_equal(tn_segment_size(MIB, &config), 2 * MIB);
    assert_int_equal(tn_segment_size(MIB + 512, &config), 20 * MIB);
    assert_int_equal(tn_segment_size(10 * MIB - 512, &config), 20 * MIB);
    assert_int_equal(tn_segment_size(10 * MIB, &config), 10 * MIB);
    assert_int_equal(tn_segment_size(10 * MIB + 512, &config), 12 * MIB);
    assert_int_equal(tn_segment_size(MIB + 512, &other), 12 * MIB);
    assert_int_equal(tn_segment_size(10 * MIB + 512, &other), 12 * MIB);
}

static void small_blocks_split_at_512_large_ones_above_1_mib(void **state)
{
    const struct tarn_config config = parsed("");

    (void)state;
    assert_false(tn_should_split(2 * MIB, 2 * MIB, true, false, &config));
    assert_true(tn_should_split(2 * MIB, 2 * MIB - 512, true, false, &config));
    assert_false(tn_should_split(20 * MIB, 19 * MIB, false, false, &config));
    assert_true(tn_should_split(20 * MIB, 19 * MIB - 512, false, false, &config));
}

static void the_split_limit_holds_for_requests_of_its_size(void **state)
{
    const struct tarn_config config = parsed("max_split_size_mb:40");

    (void)state;
    assert_true(tn_should_split(60 * MIB, 40 * MIB - 512, false, false, &config));
    assert_false(tn_should_split(60 * MIB, 40 * MIB, false, false, &config));
    assert_true(tn_should_split(60 * MIB, 40 * MIB, false, true, &config));
    assert_true(tn_should_split(60 * MIB, 60 * MIB - 512, false, true, &config));
    assert_false(tn_should_split(60 * MIB, 60 * MIB, false, true, &config));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_multiples_of_512),
        cmocka_unit_test(a_number_of_divisions_counts_everywhere),
        cmocka_unit_test(a_list_of_divisions_counts_by_size),
        cmocka_unit_test(small_requests_are_beyond_divisions),
        cmocka_unit_test(two_divisions_reach_down_to_1_kib),
        cmocka_unit_test(one_and_zero_divisions_are_off),
        cmocka_unit_test(divisions_are_looked_up_by_the_highest_bit),
        cmocka_unit_test(segments_are_2_mib_or_20_or_as_large_as_the_request),
        cmocka_unit_test(small_blocks_split_at_512_large_ones_above_1_mib),
        cmocka_unit_test(the_split_limit_holds_for_requests_of_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
