/* SPDX-License-Identifier: MIT */
/* Writing snapshots and reading them again, in both forms. */
#include "support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/pickle_write.h"
#include "snapshot/snapshot.h"
#include "support/collect.h"
#include "support/file.h"
#include "support/same_model.h"
#include "support/temp.h"
#include "tarn/host.h"

static struct tarn_snapshot *read_memory(const void *bytes, size_t size)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    if (tarn_snapshot_load_memory(bytes, size, NULL, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    return snapshot;
}

static struct tarn_snapshot *read_text(const char *text)
{
    return read_memory(text, strlen(text));
}

static struct test_collect write_out(const struct tarn_snapshot *snapshot,
                                     enum tarn_snapshot_format format)
{
    struct test_collect collect = {.text = NULL};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    if (tarn_snapshot_write(snapshot, format, &writer, &error)) {
        fail_msg("%s", error.text);
    }
    return collect;
}

/* How often the text is in the file. */
static int count_of(const struct test_collect *file, const char *text)
{
    const size_t size = strlen(text);
    int count = 0;

    for (size_t i = 0; i + size <= file->size; i++) {
        count += memcmp(file->text + i, text, size) == 0;
    }
    return count;
}

/* Written and read it is the same; written again, to the byte. */
static void survives(const struct tarn_snapshot *snapshot, enum tarn_snapshot_format format)
{
    struct test_collect first = write_out(snapshot, format);
    struct tarn_snapshot *again = read_memory(first.text, first.size);
    struct test_collect second = write_out(again, format);

    same_model(tn_snapshot_model(snapshot), tn_snapshot_model(again));
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.text, second.text, first.size);
    tarn_snapshot_destroy(again);
    free(first.text);
    free(second.text);
}

static void survives_both(const struct tarn_snapshot *snapshot)
{
    survives(snapshot, TARN_SNAPSHOT_PICKLE);
    survives(snapshot, TARN_SNAPSHOT_JSON);
}

/* The recorded ones; of the largest JSON is left out, which shares nothing. */
static void recorded_snapshots_survive(void **state)
{
    static const char *const names[] = {
        "cudagraph.before", "cudagraph",  "gpt2_varlen", "gpt2_varlen_expandable",
        "multistream",      "oom.before", "oom",         "resnet_sizes",
        "tiny.before",      "tiny"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];

        (void)snprintf(path, sizeof path, "snapshots/%s.pickle.gz", names[i]);
        struct test_file file = test_file_read(path);
        struct tarn_snapshot *snapshot = read_memory(file.bytes, file.size);

        survives(snapshot, TARN_SNAPSHOT_PICKLE);
        if (file.size < 2000000) {
            survives(snapshot, TARN_SNAPSHOT_JSON);
        }
        tarn_snapshot_destroy(snapshot);
        free(file.bytes);
    }
}

/* What the recorded ones do not have. */
static const char rich[] =
    "{\"segments\":[{\"device\":1,\"address\":18446744073709551104,\"total_size\":512,"
    "\"stream\":9223372036854775808,\"segment_type\":\"small\",\"segment_pool_id\":[3,4],"
    "\"is_expandable\":true,\"allocated_size\":1,\"active_size\":2,\"requested_size\":3,\"frames\":"
    "[{\"name\":\"f\",\"filename\":\"a.py\",\"line\":-1,"
    "\"fx_node_op\":\"call\",\"fx_node_name\":\"add_1\",\"fx_node_target\":\"add\","
    "\"fx_original_trace\":\"t\",\"columns\":[7]}],"
    "\"blocks\":[{\"size\":512,\"state\":\"active_pending_free\"}]}],"
    "\"device_traces\":[[],[{\"action\":\"oom\",\"device_free\":7,\"size\":70000,\"stream\":0},"
    "{\"user_metadata\":\"\\u00e9\\ud83d\\ude00\\u0001\\\"\\\\\\ud800\",\"action\":\"alloc\","
    "\"addr\":300,\"size\":1,\"stream\":4294967296,\"time_us\":-5,\"pool_id\":[0,1],"
    "\"internal_metadata\":\"i\",\"category\":\"c\",\"frames\":[]},"
    "{\"action\":\"new_thing\",\"addr\":2147483648,\"size\":255,\"stream\":65535}]],"
    "\"allocator_settings\":{\"max_split_size\":-1,\"garbage_collection_threshold\":0.1,"
    "\"expandable_segments\":false,\"a\":null,\"b\":1.5e300,\"c\":-129,\"d\":-9223372036854775808,"
    "\"e\":18446744073709551615,\"f\":\"x\",\"g\":true,"
    "\"roundup_power2_divisions\":{\"1\":2,\"64\":4,\"32768\":8}},"
    "\"external_annotations\":[{\"stage\":\"START\",\"name\":\"n\",\"k\":\"v\",\"m\":2}],"
    "\"host_segments\":[],\"host_traces\":[[]]}";

static const char old_form[] =
    "[{\"address\":1024,\"total_size\":1024,\"blocks\":[{\"size\":512,\"state\":"
    "\"active_allocated\",\"history\":[{\"addr\":1024,\"real_size\":500,\"frames\":[{\"name\":"
    "\"f\",\"filename\":\"a\",\"line\":1}]},{\"addr\":1024,\"real_size\":5}]},"
    "{\"size\":512,\"state\":\"inactive\"}]}]";

