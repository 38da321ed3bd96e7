/* SPDX-License-Identifier: MIT */
#include "fleet/label_table.h"
#include "support/temp.h"
#include "support/test.h"

#include "tarn/host.h"

#include <string.h>

struct rig {
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_labels labels;
    struct tn_label_table table;
    struct tarn_error error;
};

static int rig_make(void **state)
{
    static struct rig rig;

    rig = (struct rig){.labels = {.count = 0}};
    tn_arena_init(&rig.arena, &rig.budget);
    tn_label_table_init(&rig.table);
    *state = &rig;
    return 0;
}

static int rig_end(void **state)
{
    struct rig *rig = *state;

    tn_label_table_fini(&rig->table);
    tn_arena_fini(&rig->arena);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    return 0;
}

/* ---- labels ---- */

static enum tarn_status set(struct rig *rig, const char *key, const char *value)
{
    return tn_labels_set(&rig->labels, &rig->arena, key, strlen(key), value, strlen(value));
}

static void keys_are_words(void **state)
{
    static const struct {
        const char *key;
        enum tarn_status status;
    } cases[] = {
        {"a", TARN_OK},
        {"Z", TARN_OK},
        {"z_9", TARN_OK},
        {"", TARN_ERR_INVALID_ARGUMENT},
        {"a b", TARN_ERR_INVALID_ARGUMENT},
        {"a-b", TARN_ERR_INVALID_ARGUMENT},
        {"[", TARN_ERR_INVALID_ARGUMENT}, /* between 'Z' and 'a' */
        {"{", TARN_ERR_INVALID_ARGUMENT},
        {"@", TARN_ERR_INVALID_ARGUMENT},
        {"/", TARN_ERR_INVALID_ARGUMENT},
        {":", TARN_ERR_INVALID_ARGUMENT},
    };
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(set(rig, cases[i].key, "1"), cases[i].status);
    }
    assert_int_equal(rig->labels.count, 3);
}