/* What is written as JSON has that text. */
static void writes(const struct tarn_snapshot *snapshot, const char *text)
{
    struct test_collect json = write_out(snapshot, TARN_SNAPSHOT_JSON);

    if (!strstr(json.text, text)) {
        fail_msg("no %s in %s", text, json.text);
    }
    free(json.text);
}

static void every_kind_of_value_survives(void **state)
{
    struct tarn_snapshot *snapshot = read_text(rich);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    (void)state;
    assert_int_equal(model->segments[0].address, UINT64_MAX - 511);
    assert_int_equal(model->segments[0].pool.id[1], 4);
    assert_int_equal(tn_trace_at(model, &model->traces[1], 1)->time_us, -5);
    assert_int_equal(model->settings.field_count, 7);
    const struct tn_trace_extra *extra =
        tn_model_extra(model, tn_trace_at(model, &model->traces[1], 1)->extra);

    assert_string_equal(tn_model_string(model, extra->user_metadata).text,
                        "\xc3\xa9\xf0\x9f\x98\x80\x01\"\\\xed\xa0\x80");
    assert_int_equal(model->settings.roundup_power2_divisions[15], 8);
    survives_both(snapshot);
    writes(snapshot, "\"line\":-1,\"fx_node_op\":\"call\",\"fx_node_name\":\"add_1\","
                     "\"fx_node_target\":\"add\",\"fx_original_trace\":\"t\",\"columns\":[7]}");
    writes(snapshot, "\"roundup_power2_divisions\":{\"1\":2,\"2\":0,");
    tarn_snapshot_destroy(snapshot);

    snapshot = read_text(old_form);
    assert_true(tn_snapshot_model(snapshot)->is_legacy);
    survives_both(snapshot);
    tarn_snapshot_destroy(snapshot);

    snapshot = read_text("{\"segments\":[]}");
    survives_both(snapshot);
    tarn_snapshot_destroy(snapshot);
}

/* JSON has no infinity, and writes what is no half of a pair as it is. */
static void json_has_what_it_can(void **state)
{
    static const char bytes[] = "\x80\x04}(\x8c\x08segments]\x8c\x12"
                                "allocator_settings}(\x8c\1aG\x7f\xf0\0\0\0\0\0\0\x8c\1bG\x7f\xf8\0"
                                "\0\0\0\0\0\x8c\1c\x8c\3\xed\x9f\xbf\x8c\1d\x8c\3\xed\xa0\x80uu.";
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_snapshot *snapshot;

    (void)state;
    assert_int_equal(tarn_snapshot_load_memory(bytes, sizeof bytes - 1, NULL, &snapshot, NULL),
                     TARN_OK);
    assert_int_equal(tarn_snapshot_write(snapshot, TARN_SNAPSHOT_JSON, &writer, NULL), TARN_OK);
    assert_non_null(strstr(collect.text, "\"a\":null,\"b\":null,\"c\":\"\xed\x9f\xbf\","
                                         "\"d\":\"\\ud800\""));
    free(collect.text);
    tarn_snapshot_destroy(snapshot);
}

/* A pickle with one setting, "x", of the given bytes. */
static struct tarn_snapshot *read_setting(const char *value, size_t size)
{
    static const char begin[] = "\x80\x04}(\x8c\x08segments]\x8c\x12"
                                "allocator_settings}(\x8c\1x";
    struct test_collect pickle = {.text = NULL};

    assert_int_equal(test_collect_write(&pickle, begin, sizeof begin - 1), TARN_OK);
    assert_int_equal(test_collect_write(&pickle, value, size), TARN_OK);
    assert_int_equal(test_collect_write(&pickle, "uu.", 3), TARN_OK);
    struct tarn_snapshot *snapshot = read_memory(pickle.text, pickle.size);

    free(pickle.text);
    return snapshot;
}

static struct tarn_snapshot *read_string(const char *text)
{
    const size_t length = strlen(text);
    char value[64];

    value[0] = (char)0x8c;
    value[1] = (char)length;
    memcpy(value + 2, text, length + 1);
    return read_setting(value, length + 2);
}

/* Two surrogates that form a pair, which a string of Python may have, are written as the character
 * that any reader makes of them; others as they are. */
static void surrogates_are_written_as_they_are_read(void **state)
{
    static const struct {
        const char *halves;
        const char *whole;
    } pairs[] = {
        {"\xed\xa0\x80\xed\xb0\x80", "\xf0\x90\x80\x80"}, /* U+10000 */
        {"\xed\xa0\xbd\xed\xb8\x80", "\xf0\x9f\x98\x80"}, /* U+1F600 */
        {"\xed\xa1\x80\xed\xb0\x80", "\xf0\xa0\x80\x80"}, /* U+20000 */
        {"\xed\xa1\xa9\xed\xbb\x96", "\xf0\xaa\x9b\x96"}, /* U+2A6D6 */
        {"\xed\xa9\x95\xed\xb5\x95", "\xf2\xa5\x95\x95"}, /* U+A5555 */
        {"\xed\xaf\xbf\xed\xbf\xbd", "\xf4\x8f\xbf\xbd"}, /* U+10FFFD */
    };
    static const struct {
        const char *text;
        const char *json;
    } lone[] = {
        {"\xed\xa0\x80", "\"x\":\"\\ud800\""},
        {"\xed\xb3\xbf", "\"x\":\"\\udcff\""},
        {"\xed\xbf\xbf"
         "a",
         "\"x\":\"\\udfffa\""},
        {"\xed\xb0\x80\xed\xb0\x80", "\"x\":\"\\udc00\\udc00\""},
        {"\xed\xb0\x81\xed\xa0\xbd", "\"x\":\"\\udc01\\ud83d\""},
        {"\xed\xa0\xbd\xed\xa0\xbd", "\"x\":\"\\ud83d\\ud83d\""},
        {"\xed\xa0\xbd\xed\x9f\xbf", "\"x\":\"\\ud83d\xed\x9f\xbf\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct tarn_snapshot *halves = read_string(pairs[i].halves);
        struct tarn_snapshot *whole = read_string(pairs[i].whole);
        struct test_collect wanted = write_out(whole, TARN_SNAPSHOT_JSON);

        writes(halves, wanted.text);
        free(wanted.text);
        tarn_snapshot_destroy(halves);
        tarn_snapshot_destroy(whole);
    }
    for (size_t i = 0; i < sizeof lone / sizeof *lone; i++) {
        struct tarn_snapshot *snapshot = read_string(lone[i].text);

        writes(snapshot, lone[i].json);
        survives_both(snapshot);
        tarn_snapshot_destroy(snapshot);
    }
}

/* A tuple comes at once, of whatever length; the items of a list come in batches. */
static void long_tuples_survive(void **state)
{
    enum {
        COUNT = 1001
    };
    char value[2 * COUNT + 8];

    (void)state;
    for (int is_list = 0; is_list < 2; is_list++) {
        size_t size = 0;

        if (is_list) {
            value[size++] = ']';
        }
        value[size++] = '(';
        for (int i = 0; i < COUNT; i++) {
            value[size++] = 'K';
            value[size++] = 1;
        }
        value[size++] = is_list ? 'e' : 't';
        struct tarn_snapshot *snapshot = read_setting(value, size);
        struct test_collect file = write_out(snapshot, TARN_SNAPSHOT_PICKLE);

        assert_int_equal(count_of(&file, "e(K\1e"), is_list); /* the last one has a batch */
        survives_both(snapshot);
        free(file.text);
        tarn_snapshot_destroy(snapshot);
    }
}

/* A whole number of a float's remains one: 2.0 is not 2. */
static void json_is_one_line_with_floats(void **state)
{
    struct tarn_snapshot *snapshot =
        read_text("{\"segments\":[],\"allocator_settings\":{\"a\":2.0,\"b\":-3e0,\"c\":1e300}}");
    struct test_collect json = write_out(snapshot, TARN_SNAPSHOT_JSON);

    (void)state;
    assert_non_null(strstr(json.text, "\"a\":2.0,\"b\":-3.0,\"c\":1e"));
    assert_ptr_equal(strchr(json.text, '\n'), json.text + json.size - 1);
    survives_both(snapshot);
    free(json.text);
    tarn_snapshot_destroy(snapshot);
}

/* Keys and values of a program's own, also those that records of a snapshot have. */
static void metadata_may_be_any_dict(void **state)
{
    static const char *const dicts[] = {
        "{\"phase\":\"forward\",\"step\":3}",
        "{\"filename\":\"data.bin\"}",
        "{\"name\":\"x\",\"filename\":\"y\"}",
        "{\"name\":\"x\",\"line\":4}",
        "{\"line\":\"twelve\"}",
        "{\"line\":null,\"name\":[1]}",
        "{\"filename\":3,\"line\":1.5}",
        "{\"items\":[{\"filename\":\"a\"},{\"filename\":\"b\"}]}",
        "{\"where\":{\"filename\":\"a\",\"epoch\":{\"n\":1}}}",
        "{\"action\":\"alloc\",\"stream\":\"x\"}",
        "{\"action\":\"alloc\",\"size\":4}",
        "{\"state\":\"warm\",\"temperature\":3}",
        "{\"size\":3}",
        "{\"size\":3,\"state\":\"inactive\"}",
        "{\"state\":\"warm\",\"size\":\"big\",\"epoch\":4}",
        "{\"state\":{\"size\":1,\"state\":2},\"size\":[]}",
        "{\"a\":[{\"size\":3,\"state\":\"inactive\"}]}",
        "{\"a\":[{\"size\":3,\"state\":\"warm\"},{\"size\":1}]}",
        "{\"a\":[{\"state\":\"inactive\",\"size\":-3}]}",
        "{\"a\":[{\"state\":2,\"size\":[1]}]}",
        "{\"a\":[{\"state\":\"inactive\",\"size\":\"x\"}]}",
        "{\"a\":[{\"size\":1,\"state\":\"inactive\",\"x\":[]}]}",
        ("{\"a\":[{\"address\":1,\"size\":2,\"requested_size\":0,"
         "\"state\":\"active_pending_free\",\"frames\":[]}]}"),
        "{\"a\":[[{\"state\":\"active_awaiting_free\",\"size\":1}]]}",
        "{\"history\":[]}",
        "{\"a\":[-1,18446744073709551615],\"b\":[9223372036854775808,-1],\"c\":[3,4]}",
        "{}"};

    (void)state;
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        char text[1024];

        (void)snprintf(text, sizeof text,
                       "{\"segments\":[{\"address\":512,\"total_size\":512,\"stream\":0,"
                       "\"blocks\":[{\"size\":256,\"state\":\"inactive\",\"user_metadata\":%s},"
                       "{\"size\":256,\"state\":\"inactive\"}],\"user_metadata\":%s}],"
                       "\"device_traces\":[[{\"action\":\"alloc\",\"addr\":512,"
                       "\"size\":1,\"user_metadata\":%s,\"internal_metadata\":%s}]],"
                       "\"user_metadata\":%s}",
                       dicts[i], dicts[i], dicts[i], dicts[i], dicts[i]);
        struct tarn_snapshot *snapshot = read_text(text);
        struct test_collect out = write_out(snapshot, TARN_SNAPSHOT_JSON);
        int found = 0;

        for (const char *at = strstr(out.text, dicts[i]); at; at = strstr(at + 1, dicts[i])) {
            found++;
        }
        if (found != 5) {
            fail_msg("%d times %s in %s", found, dicts[i], out.text);
        }
        assert_int_equal(tn_snapshot_model(snapshot)->segments->block_count, 2);
        survives_both(snapshot);
        free(out.text);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Batches of at most 1,000 items: as many openings of a batch as thousands. */
static void long_lists_come_in_batches(void **state)
{
    enum {
        ENTRIES = 2500
    };
    char *text = malloc((size_t)ENTRIES * 64 + 64);
    size_t size = 0;

    (void)state;
    assert_non_null(text);
    size += (size_t)snprintf(text, 64, "{\"segments\":[],\"device_traces\":[[");
    for (int i = 0; i < ENTRIES; i++) {
        size += (size_t)snprintf(text + size, 64, "%s{\"action\":\"alloc\",\"addr\":%d,\"size\":1}",
                                 i ? "," : "", i);
    }
    size += (size_t)snprintf(text + size, 64, "]]}");
    struct tarn_snapshot *snapshot = read_memory(text, size);
    struct test_collect out = write_out(snapshot, TARN_SNAPSHOT_PICKLE);
    size_t batches = 0;

    for (size_t i = 0; i + 2 < out.size; i++) { /* u e ( : the end of an entry and of a batch */
        batches += memcmp(out.text + i, "ue(", 3) == 0;
    }
    assert_int_equal(batches, 2);
    survives_both(snapshot);
    free(out.text);
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* Every length of a number, in the first entry of its kind and in later ones, which are written in
 * another way. */
static void numbers_of_every_length_survive(void **state)
{
    char text[16384];
    size_t size = 0;

    (void)state;
    size += (size_t)snprintf(text, sizeof text, "{\"segments\":[],\"device_traces\":[[");
    for (unsigned bit = 0; bit < 64; bit++) {
        const unsigned long long power = 1ull << bit;

        size += (size_t)snprintf(
            text + size, sizeof text - size,
            "%s{\"action\":\"alloc\",\"addr\":%llu,\"size\":%llu,\"stream\":%llu,\"time_us\":%lld}",
            bit ? "," : "", power, power - 1, power + 1,
            bit % 2 ? -(long long)(power / 2) : (long long)(power / 2));
    }
    size += (size_t)snprintf(text + size, sizeof text - size, "]]}");
    assert_true(size < sizeof text - 1);
    struct tarn_snapshot *snapshot = read_memory(text, size);

    survives_both(snapshot);
    tarn_snapshot_destroy(snapshot);
}

/* ---- files ---- */

/* Removes it; returns how many files it had. */
static int folder_remove(struct temp_folder *folder)
{
    DIR *opened = opendir(folder->path);
    const struct dirent *entry;
    char path[600];
    int count = 0;

    assert_non_null(opened);
    while ((entry = readdir(opened)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(path, sizeof path, "%s/%s", folder->path, entry->d_name);
            assert_int_equal(unlink(path), 0);
            count++;
        }
    }
    (void)closedir(opened);
    temp_folder_remove(folder);
    return count;
}

/* ---- the shortest form ---- */

struct bytes {
    unsigned char at[1024];
    size_t size;
};

static void bytes_put(struct bytes *bytes, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes->at[bytes->size++] = (unsigned char)(i < 8 ? value >> 8 * i : 0);
    }
}

/* As CPython's pickle module writes an int: written here from its documentation, byte by byte. */
static void bytes_put_int(struct bytes *bytes, bool is_negative, uint64_t value)
{
    if (!is_negative && value < 0x100) {
        bytes_put(bytes, 'K', 1);
        bytes_put(bytes, value, 1);
    } else if (!is_negative && value < 0x10000) {
        bytes_put(bytes, 'M', 1);
        bytes_put(bytes, value, 2);
    } else if (is_negative ? value >= 0xffffffff80000000 : value < 0x80000000) {
        bytes_put(bytes, 'J', 1);
        bytes_put(bytes, value, 4);
    } else {
        const uint64_t magnitude = is_negative ? ~value : value;
        size_t size = 1;

        while (size < 8 && magnitude >> (8 * size - 1) != 0) { /* no room for the sign yet */
            size++;
        }
        size += magnitude >> 63; /* a ninth byte */
        bytes_put(bytes, 0x8a, 1);
        bytes_put(bytes, size, 1);
        bytes_put(bytes, value, size);
    }
}

static bool has_bytes(const struct test_collect *file, const struct bytes *bytes)
{
    for (size_t i = 0; i + bytes->size <= file->size; i++) {
        if (memcmp(file->text + i, bytes->at, bytes->size) == 0) {
            return true;
        }
    }
    return false;
}

static void numbers_have_the_shortest_form(void **state)
{
    static const int64_t edges[] = {0,
                                    1,
                                    255,
                                    256,
                                    65535,
                                    65536,
                                    INT32_MAX,
                                    2147483648,
                                    8388608,
                                    4294967295,
                                    4294967296,
                                    549755813887,
                                    549755813888,
                                    140737488355327,
                                    140737488355328,
                                    36028797018963967,
                                    36028797018963968,
                                    INT64_MAX,
                                    -1,
                                    -128,
                                    -129,
                                    -256,
                                    -65536,
                                    INT32_MIN,
                                    -2147483649,
                                    -549755813888,
                                    -549755813889,
                                    INT64_MIN};

    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        const uint64_t value = (uint64_t)edges[i];
        const bool is_negative = edges[i] < 0;
        char json[512];
        struct bytes list = {.size = 0};
        struct bytes pair = {.size = 0};

        (void)snprintf(json, sizeof json,
                       "{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\",\"addr\":7,"
                       "\"size\":1,\"stream\":0,\"pool_id\":[3,%lld],"
                       "\"user_metadata\":[77,%lld,%lld]}]]}",
                       is_negative ? 5LL : (long long)edges[i], (long long)edges[i],
                       (long long)edges[i]);
        struct tarn_snapshot *snapshot = read_text(json);
        struct test_collect file = write_out(snapshot, TARN_SNAPSHOT_PICKLE);

        bytes_put_int(&list, false, 77);
        bytes_put_int(&list, is_negative, value);
        bytes_put_int(&list, is_negative, value);
        bytes_put(&list, 'e', 1);
        bytes_put_int(&pair, false, 3);
        bytes_put_int(&pair, false, is_negative ? 5 : value);
        bytes_put(&pair, 0x86, 1);
        if (!has_bytes(&file, &list) || !has_bytes(&file, &pair)) {
            fail_msg("%lld has another form", (long long)edges[i]);
        }
        survives(snapshot, TARN_SNAPSHOT_PICKLE);
        free(file.text);
        tarn_snapshot_destroy(snapshot);
    }
}

/* So have those of entries, which are written another way. */
static void addresses_have_the_shortest_form(void **state)
{
    static const uint64_t edges[] = {0,         255,        256,        65535,     65536,
                                     INT32_MAX, 2147483648, 4294967295, 4294967296};

    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        char json[256];
        struct bytes address = {.size = 0};

        (void)snprintf(json, sizeof json,
                       "{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\",\"addr\":%llu,"
                       "\"size\":7,\"stream\":3}]]}",
                       (unsigned long long)edges[i]);
        struct tarn_snapshot *snapshot = read_text(json);
        struct test_collect file = write_out(snapshot, TARN_SNAPSHOT_PICKLE);

        bytes_put_int(&address, false, edges[i]);
        if (!has_bytes(&file, &address)) {
            fail_msg("%llu has another form", (unsigned long long)edges[i]);
        }
        free(file.text);
        tarn_snapshot_destroy(snapshot);
    }
}