static void lengths_have_limits(void **state)
{
    struct rig *rig = *state;
    char text[TN_LABEL_VALUE_MAX + 2];

    memset(text, 'k', sizeof text);
    text[TN_LABEL_KEY_MAX] = '\0';
    assert_int_equal(set(rig, text, ""), TARN_OK);
    text[TN_LABEL_KEY_MAX] = 'k';
    text[TN_LABEL_KEY_MAX + 1] = '\0';
    assert_int_equal(set(rig, text, ""), TARN_ERR_INVALID_ARGUMENT);
    text[TN_LABEL_KEY_MAX + 1] = 'k';
    text[TN_LABEL_VALUE_MAX] = '\0';
    assert_int_equal(set(rig, "a", text), TARN_OK);
    text[TN_LABEL_VALUE_MAX] = 'k';
    text[TN_LABEL_VALUE_MAX + 1] = '\0';
    assert_int_equal(set(rig, "a", text), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(strlen(tn_labels_find(&rig->labels, "a")), TN_LABEL_VALUE_MAX);
}

/* The last value of a key counts, and there is room for so many. */
static void keys_are_sorted_and_counted(void **state)
{
    struct rig *rig = *state;

    for (int i = TARN_LABELS_MAX; i-- > 0;) {
        const char key[] = {'k', (char)('0' + i / 10), (char)('0' + i % 10), '\0'};

        assert_int_equal(set(rig, key, "old"), TARN_OK);
    }
    assert_int_equal(set(rig, "one_more", "x"), TARN_ERR_LIMIT);
    assert_int_equal(set(rig, "k07", "new"), TARN_OK);
    assert_int_equal(rig->labels.count, TARN_LABELS_MAX);
    for (size_t i = 1; i < rig->labels.count; i++) {
        assert_true(strcmp(rig->labels.items[i - 1].key, rig->labels.items[i].key) < 0);
    }
    assert_string_equal(tn_labels_find(&rig->labels, "k07"), "new");
    assert_string_equal(tn_labels_find(&rig->labels, "k08"), "old");
    assert_null(tn_labels_find(&rig->labels, "one_more"));
}

/* ---- names of files ---- */

/* As tn_labels_write has them. */
static void name_has(const char *name, const char *wanted)
{
    struct rig *rig;
    struct tn_vec text;

    rig_make((void **)&rig);
    tn_vec_init(&text, 1);
    assert_true(tn_labels_read_name(&rig->labels, &rig->arena, name));
    assert_true(tn_labels_write(rig->labels.items, rig->labels.count, &text));
    assert_true(tn_vec_append(&text, "", 1));
    if (strcmp(text.items, wanted) != 0) {
        fail_msg("%s: %s, not %s", name, (const char *)text.items, wanted);
    }
    tn_vec_fini(&text);
    rig_end((void **)&rig);
}

static void names_have_labels(void **state)
{
    static const struct {
        const char *name;
        const char *labels;
    } cases[] = {
        {"", "{}"},
        {"snapshot.pickle", "{}"},
        {"rank12.pickle", "{\"rank\":\"12\"}"},
        {"rank-12", "{\"rank\":\"12\"}"},
        {"rank_7.json", "{\"rank\":\"7\"}"},
        {"rank=7", "{\"rank\":\"7\"}"},
        {"rank", "{}"},
        {"rank-", "{}"},
        {"rank1a", "{}"}, /* the digits are part of a word */
        {"rank1Z", "{}"},
        {"rank1_a", "{\"rank\":\"1\"}"},
        {"crank3", "{}"}, /* no word begins there */
        {"c-rank3", "{\"rank\":\"3\"}"},
        {"host1/rank2", "{\"host\":\"1\",\"rank\":\"2\"}"},
        {"zone=eu,tier=a b;x=1&y=2", "{\"tier\":\"a b\",\"x\":\"1\",\"y\":\"2\",\"zone\":\"eu\"}"},
        {"name=x.pickle.gz", "{\"name\":\"x\"}"},
        {"name=x.tsum", "{\"name\":\"x\"}"},
        {"name=x.json.pickle", "{\"name\":\"x\"}"}, /* the first ending */
        {"name=/x.json", "{\"name\":\"\"}"},        /* an ending behind the separator is not it */
        {"=x", "{}"},
        {"a-b=x", "{\"b\":\"x\"}"},
        {"rank1/rank2", "{\"rank\":\"2\"}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        name_has(cases[i].name, cases[i].labels);
    }
}

/* ---- tables ---- */

static enum tarn_status table_load(struct rig *rig, const char *text, size_t size)
{
    struct temp_file file = temp_write(text, size);
    const enum tarn_status status = tn_label_table_load(&rig->table, file.path, &rig->error);

    temp_remove(&file);
    return status;
}

static void expect_label(struct rig *rig, const char *rank, const char *key, const char *wanted)
{
    rig->labels.count = 0;
    assert_int_equal(set(rig, "rank", rank), TARN_OK);
    assert_true(tn_label_table_apply(&rig->table, &rig->labels, &rig->arena));
    const char *value = tn_labels_find(&rig->labels, key);

    if (!wanted) {
        assert_null(value);
    } else {
        assert_non_null(value);
        assert_string_equal(value, wanted);
    }
}

static void a_table_has_labels_of_ranks(void **state)
{
    static const char text[] = "rank,zone,note\r\n"
                               "10,\"a\",plain\n"
                               "\n"
                               "2,\"b, c\",\"say \"\"yes\"\"\"\n"
                               "3,\"open,to the end";
    struct rig *rig = *state;

    assert_int_equal(table_load(rig, text, strlen(text)), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(rig->error.text, "line 5 of the table of labels has 2 cells; its first "
                                         "line has another number");
    tn_label_table_fini(&rig->table);
    tn_label_table_init(&rig->table);
    assert_int_equal(table_load(rig, text, strlen(text) - 18), TARN_OK);
    expect_label(rig, "10", "zone", "a");
    expect_label(rig, "10", "note", "plain");
    expect_label(rig, "2", "zone", "b, c");
    expect_label(rig, "2", "note", "say \"yes\"");
    expect_label(rig, "3", "zone", NULL);
    rig->labels.count = 0; /* a rank without the label that the table is ordered by */
    assert_true(tn_label_table_apply(&rig->table, &rig->labels, &rig->arena));
    assert_int_equal(rig->labels.count, 0);
}

static void values_that_are_none_are_left_out(void **state)
{
    struct rig *rig = *state;
    char text[TN_LABEL_VALUE_MAX + 64] = "rank,long,short\n1,";

    memset(text + strlen(text), 'x', TN_LABEL_VALUE_MAX + 1);
    memcpy(text + 18 + TN_LABEL_VALUE_MAX + 1, ",s\n", 4);
    assert_int_equal(table_load(rig, text, strlen(text)), TARN_OK);
    expect_label(rig, "1", "long", NULL);
    expect_label(rig, "1", "short", "s");
}

static void what_is_no_table_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *said;
    } cases[] = {
        {"", "the table of labels is empty"},
        {"\n\n", "the table of labels is empty"},
        {"rank\n1\n", "line 1 of the table of labels has 1 cells; 2 to 32 columns are needed"},
        {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,aa,ab,ac,ad,ae,af,ag\n",
         "line 1 of the table of labels has 33 cells; 2 to 32 columns are needed"},
        {"rank,a b\n1,2\n", "\"a b\" in line 1 of the table of labels is no label: letters, "
                            "digits and '_' make one"},
        {"rank,\n1,2\n", "\"\" in line 1 of the table of labels is no label: letters, digits and "
                         "'_' make one"},
        {"rank,zone\n1,a,b\n",
         "line 2 of the table of labels has 3 cells; its first line has another number"},
    };
    struct rig *rig = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_label_table_fini(&rig->table);
        tn_label_table_init(&rig->table);
        assert_int_equal(table_load(rig, cases[i].text, strlen(cases[i].text)),
                         TARN_ERR_INVALID_ARGUMENT);
        assert_string_equal(rig->error.text, cases[i].said);
    }
    assert_int_equal(tn_label_table_load(&rig->table, "/no/such/file", &rig->error), TARN_ERR_IO);
}