/* The memo's numbers have one byte up to 255, then four. */
static void many_texts_are_written_once(void **state)
{
    struct test_collect json = {.text = NULL};
    const struct tarn_writer out = {test_collect_write, &json};
    static const char begin[] = "{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\","
                                "\"addr\":7,\"size\":1,\"stream\":0,\"user_metadata\":[0";
    char text[64];

    (void)state;
    assert_int_equal(out.write(out.context, begin, sizeof begin - 1), TARN_OK);
    for (int i = 0; i < 300; i++) {
        const int size = snprintf(text, sizeof text, ",\"text%03d\",\"text%03d\"", i, i);

        assert_int_equal(out.write(out.context, text, (size_t)size), TARN_OK);
    }
    assert_int_equal(out.write(out.context, "]}]]}", 5), TARN_OK);
    struct tarn_snapshot *snapshot = read_memory(json.text, json.size);
    struct test_collect file = write_out(snapshot, TARN_SNAPSHOT_PICKLE);

    for (int i = 0; i < 300; i++) {
        (void)snprintf(text, sizeof text, "text%03d", i);
        assert_int_equal(count_of(&file, text), 1);
    }
    survives_both(snapshot);
    tarn_snapshot_destroy(snapshot);
    free(file.text);
    free(json.text);
}

/* A small snapshot byte by byte: protocol 4, each string once, no empty batch. */
static void the_pickle_is_exact(void **state)
{
    static const char wanted[] = "\x80\x04}("
                                 "\x8c\x08segments\x94]"
                                 "\x8c\x0d"
                                 "device_traces\x94](](}("
                                 "\x8c\x06"
                                 "action\x94\x8c\x05"
                                 "alloc\x94"
                                 "\x8c\x04"
                                 "addr\x94M\x00\x02"
                                 "\x8c\x04size\x94K\x07"
                                 "\x8c\x06stream\x94K\x00"
                                 "u}(h\x02h\x03h\x04K\x08h\x05K\x09h\x06K\x00ueeu.";
    struct tarn_snapshot *snapshot =
        read_text("{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\",\"addr\":512,"
                  "\"size\":7,\"stream\":0},{\"action\":\"alloc\",\"addr\":8,\"size\":9,"
                  "\"stream\":0}]]}");
    struct test_collect file = write_out(snapshot, TARN_SNAPSHOT_PICKLE);

    (void)state;
    assert_int_equal(file.size, sizeof wanted - 1);
    assert_memory_equal(file.text, wanted, sizeof wanted - 1);
    free(file.text);
    tarn_snapshot_destroy(snapshot);
}