/* A head alone names nothing, and takes nothing away. */
static void a_table_without_rows(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(table_load(rig, "rank,zone\n", 10), TARN_OK);
    expect_label(rig, "1", "zone", NULL);
    assert_int_equal(rig->labels.count, 1);
}

/* A million rows, one of them of a file. */
static void a_table_has_an_end(void **state)
{
    static const struct {
        size_t before;
        enum tarn_status status;
    } cases[] = {{999999, TARN_OK}, {1000000, TARN_ERR_LIMIT}};
    static const char *const columns[] = {"rank", "zone"};

    for (size_t i = 0; i < 2; i++) {
        struct rig *rig = *state;
        struct tn_vec *cells = &rig->table.cells;

        tn_label_table_fini(&rig->table);
        tn_label_table_init(&rig->table);
        assert_true(tn_vec_append(&rig->table.columns, columns, 2));
        assert_true(tn_vec_reserve(cells, 2 * cases[i].before));
        for (; cells->count < 2 * cases[i].before; cells->count++) {
            ((const char **)cells->items)[cells->count] = "x";
        }
        assert_int_equal(table_load(rig, "1,a\n", 4), cases[i].status);
        if (cases[i].status) {
            assert_string_equal(rig->error.text, "the table of labels has more than 1000000 lines");
        } else {
            expect_label(rig, "1", "zone", "a");
        }
    }
}

static void without_memory_it_says_so(void **state)
{
    static const char text[] = "rank,zone\n1,a\n2,b\n";
    struct rig *rig = *state;
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    for (uint64_t n = 1; status != TARN_OK; n++) {
        tn_label_table_fini(&rig->table);
        tn_label_table_init(&rig->table);
        tarn_host_fail_nth(n);
        status = table_load(rig, text, strlen(text));
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        assert_true(status == TARN_OK || strstr(rig->error.text, "memory") != NULL);
    }
    expect_label(rig, "2", "zone", "b");
}

#define TABLE_TEST(test) cmocka_unit_test_setup_teardown(test, rig_make, rig_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TABLE_TEST(keys_are_words),
        TABLE_TEST(lengths_have_limits),
        TABLE_TEST(keys_are_sorted_and_counted),
        cmocka_unit_test(names_have_labels),
        TABLE_TEST(a_table_has_labels_of_ranks),
        TABLE_TEST(values_that_are_none_are_left_out),
        TABLE_TEST(what_is_no_table_is_refused),
        TABLE_TEST(a_table_without_rows),
        TABLE_TEST(a_table_has_an_end),
        TABLE_TEST(without_memory_it_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