/* A frame that several stacks have is written once, and so is a stack of several entries. */
static void frames_and_stacks_are_written_once(void **state)
{
    static const char *const stacks[] = {
        "{\"name\":\"f\",\"filename\":\"a\",\"line\":1717986918}",
        "{\"name\":\"f\",\"filename\":\"a\",\"line\":1717986918},"
        "{\"name\":\"g\",\"filename\":\"a\",\"line\":2}",
        "{\"name\":\"f\",\"filename\":\"a\",\"line\":1717986918},"
        "{\"name\":\"g\",\"filename\":\"a\",\"line\":2}",
    };
    static const char entry[] = "{\"action\":\"alloc\",\"addr\":7,\"size\":1,\"frames\":[%s]}";
    char text[1024] = "{\"segments\":[],\"device_traces\":[[";

    (void)state;
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        (void)snprintf(text + strlen(text), 256, entry, stacks[i]);
        (void)snprintf(text + strlen(text), 8, i < 2 ? "," : "]]}");
    }
    struct tarn_snapshot *snapshot = read_text(text);
    struct test_collect file = write_out(snapshot, TARN_SNAPSHOT_PICKLE);

    assert_int_equal(count_of(&file, "Jffff"), 1); /* the line */
    assert_int_equal(count_of(&file, "]("), 4);    /* lists: of traces and entries, two stacks */
    survives_both(snapshot);
    free(file.text);
    tarn_snapshot_destroy(snapshot);
}

/* The length of a string takes one byte up to 255, then four. */
static void texts_have_the_shortest_form(void **state)
{
    static const size_t lengths[] = {0, 1, 255, 256, 300, 65536};
    static const char begin[] = "{\"segments\":[],\"allocator_settings\":{\"k\":\"";

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const size_t length = lengths[i];
        struct test_collect json = {.text = NULL};
        char *text = malloc(length + 1);
        struct bytes head = {.size = 0};

        assert_non_null(text);
        memset(text, 'x', length);
        text[length] = '\0';
        assert_int_equal(test_collect_write(&json, begin, sizeof begin - 1), TARN_OK);
        assert_int_equal(test_collect_write(&json, text, length), TARN_OK);
        assert_int_equal(test_collect_write(&json, "\"}}", 3), TARN_OK);
        struct tarn_snapshot *snapshot = read_memory(json.text, json.size);
        struct test_collect file = write_out(snapshot, TARN_SNAPSHOT_PICKLE);

        bytes_put(&head, length < 256 ? 0x8c : 'X', 1);
        bytes_put(&head, length, length < 256 ? 1 : 4);
        for (size_t k = 0; k < length && k < 3; k++) {
            bytes_put(&head, 'x', 1);
        }
        assert_true(has_bytes(&file, &head));
        survives_both(snapshot);
        free(text);
        free(json.text);
        free(file.text);
        tarn_snapshot_destroy(snapshot);
    }
}

/* ---- whole dicts ---- */

struct rows {
    struct tn_model model;
    uint32_t unwritten; /* a string */
    struct tn_pickle_format pickle;
    struct test_collect collect;
    struct tarn_writer writer;
    struct tn_byte_out out;
    unsigned char behind[64]; /* not part of the output */
};

enum {
    ROW_STRINGS = 300
};

/* A format that has written strings and a stack: strings[i] has memo number i, the stack the next
 * one. */
static void rows_open(struct rows *rows, uint32_t strings[ROW_STRINGS], uint32_t *stack)
{
    uint32_t frame;
    char text[16];

    memset(rows, 0, sizeof *rows);
    memset(rows->behind, 0x77, sizeof rows->behind);
    rows->writer = (struct tarn_writer){test_collect_write, &rows->collect};
    tn_bytes_init(&rows->out, &rows->writer);
    assert_int_equal(tn_model_init(&rows->model, 0), TARN_OK);
    assert_int_equal(tn_model_add_string(&rows->model, "unwritten", 9, &rows->unwritten), TARN_OK);
    for (int i = 0; i < ROW_STRINGS; i++) {
        const int size = snprintf(text, sizeof text, "text%d", i);

        assert_int_equal(tn_model_add_string(&rows->model, text, (size_t)size, &strings[i]),
                         TARN_OK);
    }
    assert_int_equal(tn_model_add_frame(&rows->model, &(struct tn_frame){.line = 1}, &frame),
                     TARN_OK);
    assert_int_equal(tn_model_add_stack(&rows->model, &frame, 1, stack), TARN_OK);
    assert_true(tn_pickle_format_init(&rows->pickle, &rows->model, &rows->out));
    const struct tn_format_ops *ops = rows->pickle.format.ops;

    for (int i = 0; i < ROW_STRINGS; i++) {
        ops->string(&rows->pickle.format, strings[i]);
    }
    ops->remember(&rows->pickle.format, TN_SHARED_STACK, *stack);
    tn_bytes_flush(&rows->out);
    rows->collect.size = 0;
}

static void rows_close(struct rows *rows)
{
    tn_pickle_format_fini(&rows->pickle);
    tn_model_fini(&rows->model);
    free(rows->collect.text);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static bool rows_put(struct rows *rows, const struct tn_item *items, uint32_t count)
{
    const bool is_written = rows->pickle.format.ops->row(&rows->pickle.format, items, count);

    for (size_t i = 0; i < sizeof rows->behind; i++) {
        assert_int_equal(rows->behind[i], 0x77);
    }
    return is_written;
}

static void bytes_put_memo(struct bytes *bytes, uint32_t number)
{
    bytes_put(bytes, number < 256 ? 'h' : 'j', 1);
    bytes_put(bytes, number, number < 256 ? 1 : 4);
}

/* Numbers in the shortest form, strings and stacks from the memo. Its numbers take one byte up to
 * 255, then four. */
static void rows_are_written_at_once(void **state)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       255,
                                       256,
                                       65535,
                                       65536,
                                       INT32_MAX,
                                       1u << 31,
                                       UINT32_MAX,
                                       1ull << 32,
                                       (1ull << 39) - 1,
                                       1ull << 39,
                                       INT64_MAX,
                                       1ull << 63,
                                       UINT64_MAX};
    static const int known[] = {0, 1, 254, 255, 256, 257, 299};
    struct rows *rows = malloc(sizeof *rows);
    uint32_t strings[ROW_STRINGS];
    uint32_t stack;

    (void)state;
    assert_non_null(rows);
    rows_open(rows, strings, &stack);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
            const uint32_t memo = (uint32_t)known[k];
            const uint64_t pair[2] = {numbers[i], UINT64_MAX - numbers[i]};
            const struct tn_item items[] = {
                {strings[memo], TN_ITEM_WHOLE, {.number = numbers[i]}},
                {strings[7], TN_ITEM_INTEGER, {.integer = (int64_t)(numbers[i] >> 1)}},
                {strings[8], TN_ITEM_STRING, {.number = strings[memo]}},
                {strings[9], TN_ITEM_PAIR, {.pair = pair}},
                {strings[299], TN_ITEM_STACK, {.number = stack}},
            };
            struct bytes wanted = {.size = 0};

            bytes_put(&wanted, '}' | '(' << 8, 2);
            bytes_put_memo(&wanted, memo);
            bytes_put_int(&wanted, false, numbers[i]);
            bytes_put_memo(&wanted, 7);
            bytes_put_int(&wanted, false, numbers[i] >> 1);
            bytes_put_memo(&wanted, 8);
            bytes_put_memo(&wanted, memo);
            bytes_put_memo(&wanted, 9);
            bytes_put_int(&wanted, false, pair[0]);
            bytes_put_int(&wanted, false, pair[1]);
            bytes_put(&wanted, 0x86, 1);
            bytes_put_memo(&wanted, 299);
            bytes_put_memo(&wanted, ROW_STRINGS);
            bytes_put(&wanted, 'u', 1);

            assert_true(rows_put(rows, items, 5));
            tn_bytes_flush(&rows->out);
            assert_int_equal(rows->collect.size, wanted.size);
            assert_memory_equal(rows->collect.text, wanted.at, wanted.size);
            rows->collect.size = 0;
        }
    }
    rows_close(rows);
    free(rows);
}

/* Nothing is written if the dict has a string or stack that is not in the memo, or a value of
 * another kind. */
static void other_rows_are_not_written(void **state)
{
    struct rows *rows = malloc(sizeof *rows);
    const struct tn_field field = {.kind = TN_FIELD_NONE};
    uint32_t strings[ROW_STRINGS];
    uint32_t stack;

    (void)state;
    assert_non_null(rows);
    rows_open(rows, strings, &stack);
    const struct tn_item items[] = {
        {rows->unwritten, TN_ITEM_WHOLE, {.number = 1}},
        {strings[1], TN_ITEM_STRING, {.number = rows->unwritten}},
        {strings[1], TN_ITEM_STACK, {.number = TN_STACK_EMPTY}},
        {strings[1], TN_ITEM_INTEGER, {.integer = -1}},
        {strings[1], TN_ITEM_FIELD, {.field = &field}},
    };

    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        const struct tn_item two[2] = {{strings[0], TN_ITEM_WHOLE, {.number = 5}}, items[i]};

        assert_false(rows_put(rows, two, 2));
        assert_int_equal(rows->out.used, 0);
    }
    rows_close(rows);
    free(rows);
}

/* The longest row that two keys can have, with any space left in the buffer. */
static void rows_stay_within_the_buffer(void **state)
{
    static const uint64_t pair[2] = {UINT64_MAX, UINT64_MAX};
    struct rows *rows = malloc(sizeof *rows);
    uint32_t strings[ROW_STRINGS];
    uint32_t stack;

    (void)state;
    assert_non_null(rows);
    rows_open(rows, strings, &stack);
    const struct tn_item item = {strings[299], TN_ITEM_PAIR, {.pair = pair}};
    const struct tn_item items[2] = {item, item};
    const size_t size = 3 + 2 * (5 + 11 + 11 + 1);

    for (size_t left = 0; left < 80; left++) {
        rows->out.used = TN_BYTES_BUFFER - left;
        rows->collect.size = 0;
        assert_true(rows_put(rows, items, 2));
        assert_int_equal(rows->out.used + rows->collect.size, TN_BYTES_BUFFER - left + size);
        assert_int_equal(rows->collect.size, left < size ? TN_BYTES_BUFFER - left : 0);
    }
    rows_close(rows);
    free(rows);
}

static void names_of_files_tell_their_form(void **state)
{
    (void)state;
    assert_int_equal(tarn_snapshot_format_of("a.json"), TARN_SNAPSHOT_JSON);
    assert_int_equal(tarn_snapshot_format_of(".json"), TARN_SNAPSHOT_JSON);
    assert_int_equal(tarn_snapshot_format_of("a.json.gz"), TARN_SNAPSHOT_JSON);
    assert_int_equal(tarn_snapshot_format_of("json"), TARN_SNAPSHOT_PICKLE);
    assert_int_equal(tarn_snapshot_format_of("a.jsonl"), TARN_SNAPSHOT_PICKLE);
    assert_int_equal(tarn_snapshot_format_of(""), TARN_SNAPSHOT_PICKLE);
    /* Of a name what comes before it in memory is no part. */
    assert_int_equal(tarn_snapshot_format_of(&"a.json"[2]), TARN_SNAPSHOT_PICKLE);
}

static void files_have_the_form_of_their_name(void **state)
{
    struct temp_folder folder = temp_folder_make();
    struct tarn_snapshot *snapshot = read_text(rich);
    static const char *const names[] = {"a.pickle", "a.json", "a"};
    struct tarn_error error;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct tarn_snapshot *again = NULL;
        char path[300];

        (void)snprintf(path, sizeof path, "%s/%s", folder.path, names[i]);
        for (int k = 0; k < 2; k++) { /* the second replaces the first */
            assert_int_equal(tarn_snapshot_save(snapshot, path, &error), TARN_OK);
        }
        assert_int_equal(tarn_snapshot_load(path, NULL, &again, &error), TARN_OK);
        same_model(tn_snapshot_model(snapshot), tn_snapshot_model(again));
        tarn_snapshot_destroy(again);
        FILE *file = fopen(path, "rb");

        assert_non_null(file);
        assert_int_equal(fgetc(file), i == 1 ? '{' : 0x80);
        (void)fclose(file);
    }
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(folder_remove(&folder), 3);
}

static void a_file_that_cannot_be_made_is_said(void **state)
{
    struct temp_folder folder = temp_folder_make();
    struct tarn_snapshot *snapshot = read_text(rich);
    struct tarn_error error;
    char path[5000];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/none/a.pickle", folder.path);
    assert_int_equal(tarn_snapshot_save(snapshot, path, &error), TARN_ERR_IO);
    assert_non_null(strstr(error.text, "No such file"));
    (void)snprintf(path, sizeof path, "%s/folder", folder.path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(tarn_snapshot_save(snapshot, path, &error), TARN_ERR_IO); /* is a folder */
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(tarn_snapshot_save(snapshot, "/dev/full/x", &error), TARN_ERR_IO);
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(tarn_snapshot_save(snapshot, path, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_snapshot_save(snapshot, "", &error), TARN_ERR_INVALID_ARGUMENT);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(folder_remove(&folder), 0); /* nothing half is left */
}

static void a_writer_may_refuse(void **state)
{
    struct tarn_snapshot *snapshot = read_text(rich);
    struct test_collect whole = write_out(snapshot, TARN_SNAPSHOT_PICKLE);
    struct test_collect collect = {.room = whole.size - 1};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_snapshot_write(snapshot, TARN_SNAPSHOT_PICKLE, &writer, &error),
                     TARN_ERR_IO);
    free(collect.text);
    free(whole.text);
    tarn_snapshot_destroy(snapshot);
}

static enum tarn_status count_bytes(void *context, const char *bytes, size_t size)
{
    (void)bytes;
    *(size_t *)context += size;
    return TARN_OK;
}

static void every_host_allocation_may_fail(void **state)
{
    (void)state;
    for (int format = 0; format < 2; format++) {
        struct tarn_snapshot *snapshot = read_text(rich);
        size_t bytes = 0;
        const struct tarn_writer writer = {count_bytes, &bytes};
        const uint64_t before = tarn_host_get_usage().live_bytes;
        enum tarn_status st = TARN_ERR_HOST_MEMORY;
        uint64_t n = 0;

        while (st == TARN_ERR_HOST_MEMORY) {
            tarn_host_fail_nth(++n);
            st = tarn_snapshot_write(snapshot, (enum tarn_snapshot_format)format, &writer, NULL);
            tarn_host_fail_nth(0);
            assert_int_equal(tarn_host_get_usage().live_bytes, before);
        }
        assert_int_equal(st, TARN_OK);
        assert_int_equal(n, format == TARN_SNAPSHOT_PICKLE ? 5 : 2);
        tarn_snapshot_destroy(snapshot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_snapshots_survive),
        cmocka_unit_test(every_kind_of_value_survives),
        cmocka_unit_test(json_has_what_it_can),
        cmocka_unit_test(surrogates_are_written_as_they_are_read),
        cmocka_unit_test(long_tuples_survive),
        cmocka_unit_test(json_is_one_line_with_floats),
        cmocka_unit_test(metadata_may_be_any_dict),
        cmocka_unit_test(long_lists_come_in_batches),
        cmocka_unit_test(numbers_of_every_length_survive),
        cmocka_unit_test(numbers_have_the_shortest_form),
        cmocka_unit_test(addresses_have_the_shortest_form),
        cmocka_unit_test(many_texts_are_written_once),
        cmocka_unit_test(the_pickle_is_exact),
        cmocka_unit_test(texts_have_the_shortest_form),
        cmocka_unit_test(rows_are_written_at_once),
        cmocka_unit_test(other_rows_are_not_written),
        cmocka_unit_test(rows_stay_within_the_buffer),
        cmocka_unit_test(frames_and_stacks_are_written_once),
        cmocka_unit_test(names_of_files_tell_their_form),
        cmocka_unit_test(files_have_the_form_of_their_name),
        cmocka_unit_test(a_file_that_cannot_be_made_is_said),
        cmocka_unit_test(a_writer_may_refuse),
        cmocka_unit_test(every_host_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
