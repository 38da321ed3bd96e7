/* SPDX-License-Identifier: MIT */
/* Each opcode on its own, and each way to be hostile. Pickles are written out as bytes. The parts
 * at the end see the reader from inside: its fast path, its caches, what it salvages. */
#include "support/test.h"

#include "snapshot/pickle.h"
#include "snapshot/pickle_op.h"
#include "snapshot/snapshot.h"
#include "tarn/host.h"

#include <stdlib.h>
#include <string.h>

/* A literal with its length, which may hold NULs. */
#define BYTES(literal) (literal), sizeof(literal) - 1

/* A snapshot whose settings hold the values of `body`: key, value, ... */
#define SETTINGS(body)                                                                             \
    BYTES("\x80\x04}(\x8c\x08segments]\x8c\x12"                                                    \
          "allocator_settings}(" body "uu.")

/* The same with more than a buffer of bytes behind it. */
#define NINE_ZEROS "000000000"
#define LONG_SETTINGS(body)                                                                        \
    BYTES("\x80\x04}(\x8c\x08segments]\x8c\x12"                                                    \
          "allocator_settings}(" body "uu." NINE_ZEROS NINE_ZEROS NINE_ZEROS NINE_ZEROS NINE_ZEROS \
              NINE_ZEROS NINE_ZEROS NINE_ZEROS NINE_ZEROS NINE_ZEROS)

static enum tarn_status load(const char *bytes, size_t size, struct tarn_snapshot **snapshot,
                             struct tarn_error *error)
{
    uint8_t *copy = malloc(size); /* so that a sanitizer sees a read past the end */

    memcpy(copy, bytes, size);
    const enum tarn_status status = tarn_snapshot_load_memory(copy, size, NULL, snapshot, error);
    free(copy);
    return status;
}

static void refused(const char *bytes, size_t size, enum tarn_status wanted, const char *said)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error = {0};
    const enum tarn_status status = load(bytes, size, &snapshot, &error);

    if (status != wanted || !strstr(error.text, said)) {
        print_error("wanted %s and \"%s\", got %s and \"%s\"\n", tarn_status_name(wanted), said,
                    tarn_status_name(status), error.text);
    }
    assert_int_equal(status, wanted);
    assert_non_null(strstr(error.text, said));
    assert_true(wanted == TARN_ERR_TRUNCATED || !snapshot);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static struct tarn_snapshot *accepted(const char *bytes, size_t size)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error = {0};
    const enum tarn_status status = load(bytes, size, &snapshot, &error);

    assert_string_equal(error.text, "");
    assert_int_equal(status, TARN_OK);
    return snapshot;
}

/* The only setting of a snapshot. */
static struct tn_field setting(struct tarn_snapshot *snapshot)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);

    assert_int_equal(model->settings.field_count, 1);
    return model->settings.fields[0];
}

/* As Python reads file names in another encoding. */
static void wrong_bytes_of_a_text_are_surrogates(void **state)
{
    struct tarn_snapshot *snapshot = accepted(SETTINGS("\x8c\1k\x8c\3a\xff\xc3"));
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_string text = tn_model_string(model, setting(snapshot).value.string);

    (void)state;
    assert_int_equal(text.length, 7);
    assert_memory_equal(text.text, "a\xed\xb3\xbf\xed\xb3\x83", 7);
    assert_int_equal(model->warning_count, 1);
    assert_non_null(strstr(model->warnings[0].text, "not UTF-8"));
    tarn_snapshot_destroy(snapshot);
}

static void expect_int(const char *bytes, size_t size, int64_t wanted)
{
    struct tarn_snapshot *snapshot = accepted(bytes, size);
    const struct tn_field field = setting(snapshot);

    assert_int_equal(field.kind, TN_FIELD_INT);
    assert_int_equal(field.value.integer, wanted);
    tarn_snapshot_destroy(snapshot);
}

static void expect_float(const char *bytes, size_t size, double wanted)
{
    struct tarn_snapshot *snapshot = accepted(bytes, size);
    const struct tn_field field = setting(snapshot);

    assert_int_equal(field.kind, TN_FIELD_FLOAT);
    assert_true(field.value.real == wanted);
    tarn_snapshot_destroy(snapshot);
}

static void integers(void **state)
{
    (void)state;
    expect_int(SETTINGS("\x8c\1kK\xff"), 255);
    expect_int(SETTINGS("\x8c\1kM\x34\x12"), 0x1234);
    expect_int(SETTINGS("\x8c\1kJ\xfe\xff\xff\xff"), -2);
    expect_int(SETTINGS("\x8c\1k\x8a\0"), 0);
    expect_int(SETTINGS("\x8c\1k\x8a\1\xff"), -1);
    expect_int(SETTINGS("\x8c\1k\x8a\7\1\2\3\4\5\6\x87"), (int64_t)0xff87060504030201u);
    expect_int(SETTINGS("\x8c\1k\x8a\x08\1\2\3\4\5\6\7\x08"), 0x0807060504030201);
    expect_int(SETTINGS("\x8c\1k\x8a\x09\1\0\0\0\0\0\0\0\0"), 1);
    expect_int(SETTINGS("\x8c\1k\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\0"), INT64_MAX);
    expect_int(SETTINGS("\x8c\1k\x8b\2\0\0\0\x34\x12"), 0x1234);
    expect_int(LONG_SETTINGS("\x8c\1k\x8a\0"), 0);

    struct tarn_snapshot *snapshot =
        accepted(SETTINGS("\x8c\1k\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0"));
    assert_int_equal(setting(snapshot).kind, TN_FIELD_UINT);
    assert_true(setting(snapshot).value.unsigned_integer == UINT64_MAX);
    tarn_snapshot_destroy(snapshot);

    refused(SETTINGS("\x8c\1k\x8a\x09\1\0\0\0\0\0\0\0\1"), TARN_ERR_FORMAT, "more than 64 bits");
    refused(SETTINGS("\x8c\1k\x8a\x0a\1\0\0\0\0\0\0\0\0\0"), TARN_ERR_FORMAT, "more than 64 bits");
    refused(SETTINGS("\x8c\1k\x8b\xff\xff\xff\xff"), TARN_ERR_FORMAT, "more than 64 bits");
}

static void other_plain_values(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum tn_field_kind kind;
    } cases[] = {
        {SETTINGS("\x8c\1kN"), TN_FIELD_NONE},
        {SETTINGS("\x8c\1k\x88"), TN_FIELD_BOOL},
        {SETTINGS("\x8c\1k\x89"), TN_FIELD_BOOL},
        {SETTINGS("\x8c\1kG\x3f\xf8\0\0\0\0\0\0"), TN_FIELD_FLOAT},
        {SETTINGS("\x8c\1k\x8c\3abc"), TN_FIELD_STRING},
        {SETTINGS("\x8c\1kX\3\0\0\0abc"), TN_FIELD_STRING},
        {SETTINGS("\x8c\1k\x8d\3\0\0\0\0\0\0\0abc"), TN_FIELD_STRING},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_snapshot *snapshot = accepted(cases[i].bytes, cases[i].size);
        const struct tn_field field = setting(snapshot);

        assert_int_equal(field.kind, cases[i].kind);
        if (field.kind == TN_FIELD_STRING) {
            assert_string_equal(
                tn_model_string(tn_snapshot_model(snapshot), field.value.string).text, "abc");
        }
        if (field.kind == TN_FIELD_FLOAT) {
            assert_true(field.value.real == 1.5);
        }
        if (field.kind == TN_FIELD_BOOL) {
            assert_int_equal(field.value.boolean, i == 1);
        }
        tarn_snapshot_destroy(snapshot);
    }
}

/* A value is put into the memo and read back as the value of another key. */
static void memo_opcodes(void **state)
{
    (void)state;
    expect_int(SETTINGS("\x8c\1k\x94K\7\x94h\0h\1"), 7);
    expect_int(SETTINGS("\x8c\1kq\0K\7q\1h\0h\1"), 7);
    expect_int(SETTINGS("\x8c\1kr\0\0\0\0K\7r\1\0\0\0j\0\0\0\0j\1\0\0\0"), 7);
    expect_int(SETTINGS("\x8c\1kq\x0aK\7q\x0bh\x0ah\x0b"), 7);
    expect_int(LONG_SETTINGS("\x8c\1k\x94K\7\x94h\0h\1"), 7);
    expect_float(SETTINGS("\x8c\1kq\0G\x3f\xf8\0\0\0\0\0\0q\1h\0h\1"), 1.5);
    expect_float(LONG_SETTINGS("\x8c\1k\x94G\x3f\xf8\0\0\0\0\0\0\x94h\0h\1"), 1.5);
    refused(SETTINGS("\x8c\1kh\0"), TARN_ERR_FORMAT, "never written");
    refused(SETTINGS("\x8c\1kq\5h\4"), TARN_ERR_FORMAT, "never written");
    refused(SETTINGS("\x8c\1kr\xff\xff\xff\xff"), TARN_ERR_FORMAT, "out of order");
    refused(BYTES("\x80\4\x94"), TARN_ERR_FORMAT, "too few values");
}

static void lists_and_dicts_in_every_spelling(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {BYTES("\x80\2].")},
        {BYTES("\x80\2(l.")},
        {BYTES("\x80\3}\x8c\x08segments]s.")},
        {BYTES("\x80\4\x95\0\0\0\0\0\0\0\0(\x8c\x08segments]d.")},
        {BYTES("\x80\5}(\x8c\x08segments(l\x8c\x0d"
               "device_traces](](e](eeu.")},
        {BYTES("\x80\5}(\x8c\x08segments]\x8c\x0d"
               "device_traces]]a]au.")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_snapshot *snapshot = accepted(cases[i].bytes, cases[i].size);

        assert_int_equal(tn_snapshot_model(snapshot)->is_list_only, i < 2);
        assert_int_equal(tn_snapshot_model(snapshot)->trace_count, i < 4 ? 0 : 2);
        tarn_snapshot_destroy(snapshot);
    }
}

/* A container that DICT or LIST makes has the values above the mark, and no others. */
static void marked_containers_have_their_values(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum tn_container_kind kind;
        uint32_t count;
    } cases[] = {
        {SETTINGS("\x8c\1k(l"), TN_CONTAINER_LIST, 0},
        {SETTINGS("\x8c\1k(K\1l"), TN_CONTAINER_LIST, 1},
        {SETTINGS("\x8c\1k(K\1K\2l"), TN_CONTAINER_LIST, 2},
        {SETTINGS("\x8c\1k(\x8c\1xK\1d"), TN_CONTAINER_DICT, 1},
        {SETTINGS("\x8c\1k(\x8c\1xK\1\x8c\1yK\2d"), TN_CONTAINER_DICT, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_snapshot *snapshot = accepted(cases[i].bytes, cases[i].size);
        const struct tn_field field = setting(snapshot);

        assert_int_equal(field.kind, TN_FIELD_CONTAINER);
        const struct tn_container container =
            tn_model_container(tn_snapshot_model(snapshot), field.value.number);

        assert_int_equal(container.kind, cases[i].kind);
        assert_int_equal(container.count, cases[i].count);
        assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), 0);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Settings may have any value. */
static void tuples_in_every_spelling(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {SETTINGS("\x8c\1k)")},          {SETTINGS("\x8c\1kN\x85")},   {SETTINGS("\x8c\1kNN\x86")},
        {SETTINGS("\x8c\1kK\1K\2\x86")}, {SETTINGS("\x8c\1kNNN\x87")}, {SETTINGS("\x8c\1k(NNNNt")},
        {SETTINGS("\x8c\1k(K\1K\2t")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_snapshot *snapshot = accepted(cases[i].bytes, cases[i].size);

        assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), 0);
        assert_int_equal(tn_snapshot_model(snapshot)->settings.field_count, 1);
        assert_int_equal(
            tn_model_container(tn_snapshot_model(snapshot),
                               tn_snapshot_model(snapshot)->settings.fields[0].value.number)
                .kind,
            TN_CONTAINER_TUPLE);
        tarn_snapshot_destroy(snapshot);
    }
}

static void imports_and_calls_are_refused_by_name(void **state)
{
    (void)state;
    refused(BYTES("\x80\2cos\nsystem\nX\2\0\0\0lsq\0\x85R."), TARN_ERR_UNSAFE,
            "asks to import `os.system` at byte 2.");
    refused(BYTES("cos\nsystem\n(S'ls'\ntR."), TARN_ERR_UNSAFE, "`os.system` at byte 0");
    refused(BYTES("\x80\4\x8c\2os\x8c\6system\x93."), TARN_ERR_UNSAFE, "`os.system` at byte 14");
    refused(SETTINGS("\x8c\1k\x8c\5posix\x8c\4exec\x93"), TARN_ERR_UNSAFE, "`posix.exec`");
    refused(BYTES("\x80\2(ios\nsystem\n."), TARN_ERR_UNSAFE, "`os.system`");
    refused(BYTES("\x80\2cos"), TARN_ERR_UNSAFE, "`os.`");
    refused(BYTES("\x80\2c\x1b[2J\nx`y\n"), TARN_ERR_UNSAFE, "`?[2J.x?y`");
    refused(BYTES("\x80\2ca b\n\x7f\n"), TARN_ERR_UNSAFE, "`a b.?`");
    refused(BYTES("\x80\2c\xff\nc\n"), TARN_ERR_UNSAFE, "`?.c`");
    refused(BYTES("\x80\4\x93."), TARN_ERR_UNSAFE, "import something");
    refused(BYTES("\x80\4NN\x93."), TARN_ERR_UNSAFE, "computed name");
    refused(BYTES("\x80\4N\x8c\6system\x93."), TARN_ERR_UNSAFE, "computed name");
    refused(BYTES("\x80\4\x8c\2osN\x93."), TARN_ERR_UNSAFE, "computed name");
    refused(BYTES("\x80\4\x8c\2os(\x8c\6system\x93."), TARN_ERR_UNSAFE, "import something");
    refused(BYTES("\x80\2NNR."), TARN_ERR_UNSAFE, "call something");
    refused(BYTES("\x80\2K\0)R."), TARN_ERR_UNSAFE, "call something");
    refused(BYTES("\x80\2R."), TARN_ERR_UNSAFE, "call something");
    refused(BYTES("\x80\2ccollections\nOrderedDict\n)(R."), TARN_ERR_UNSAFE, "call something");
    refused(BYTES("\x80\2NNb."), TARN_ERR_UNSAFE, "set the state");
    refused(BYTES("\x80\2(No."), TARN_ERR_UNSAFE, "object of a class");
    refused(BYTES("\x80\2NN\x81."), TARN_ERR_UNSAFE, "object of a class");
    refused(BYTES("\x80\4NNN\x92."), TARN_ERR_UNSAFE, "object of a class");
    refused(BYTES("\x80\2\x82\1."), TARN_ERR_UNSAFE, "by a number");
    refused(BYTES("\x80\2\x83\1\0."), TARN_ERR_UNSAFE, "by a number");
    refused(BYTES("\x80\2\x84\1\0\0\0."), TARN_ERR_UNSAFE, "by a number");
    refused(BYTES("\x80\2Pid\n."), TARN_ERR_UNSAFE, "outside the file");
    refused(BYTES("\x80\2NQ."), TARN_ERR_UNSAFE, "outside the file");
    refused(BYTES("\x80\5\x97."), TARN_ERR_UNSAFE, "buffer");
    refused(BYTES("\x80\5N\x98."), TARN_ERR_UNSAFE, "buffer");
}

/* Every opcode that is not executed is refused when it is met, whatever is on the stack. */
static void every_opcode_is_executed_or_refused(void **state)
{
    static const struct {
        uint8_t byte;
        const char *name;
        const char *class;
    } ops[] = {
#define X(name, byte, class) {byte, #name, #class},
#include "snapshot/pickle_ops.def"
#undef X
    };

    (void)state;
    assert_int_equal(sizeof ops / sizeof *ops, 68);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        char bytes[] = "\x80\4NNNN?aaaaaaaa\n\n.";
        struct tarn_snapshot *snapshot;
        struct tarn_error error = {0};

        bytes[6] = (char)ops[i].byte;
        const enum tarn_status status = load(bytes, sizeof bytes - 1, &snapshot, &error);
        assert_null(snapshot);
        if (strcmp(ops[i].class, "CALL") == 0) {
            assert_int_equal(status, TARN_ERR_UNSAFE);
        } else if (strcmp(ops[i].class, "DATA") != 0) {
            assert_int_equal(status, TARN_ERR_FORMAT);
            assert_non_null(strstr(error.text, ops[i].name));
        }
        assert_int_not_equal(status, TARN_OK);
    }
    refused(BYTES("\x80\4\xff."), TARN_ERR_FORMAT, "0xff at 2");
}

static void plain_containers_by_name_are_understood(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {BYTES("\x80\2ccollections\nOrderedDict\n)R(\x8c\x08segments]u.")},
        {BYTES("\x80\4\x8c\x0b"
               "collections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94(\x8c\x08"
               "segments]u.")},
        {BYTES("\x80\2ccollections\ndefaultdict\ncbuiltins\nlist\n\x85R\x8c\x08segments]s.")},
        {BYTES("\x80\2ccollections\ndefaultdict\nc__builtin__\ndict\n\x85R\x8c\x08segments]s.")},
        {BYTES("\x80\2ctorch.jit._pickle\nrestore_type_tag\n}\x8c\x08segments]s\x8c\1x\x86R.")},
        {BYTES("\x80\2ctorch.jit._pickle\nbuild_intlist\n]\x85R.")},
    };
    const struct tarn_read_limits strict = {.struct_size = sizeof strict, .strict = true};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_snapshot *snapshot = accepted(cases[i].bytes, cases[i].size);

        tarn_snapshot_destroy(snapshot);
        assert_int_equal(
            tarn_snapshot_load_memory(cases[i].bytes, cases[i].size, &strict, &snapshot, NULL),
            TARN_ERR_UNSAFE);
    }
    /* both the module and the name must match */
    refused(BYTES("\x80\2cevil\nOrderedDict\n)R."), TARN_ERR_UNSAFE, "`evil.OrderedDict`");
    refused(BYTES("\x80\2ccollections\nevil\n)R."), TARN_ERR_UNSAFE, "`collections.evil`");
    refused(BYTES("\x80\2ccollections\nOrderedDict\n]\x85R."), TARN_ERR_UNSAFE, "with arguments");
    refused(BYTES("\x80\2ccollections\nOrderedDict\ncbuiltins\nlist\n\x85R."), TARN_ERR_UNSAFE,
            "with arguments");
    refused(BYTES("\x80\2ccollections\nOrderedDict\n]\x8c\1x\x86R."), TARN_ERR_UNSAFE,
            "with arguments");
    refused(BYTES("\x80\2ccollections\ndefaultdict\nK\2\x85R."), TARN_ERR_UNSAFE, "with arguments");
    refused(BYTES("\x80\2ccollections\ndefaultdict\nccollections\nOrderedDict\n\x85R."),
            TARN_ERR_UNSAFE, "with arguments");
    refused(BYTES("\x80\2ccollections\ndefaultdict\ncbuiltins\nlist\nN\x86R."), TARN_ERR_UNSAFE,
            "with arguments");
    refused(BYTES("\x80\2ctorch.jit._pickle\nrestore_type_tag\n}\x8c\1xN\x87R."), TARN_ERR_UNSAFE,
            "with arguments");
    refused(BYTES("\x80\2ccollections\nOrderedDict\n]R."), TARN_ERR_UNSAFE, "call something");
    refused(BYTES("\x80\2ccollections\ndefaultdict\nN\x85R."), TARN_ERR_UNSAFE, "with arguments");
    refused(BYTES("\x80\2cbuiltins\nlist\n)R."), TARN_ERR_UNSAFE, "with arguments");
    refused(BYTES("\x80\2ctorch.jit._pickle\nbuild_intlist\n}\x85R."), TARN_ERR_UNSAFE, "with arg");
    refused(BYTES("\x80\2ctorch.jit._pickle\nbuild_intlist\n]]\x86R."), TARN_ERR_UNSAFE,
            "with arg");
    refused(BYTES("\x80\2ctorch.jit._pickle\nrestore_type_tag\n}N\x86R."), TARN_ERR_UNSAFE,
            "with arg");
    refused(BYTES("\x80\2ccollections\ndefaultdict\n)R."), TARN_ERR_UNSAFE, "with arg");
    refused(BYTES("\x80\2ccollections\nOrderedDict\nNR."), TARN_ERR_UNSAFE, "call something");
    refused(BYTES("\x80\2ccollections\nOrderedDict\n."), TARN_ERR_FORMAT, "not a memory snapshot");
}

/* The only entry of the only trace; its dict comes in two parts. */
#define ENTRY(first, second)                                                                       \
    BYTES("\x80\x04}(\x8c\x08segments]\x8c\x0d"                                                    \
          "device_traces](](}(\x8c\x06"                                                            \
          "action\x8c\x08snapshot\x8c\x04"                                                         \
          "addrK\0\x8c\x04sizeK\0\x8c\x06streamK\0" first "u(" second "ueeu.")

static void warns(const char *bytes, size_t size, const char *said)
{
    struct tarn_snapshot *snapshot = accepted(bytes, size);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    bool found = said == NULL;

    for (size_t i = 0; said && i < model->warning_count; i++) {
        found = found || strstr(model->warnings[i].text, said);
    }
    if (!found || (!said && model->warning_count > 0)) {
        fail_msg("%s: %s", said ? said : "no warning",
                 model->warning_count ? model->warnings[0].text : "none");
    }
    tarn_snapshot_destroy(snapshot);
}

/* Keys that nobody knows, again in the second part, and more of them than an entry keeps. */
static void entries_come_in_parts(void **state)
{
    static const char head[] = "\x80\x04}(\x8c\x08segments]\x8c\x0d"
                               "device_traces](](}(\x8c\x06"
                               "action\x8c\x08snapshot\x8c\x04"
                               "addrK\0\x8c\x04sizeK\0\x8c\x06streamK\0";
    char many[4096];
    size_t used = 0;

    (void)state;
    warns(ENTRY("\x8c\1aK\1", "\x8c\1bK\2"), "unknown key `b`");
    warns(ENTRY("\x8c\1aK\1\x8c\1bK\1", "\x8c\1bK\2"), "twice");
    warns(ENTRY("\x8c\4addrK\1", "\x8c\1bK\2"), "twice");
    memcpy(many, head, sizeof head - 1);
    used = sizeof head - 1;
    for (int i = 0; i < 40; i++) {
        memcpy(many + used, "\x8c\2x?K\1", 7);
        many[used + 3] = (char)('0' + i);
        used += 6;
    }
    memcpy(many + used, "ueeu.", 6);
    warns(many, used + 5, "");
}

/* A value that no snapshot has where any may be: it is left out, and that is said. */
static void values_that_cannot_be_kept(void **state)
{
    (void)state;
    warns(SETTINGS("\x8c\1kccollections\nOrderedDict\n"), "");
    warns(SETTINGS("\x8c\1k]ccollections\nOrderedDict\na"), "");
    warns(SETTINGS("\x8c\1k}K\1K\2s"), "");
    warns(SETTINGS("\x8c\1k}\x8c\3a\0bK\2s"), "");
    warns(SETTINGS("\x8c\1k]}(\x8c\4name\x8c\1f\x8c\x08"
                   "filename\x8c\1g\x8c\4lineK\1"
                   "\x8c\1x]}(\x8c\4name\x8c\1f\x8c\x08"
                   "filename\x8c\1g\x8c\4lineK\1uaua"),
          "unexpected kind");
}

/* A frame or the history of a block with a key that is no text. */
static void keys_are_texts(void **state)
{
    (void)state;
    refused(ENTRY("\x8c\6"
                  "frames](}(\x8c\4name\x8c\1f\x8c\x08"
                  "filename\x8c\1g\x8c\4lineK\1u(K\1K\2ue",
                  "\x8c\1bK\2"),
            TARN_ERR_FORMAT, "");
    refused(BYTES("\x80\4](}(\x8c\7"
                  "addressK\1\x8c\x0atotal_sizeK\1\x8c\6"
                  "blocks](}(\x8c\4sizeK\1"
                  "\x8c\5state\x8c\x08inactive\x8c\7history](}(K\1K\2\x8c\4"
                  "addrK\1ueueue."),
            TARN_ERR_FORMAT, "");
}

/* What is at the top of a file that is no snapshot. */
static void other_tops_are_refused(void **state)
{
    (void)state;
    refused(BYTES("\x80\4)."), TARN_ERR_FORMAT, "not a memory snapshot");
    refused(BYTES("\x80\4K\1K\2\x86."), TARN_ERR_FORMAT, "not a memory snapshot");
    refused(BYTES("\x80\4N\x85."), TARN_ERR_FORMAT, "not a memory snapshot");
    refused(BYTES("\x80\4(K\1K\2K\3K\4t."), TARN_ERR_FORMAT, "not a memory snapshot");
    refused(BYTES("\x80"), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4}r\1"), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4}q"), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4("), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4(K\1K\2"), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4K\1(K\2"), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4}(K\1K\2"), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4}(\x8c\1aK\1K\2"), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4}(\x8c\1a]}"), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4}(\x8c\1a]K\1K\2"), TARN_ERR_TRUNCATED, "");
    refused(BYTES("\x80\4}(\x8c\1a](}(\x8c\4name\x8c\1f\x8c\x08"
                  "filename\x8c\1g\x8c\4lineK\1ueK\2"),
            TARN_ERR_TRUNCATED, "");
}

/* A stack that comes frame by frame has an end. */
static void stacks_of_too_many_pieces(void **state)
{
    static const char head[] = "\x80\4}(\x8c\x08segments](}(\x8c\7"
                               "addressK\1\x8c\x0atotal_sizeK\1"
                               "\x8c\6"
                               "blocks]\x8c\6"
                               "frames]";
    static const char frame[] = "}(\x8c\4name\x8c\1f\x8c\x08"
                                "filename\x8c\1g\x8c\4lineK\1ua";
    char *bytes = malloc(sizeof head + 200 * sizeof frame + 16);
    size_t used = sizeof head - 1;

    (void)state;
    memcpy(bytes, head, used);
    for (int i = 0; i < 200; i++) {
        memcpy(bytes + used, frame, sizeof frame - 1);
        used += sizeof frame - 1;
    }
    memcpy(bytes + used, "ueu.", 5);
    refused(bytes, used + 4, TARN_ERR_LIMIT, "frames or pieces");
    free(bytes);
}

/* Every allocation of a pickle of these opcodes may fail: it is that, and nothing leaks. */
static void every_allocation_may_fail(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {SETTINGS("\x8c\1k\x8c\3a\xff\xc3")},
        {SETTINGS("\x8c\1kM\x34\x12q\1\x8c\1lh\1")},
        {SETTINGS("\x8c\1k(K\1K\2l")},
        {SETTINGS("\x8c\1k\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0q\1\x8c\1lh\1")},
        {SETTINGS("\x8c\1k(\x8c\1aK\2d")},
        {BYTES("\x80\2ccollections\ndefaultdict\ncbuiltins\nlist\n\x85R\x8c\x08segments]s.")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool reached = true;

        for (uint64_t n = 1; reached; n++) {
            const uint64_t calls = tarn_host_get_usage().alloc_calls;
            struct tarn_snapshot *snapshot;

            tarn_host_fail_nth(n);
            const enum tarn_status status = load(cases[i].bytes, cases[i].size, &snapshot, NULL);

            tarn_host_fail_nth(0);
            reached = tarn_host_get_usage().alloc_calls - calls >= n;
            if (status != TARN_OK && status != TARN_ERR_HOST_MEMORY) {
                fail_msg("case %zu, allocation %llu: %s", i, (unsigned long long)n,
                         tarn_status_name(status));
            }
            tarn_snapshot_destroy(snapshot);
            assert_int_equal(tarn_host_get_usage().live_bytes, 0);
        }
    }
}

static void damaged_pickles(void **state)
{
    (void)state;
    refused(BYTES("\x80\4."), TARN_ERR_FORMAT, "more or less than one value");
    refused(BYTES("\x80\4]]."), TARN_ERR_FORMAT, "more or less than one value");
    refused(BYTES("\x80\4](."), TARN_ERR_FORMAT, "more or less than one value");
    refused(BYTES("\x80\4\x80\4]."), TARN_ERR_FORMAT, "second header");
    refused(BYTES("\x80\4]e."), TARN_ERR_FORMAT, "no mark");
    refused(BYTES("\x80\4]u."), TARN_ERR_FORMAT, "no mark");
    refused(BYTES("\x80\4]d."), TARN_ERR_FORMAT, "no mark");
    refused(BYTES("\x80\4]l."), TARN_ERR_FORMAT, "no mark");
    refused(BYTES("\x80\4t."), TARN_ERR_FORMAT, "no mark");
    refused(BYTES("\x80\4(e."), TARN_ERR_FORMAT, "no container");
    refused(BYTES("\x80\4](N(e."), TARN_ERR_FORMAT, "not a list");
    refused(BYTES("\x80\4}(e."), TARN_ERR_FORMAT, "not a list");
    refused(BYTES("\x80\4](NNu."), TARN_ERR_FORMAT, "not a dict");
    refused(BYTES("\x80\4](Nu."), TARN_ERR_FORMAT, "not a dict");
    refused(BYTES("\x80\4)(Ne."), TARN_ERR_FORMAT, "not a list");
    refused(BYTES("\x80\4}(Nu."), TARN_ERR_FORMAT, "no value");
    refused(BYTES("\x80\4(Nd."), TARN_ERR_FORMAT, "no value");
    refused(BYTES("\x80\4]a."), TARN_ERR_FORMAT, "too few values");
    refused(BYTES("\x80\4](Na."), TARN_ERR_FORMAT, "too few values");
    refused(BYTES("\x80\4N\x86."), TARN_ERR_FORMAT, "too few values");
    refused(BYTES("\x80\4\x95\xff\xff\xff\xff\xff\xff\xff\xff]."), TARN_ERR_FORMAT, "frame");
    tarn_snapshot_destroy(accepted(BYTES("\x80\4\x95\xff\xff\xff\xff\xff\xff\xff\x7f].")));
    /* half a length or number */
    refused(BYTES("\x80\4\x8b]."), TARN_ERR_TRUNCATED, "ends early");
    refused(BYTES("\x80\4X]."), TARN_ERR_TRUNCATED, "ends early");
    refused(BYTES("\x80\4\x8d]."), TARN_ERR_TRUNCATED, "ends early");
    refused(BYTES("\x80\4G]."), TARN_ERR_TRUNCATED, "ends early");
    refused(BYTES("\x80\4\x95]."), TARN_ERR_TRUNCATED, "ends early");
    refused(BYTES("\x80\4N."), TARN_ERR_FORMAT, "not a memory snapshot");
    refused(BYTES("\x80\4}."), TARN_ERR_FORMAT, "not a memory snapshot");
}

static void lengths_are_not_believed(void **state)
{
    (void)state;
    refused(BYTES("\x80\4X\xff\xff\xff\xff"
                  "abc"),
            TARN_ERR_LIMIT, "string is too long");
    refused(BYTES("\x80\4\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"
                  "abc"),
            TARN_ERR_LIMIT, "too long");
    refused(BYTES("\x80\4X\xff\xff\xff\3"
                  "abc"),
            TARN_ERR_TRUNCATED, "ends early");
}

static void nesting_is_bounded(void **state)
{
    char bytes[1024] = "\x80\4";

    (void)state;
    memset(bytes + 2, '(', 1000);
    refused(bytes, 1002, TARN_ERR_LIMIT, "nested too deep");
    for (size_t i = 0; i < 1000; i += 2) {
        bytes[2 + i] = i == 0 ? 'N' : (char)0x85;
        bytes[3 + i] = (char)0x85;
    }
    refused(bytes, 1002, TARN_ERR_LIMIT, "nested more than");
}

/* A list that contains itself, directly and through others. */
static void cycles_are_refused(void **state)
{
    (void)state;
    refused(BYTES("\x80\4]\x94h\0a."), TARN_ERR_FORMAT, "contains itself");
    refused(BYTES("\x80\4]\x94h\0\x85"
                  "a."),
            TARN_ERR_FORMAT, "contains itself");
    refused(BYTES("\x80\4}\x94\x8c\1kh\0s."), TARN_ERR_FORMAT, "contains itself");
    refused(BYTES("\x80\4]\x94}\x94\x8c\1kh\0sa."), TARN_ERR_FORMAT, "contains itself");
}

/* Each list holds the one before twice: 2^40 items for whoever expands it. It costs nothing here.
 * */
static void shared_lists_are_not_expanded(void **state)
{
    char bytes[512] = "\x80\4}(\x8c\x08segments]\x8c\1k(]\x94";
    size_t size = 21;

    (void)state;
    for (int i = 0; i < 40; i++) {
        const char more[] = {']', (char)0x94, '(', 'h', (char)i, 'h', (char)i, 'e'};

        memcpy(bytes + size, more, sizeof more);
        size += sizeof more;
    }
    bytes[size++] = 't';
    bytes[size++] = 'u';
    bytes[size++] = '.';
    struct tarn_snapshot *snapshot = accepted(bytes, size);
    assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), 1);
    tarn_snapshot_destroy(snapshot);
}

/* A row of frames is known by its bytes only as long as the memo stays as it was: here number 1
 * becomes another frame between two equal rows. */
static void a_rewritten_memo_number_is_noticed(void **state)
{
    struct tarn_snapshot *snapshot = accepted(BYTES("\x80\2}(\x8c\x08segments]\x8c\x0d"
                                                    "device_traces]("
                                                    "](}(\x8c\6"
                                                    "actionq\2\x8c\5"
                                                    "alloc\x8c\6"
                                                    "frames](}(\x8c\4lineK\1uq\1eu"
                                                    "}(h\2\x8c\5"
                                                    "alloc\x8c\6"
                                                    "frames](h\1h\1h\1h\1h\1h\1h\1h\1h\1eu"
                                                    "}(h\2\x8c\5"
                                                    "alloc\x8c\6"
                                                    "frames](h\1h\1h\1h\1h\1h\1h\1h\1h\1eu"
                                                    "}(h\2\x8c\5"
                                                    "alloc\x8c\6"
                                                    "frames](}(\x8c\4lineK\2uq\1eu"
                                                    "}(h\2\x8c\5"
                                                    "alloc\x8c\6"
                                                    "frames](h\1h\1h\1h\1h\1h\1h\1h\1h\1eu"
                                                    "eeu."));
    const struct tn_model *model = tn_snapshot_model(snapshot);
    static const int64_t lines[] = {1, 1, 1, 2, 2};

    (void)state;
    assert_int_equal(tarn_snapshot_entry_count(snapshot), 5);
    for (uint64_t i = 0; i < 5; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(model, model->traces, i);
        const struct tn_stack stack = tn_model_stack(model, entry->stack);

        assert_int_equal(stack.count, i == 0 || i == 3 ? 1 : 9);
        assert_int_equal(tn_model_frame(model, stack.frames[stack.count - 1])->line, lines[i]);
    }
    tarn_snapshot_destroy(snapshot);
}

/* An empty list that a record has already cannot get items. */
static void a_list_in_use_stays_as_it_is(void **state)
{
    (void)state;
    refused(BYTES("\x80\x04}(\x8c\x08segments]\x8c\x0d"
                  "device_traces](](}(\x8c\6action\x8c\5alloc\x8c\4addrK\1\x8c\3odd]q\x01u"
                  "eeu"
                  "h\x01(K\1e."),
            TARN_ERR_FORMAT, "");
}

/* So many of one kind that their table grows with one of them, whichever allocation fails. */
static void new_containers_need_memory(void **state)
{
    enum {
        COUNT = 1500
    };
    static const struct {
        const char *begin; /* the first item; memo 1 and 2: a call */
        const char *item;
    } rows[] = {
        {"", "(l"},
        {"", "(d"},
        {"ccollections\nOrderedDict\nq\x01)q\x02R", "h\x01h\x02R"},
    };
    char *bytes = malloc(COUNT * 8 + 256);

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        static const char head[] = "\x80\x04}(\x8c\x08segments]\x8c\x12"
                                   "allocator_settings}(\x8c\1k](";
        size_t size = 0;
        uint64_t failures = 0;
        uint64_t calls = UINT64_MAX;

        memcpy(bytes, head, sizeof head - 1);
        size = sizeof head - 1;
        memcpy(bytes + size, rows[i].begin, strlen(rows[i].begin));
        size += strlen(rows[i].begin);
        for (size_t k = 0; k < COUNT; k++) {
            memcpy(bytes + size, rows[i].item, strlen(rows[i].item));
            size += strlen(rows[i].item);
        }
        for (const char *end = "euu."; *end; end++) {
            bytes[size++] = *end;
        }
        for (uint64_t n = 1; n <= calls; n++) {
            const uint64_t before = tarn_host_get_usage().alloc_calls;
            struct tarn_snapshot *snapshot = NULL;
            struct tarn_error error = {.text = ""};

            tarn_host_fail_nth(n);
            const enum tarn_status st =
                tarn_snapshot_load_memory(bytes, size, NULL, &snapshot, &error);

            tarn_host_fail_nth(0);
            calls = st ? calls : tarn_host_get_usage().alloc_calls - before; /* it did without */
            if (!st) { /* and nothing is missing */
                const struct tn_model *model = tn_snapshot_model(snapshot);

                assert_int_equal(
                    tn_model_container(model, model->settings.fields[0].value.number).count,
                    COUNT + (*rows[i].begin != '\0'));
                assert_int_equal(model->warning_count, 0);
            } else {
                if (st != TARN_ERR_HOST_MEMORY)
                    fail_msg("row %zu n %d: %s", i, (int)n, error.text);
                assert_int_equal(error.status, st);
                failures++;
            }
            tarn_snapshot_destroy(snapshot);
            assert_int_equal(tarn_host_get_usage().live_bytes, 0);
        }
        assert_true(failures > 10);
    }
    free(bytes);
}

/* ---- the reader from inside: its values, its caches, and what it salvages ---- */

struct reader {
    struct tn_model model;
    struct tn_decoder decoder;
    struct tn_input input;
    struct tn_pickle pickle;
    struct tarn_error error;
};

enum {
    READER_DEPTH = 8,
    READER_FRAMES = 128,
    READER_STRING = 1000
};

static void reader_open(struct reader *r, const char *bytes, size_t size)
{
    const struct tn_decode_limits decode = {.max_depth = READER_DEPTH, .max_frames = READER_FRAMES};
    const struct tn_pickle_limits limits = {
        .max_depth = READER_DEPTH, .max_stack = 1 << 20, .max_string = READER_STRING};
    const struct tn_unpack_limits unpack = {1 << 30, 1000};

    r->error = (struct tarn_error){0};
    assert_int_equal(tn_model_init(&r->model, 0), TARN_OK);
    assert_int_equal(tn_decoder_init(&r->decoder, &r->model, &decode, &r->error), TARN_OK);
    assert_int_equal(tn_input_open_memory(&r->input, bytes, size, &unpack, &r->error), TARN_OK);
    assert_int_equal(tn_pickle_init(&r->pickle, &r->input, &r->decoder, &limits, &r->error),
                     TARN_OK);
}

static void reader_close(struct reader *r)
{
    tn_pickle_fini(&r->pickle);
    tn_input_close(&r->input);
    tn_decoder_fini(&r->decoder);
    tn_model_fini(&r->model);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static struct tn_value reader_top(struct reader *r)
{
    struct tn_value top = {0};
    const enum tarn_status status = tn_pickle_read(&r->pickle, &top);

    assert_string_equal(r->error.text, "");
    assert_int_equal(status, TARN_OK);
    return top;
}

/* Items of the list or tuple that the file consists of. */
static const struct tn_value_list *reader_items(struct reader *r, size_t count)
{
    const struct tn_value_list *list = tn_decode_items(&r->decoder, reader_top(r), false);

    assert_non_null(list);
    assert_int_equal(list->count, count);
    return list;
}

/* Enough behind a value that the fast path may execute it. */
#define BEHIND NINE_ZEROS NINE_ZEROS

/* The memo keeps all 64 bits of a number. */
static void numbers_return_from_the_memo(void **state)
{
#define NUMBERS                                                                                    \
    "\x80\4(J\xfe\xff\xff\xff\x94\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0\x94"                   \
    "\x8a\x08\1\2\3\4\5\6\7\x08\x94G\x3f\xf8\0\0\0\0\0\0\x94h\3h\2h\1h\0t."
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {{BYTES(NUMBERS)}, {BYTES(NUMBERS BEHIND)}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reader r;

        reader_open(&r, cases[i].bytes, cases[i].size);
        const struct tn_value *items = reader_items(&r, 8)->items;

        assert_int_equal(tn_value_kind(items[7]), TN_VALUE_INT);
        assert_int_equal(items[7].as.integer, -2);
        assert_int_equal(tn_value_kind(items[6]), TN_VALUE_UINT);
        assert_true(items[6].as.number == UINT64_MAX);
        assert_int_equal(tn_value_kind(items[5]), TN_VALUE_INT);
        assert_int_equal(items[5].as.integer, 0x0807060504030201);
        assert_int_equal(tn_value_kind(items[4]), TN_VALUE_FLOAT);
        assert_true(items[4].as.real == 1.5);
        reader_close(&r);
    }
}

/* DICT takes the pairs above its mark, and no value that was on the stack earlier. */
static void a_marked_dict_has_only_its_pairs(void **state)
{
    struct reader r;

    (void)state;
    reader_open(&r, BYTES("\x80\4((\x8c\1aK\1\x8c\1bK\2\x8c\1cK\3\x8c\1dK\4t"
                          "(\x8c\1xK\1\x8c\1yK\2dt."));
    const struct tn_value_list *pairs =
        tn_decode_items(&r.decoder, reader_items(&r, 2)->items[1], true);

    assert_non_null(pairs);
    assert_int_equal(pairs->count, 4);
    reader_close(&r);
}

static void *dirty_alloc(void *context, size_t size, size_t alignment)
{
    void *memory = NULL;

    (void)context;
    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, size)) {
        return NULL;
    }
    return memset(memory, 0x55, size);
}

static void dirty_release(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

/* Numbers that the memo skips are unwritten, whatever its memory contained before. */
static void memo_numbers_between_are_unwritten(void **state)
{
    const struct tarn_host_hooks hooks = {
        .struct_size = sizeof hooks, .alloc = dirty_alloc, .release = dirty_release};

    (void)state;
    assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
    refused(SETTINGS("\x8c\1kq\5h\4"), TARN_ERR_FORMAT, "never written");
    refused(LONG_SETTINGS("\x8c\1kq\5h\4"), TARN_ERR_FORMAT, "never written");
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
}

/* A memo number is at most the position behind it in the file. */
static void memo_numbers_are_bounded_by_the_bytes_read(void **state)
{
    (void)state;
    tarn_snapshot_destroy(accepted(BYTES("\x80\4]q\5.")));
    refused(BYTES("\x80\4]q\6."), TARN_ERR_FORMAT, "out of order");
}

/* ---- the fast path ---- */

/* How many bytes it executes. */
static size_t reader_burst(struct reader *r)
{
    const uint64_t before = tn_input_offset(&r->input);

    assert_int_equal(tn_input_need(&r->input, 1, NULL), TARN_OK);
    tn_pickle_burst(&r->pickle);
    return (size_t)(tn_input_offset(&r->input) - before);
}

static uint32_t reader_remember(struct reader *r, const char *text)
{
    uint32_t string;

    assert_int_equal(tn_model_add_string(&r->model, text, strlen(text), &string), TARN_OK);
    tn_pickle_remember_string(&r->pickle, text, strlen(text), string);
    return string;
}

static void reader_push_pair(struct reader *r)
{
    const struct tn_value numbers[2] = {tn_value_integer(0, 3), tn_value_integer(0, 4)};
    struct tn_value pair;

    assert_int_equal(tn_decode_tuple(&r->decoder, numbers, 2, 0, &pair), TARN_OK);
    assert_int_equal(tn_value_kind(pair), TN_VALUE_PAIR);
    assert_int_equal(tn_pickle_push(&r->pickle, pair), TARN_OK);
}

/* One call executes all of these; each value has the offset of its opcode. */
static void plain_opcodes_take_the_fast_path(void **state)
{
#define PLAIN                                                                                      \
    "\x94"                                                                                         \
    "}\x94"                                                                                        \
    "]\x94"                                                                                        \
    "\x8c\3abc\x94"                                                                                \
    "\x8c\x10"                                                                                     \
    "fourtimesfouris4"                                                                             \
    "\x8c\x09"                                                                                     \
    "ninechars"                                                                                    \
    "K\xfe"                                                                                        \
    "M\xfe\xff"                                                                                    \
    "J\xfe\xff\xff\xff"                                                                            \
    "\x8a\1\xff"                                                                                   \
    "\x8a\x08\1\2\3\4\5\6\7\x88"                                                                   \
    "j\3\0\0\0"                                                                                    \
    "h\0h\1h\2"
    static const struct {
        enum tn_value_kind kind;
        uint64_t offset;
        int64_t number; /* -1: any */
    } wanted[] = {
        {TN_VALUE_OBJECT, 1, -1},   {TN_VALUE_OBJECT, 3, -1},
        {TN_VALUE_STRING, 5, -1},   {TN_VALUE_STRING, 11, -1},
        {TN_VALUE_STRING, 29, -1},  {TN_VALUE_INT, 40, 0xfe},
        {TN_VALUE_INT, 42, 0xfffe}, {TN_VALUE_INT, 45, -2},
        {TN_VALUE_INT, 50, -1},     {TN_VALUE_INT, 53, (int64_t)0x8807060504030201u},
        {TN_VALUE_STRING, 63, -1},  {TN_VALUE_PAIR, 68, 0},
        {TN_VALUE_OBJECT, 70, -1},  {TN_VALUE_OBJECT, 72, -1},
    };
    struct reader r;

    (void)state;
    reader_open(&r, BYTES(PLAIN "NNNNNNNNNNNNNNNNNNNN"));
    r.pickle.op_offset = 1000;
    reader_push_pair(&r);
    const uint32_t abc = reader_remember(&r, "abc");
    const uint32_t four = reader_remember(&r, "fourtimesfouris4");
    const uint32_t nine = reader_remember(&r, "ninechars");

    assert_int_equal(reader_burst(&r), sizeof PLAIN - 1);
    assert_int_equal(r.pickle.depth, 1 + sizeof wanted / sizeof *wanted);
    const struct tn_value *values = r.pickle.stack + 1;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_int_equal(tn_value_kind(values[i]), wanted[i].kind);
        assert_int_equal(tn_value_offset(values[i]), wanted[i].offset);
        if (wanted[i].number != -1 || wanted[i].kind == TN_VALUE_INT) {
            assert_int_equal(values[i].as.integer, wanted[i].number);
        }
    }
    assert_int_equal(values[2].as.number, abc);
    assert_int_equal(values[3].as.number, four);
    assert_int_equal(values[4].as.number, nine);
    assert_int_equal(values[10].as.number, abc);
    assert_int_equal(values[12].as.number, values[0].as.number);
    assert_int_equal(values[13].as.number, values[1].as.number);
    reader_close(&r);
}

/* It stops before an opcode that can fail or is not plain. */
static void the_fast_path_stops_before_other_opcodes(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {BYTES("h\0" BEHIND)},                          /* a number below others, not written */
        {BYTES("h\1" BEHIND)},                          /* an integer */
        {BYTES("h\3" BEHIND)},                          /* beyond the last */
        {BYTES("j\0\0\0\0" BEHIND)},                    /* not written */
        {BYTES("\x94" BEHIND)},                         /* of an integer */
        {BYTES("\x8a\0" BEHIND)},                       /* no bytes */
        {BYTES("\x8a\x09\1\2\3\4\5\6\7\x08\0" BEHIND)}, /* may have too many bits */
        {BYTES("\x8c\0" BEHIND)},                       /* unknown strings */
        {BYTES("\x8c\3abd" BEHIND)},                    /* ... */
        {BYTES("\x8c\2ab" BEHIND)},                     /* ... */
        {BYTES("\x8c\x11" BEHIND)},                     /* a long one */
        {BYTES("N" BEHIND)},                            /* others */
        {BYTES("(" BEHIND)},                            /* ... */
    };

    const struct tarn_host_hooks hooks = {
        .struct_size = sizeof hooks, .alloc = dirty_alloc, .release = dirty_release};

    (void)state;
    assert_int_equal(tarn_host_set_hooks(&hooks), TARN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reader r;
        uint64_t *word;

        reader_open(&r, cases[i].bytes, cases[i].size);
        (void)reader_remember(&r, "abc");
        for (uint64_t number = 0; number < 3; number++) {
            word = tn_chunked_vec_push(&r.pickle.memo);
            assert_non_null(word);
            *word = number == 1 ? TN_MEMO_BOXED : number == 2 ? TN_VALUE_STRING + 1 : 0;
        }
        assert_int_equal(tn_pickle_push(&r.pickle, tn_value_integer(0, 7)), TARN_OK);
        assert_int_equal(reader_burst(&r), 0);
        assert_int_equal(r.pickle.depth, 1);
        assert_int_equal(r.pickle.memo.count, 3);
        reader_close(&r);
    }
    assert_int_equal(tarn_host_set_hooks(NULL), TARN_OK);
}

/* It stops where fewer than 18 bytes are left, the length of its longest opcode. */
static void the_fast_path_stays_within_the_window(void **state)
{
    static const char bytes[] = "K\7NNNNNNNNNNNNNNNN";

    (void)state;
    for (size_t size = 17; size <= 18; size++) {
        struct reader r;

        reader_open(&r, bytes, size);
        assert_int_equal(reader_burst(&r), size == 18 ? 2 : 0);
        reader_close(&r);
    }
}

/* Neither path memoizes a value below the newest mark. */
static void values_below_a_mark_are_inaccessible(void **state)
{
    (void)state;
    refused(BYTES("\x80\4](\x94" BEHIND), TARN_ERR_FORMAT, "too few values");
    refused(BYTES("\x80\4](\x94"), TARN_ERR_FORMAT, "too few values");
}

/* The reader adds each short text to the cache of the fast path. */
static void short_texts_are_remembered(void **state)
{
    struct reader r;

    (void)state;
    reader_open(&r, BYTES("\x80\4(\x8c\3abcX\x10\0\0\0fourtimesfouris4K\1t.\x8c\3abc\x8c\x10"
                          "fourtimesfouris4" BEHIND));
    (void)reader_items(&r, 3);
    assert_int_equal(reader_burst(&r), 5 + 18);
    reader_close(&r);
}

struct texts {
    char bytes[200000];
    size_t size;
    struct {
        size_t at;
        size_t length;
    } texts[8000];
    size_t count;
};

static void texts_add(struct texts *texts, const char *text, size_t length)
{
    char *at = texts->bytes + texts->size;

    at[0] = (char)0x8c;
    at[1] = (char)length;
    memcpy(at + 2, text, length);
    texts->texts[texts->count].at = texts->size + 2;
    texts->texts[texts->count++].length = length;
    texts->size += 2 + length;
}

/* Strings of every length, with any one byte different, and with NULs in front: each is read as it
 * is, although the reader looks up short ones in a cache. */
static void similar_texts_are_told_apart(void **state)
{
    struct texts *texts = calloc(1, sizeof *texts);
    struct reader r;

    (void)state;
    assert_non_null(texts);
    memcpy(texts->bytes, "\x80\4(", 3);
    texts->size = 3;
    for (size_t length = 0; length <= 17; length++) {
        char text[32];

        memset(text, 'x', sizeof text);
        texts_add(texts, text, length);
        for (size_t i = 0; i < length; i++) {
            for (char c = 'a'; c <= 'z'; c++) {
                text[i] = c;
                texts_add(texts, text, length);
            }
            text[i] = 'x';
        }
    }
    for (char c = 'a'; c <= 'z'; c++) {
        char text[32] = {0};

        for (size_t length = 1; length <= 8; length++) {
            text[length - 1] = c;
            texts_add(texts, text, length);
            text[length - 1] = '\0';
        }
    }
    memcpy(texts->bytes + texts->size, "t." BEHIND, sizeof "t." BEHIND - 1);
    texts->size += sizeof "t." BEHIND - 1;
    reader_open(&r, texts->bytes, texts->size);
    const struct tn_value *items = reader_items(&r, texts->count)->items;

    for (size_t i = 0; i < texts->count; i++) {
        assert_int_equal(tn_value_kind(items[i]), TN_VALUE_STRING);
        assert_int_not_equal(items[i].as.number, TN_STRING_NONE);
        const struct tn_string text = tn_model_string(&r.model, (uint32_t)items[i].as.number);

        assert_int_equal(text.length, texts->texts[i].length);
        assert_memory_equal(text.text, texts->bytes + texts->texts[i].at, text.length);
    }
    reader_close(&r);
    free(texts);
}

/* The same for the highest bit of a byte, which makes it invalid. */
static void wrong_bytes_are_told_apart(void **state)
{
    struct reader r;

    (void)state;
    reader_open(&r, BYTES("\x80\4(\x8c\1"
                          "a\x8c\1\xe1\x8c\x08"
                          "bbbbbbba\x8c\x08"
                          "bbbbbbb\xe1\x8c\x09"
                          "bbbbbbbba\x8c\x09"
                          "bbbbbbbb\xe1\x8c\x10"
                          "bbbbbbbbccccccca\x8c\x10"
                          "bbbbbbbbccccccc\xe1t." BEHIND));
    const struct tn_value *items = reader_items(&r, 8)->items;

    for (size_t i = 0; i < 8; i += 2) {
        assert_int_not_equal(items[i].as.number, items[i + 1].as.number);
    }
    reader_close(&r);
}

/* Lists and tuples may be nested exactly as deep as the limit, whichever path creates them. */
static void depth_is_bounded_on_both_paths(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        enum tarn_status status;
    } cases[] = {
        {BYTES("\x80\4]]]]]]]]aaaaaaa."), TARN_OK},
        {BYTES("\x80\4]]]]]]]]aaaaaaa." BEHIND), TARN_OK},
        {BYTES("\x80\4]]]]]]]]]aaaaaaaa."), TARN_ERR_LIMIT},
        {BYTES("\x80\4]]]]]]]]]aaaaaaaa." BEHIND), TARN_ERR_LIMIT},
        {BYTES("\x80\4](](](](](](](](eeeeeeee."), TARN_OK}, /* one mark per level */
        {BYTES("\x80\4((((((((tttttttt."), TARN_OK},
        {BYTES("\x80\4(((((((("), TARN_ERR_TRUNCATED},
        {BYTES("\x80\4((((((((("), TARN_ERR_LIMIT},
        {BYTES("\x80\4(((((((((ttttttttt."), TARN_ERR_LIMIT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tn_value top;
        struct reader r;

        reader_open(&r, cases[i].bytes, cases[i].size);
        assert_int_equal(tn_pickle_read(&r.pickle, &top), cases[i].status);
        reader_close(&r);
    }
}

/* The error has the offset of the protocol number. */
static void other_protocols_are_refused(void **state)
{
    static const char old[] = "\x80\1].";
    static const char next[] = "\x80\6].";
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    assert_int_equal(load(old, sizeof old - 1, &snapshot, &error), TARN_ERR_FORMAT);
    assert_non_null(strstr(error.text, "protocol 1;"));
    assert_int_equal(error.offset, 1);
    assert_int_equal(load(next, sizeof next - 1, &snapshot, &error), TARN_ERR_FORMAT);
    assert_non_null(strstr(error.text, "protocol 6;"));
    assert_int_equal(error.offset, 1);
}

/* A line that names a module ends after 512 bytes at the latest. */
static void long_names_are_cut(void **state)
{
    char bytes[1024] = "\x80\2c";
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    memset(bytes + 3, 'm', 512);
    memcpy(bytes + 515, "\nname\n.", 7);
    assert_int_equal(load(bytes, 522, &snapshot, &error), TARN_ERR_UNSAFE);
    assert_non_null(strstr(error.text, "mmm.`"));
    bytes[514] = '\n';
    memcpy(bytes + 515, "name\n.", 6);
    assert_int_equal(load(bytes, 521, &snapshot, &error), TARN_ERR_UNSAFE);
    assert_non_null(strstr(error.text, "mmm.name`"));
}

/* A string may be as long as the limit. */
static void strings_are_bounded(void **state)
{
    (void)state;
    for (size_t length = READER_STRING; length <= READER_STRING + 1; length++) {
        char bytes[READER_STRING + 64] = "\x80\4X";
        struct tn_value top;
        struct reader r;

        bytes[3] = (char)(length & 0xff);
        bytes[4] = (char)(length >> 8);
        bytes[7 + length] = '.';
        reader_open(&r, bytes, 8 + length);
        assert_int_equal(tn_pickle_read(&r.pickle, &top),
                         length == READER_STRING ? TARN_OK : TARN_ERR_LIMIT);
        reader_close(&r);
    }
}

/* The message names the limit to raise. */
static void the_limit_of_memory_is_in_the_message(void **state)
{
    enum {
        LENGTH = 3000000
    };
    static const char head[] = "\x80\4}(\x8c\x08segments]\x8c\1kX\xc0\xc6\x2d\0";
    const struct tarn_read_limits limits = {.struct_size = sizeof limits, .max_memory = 2000000};
    char *bytes = calloc(1, sizeof head + LENGTH);
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)state;
    assert_non_null(bytes);
    memcpy(bytes, head, sizeof head - 1);
    memcpy(bytes + sizeof head - 1 + LENGTH - 2, "u.", 2);
    assert_int_equal(
        tarn_snapshot_load_memory(bytes, sizeof head - 1 + LENGTH, &limits, &snapshot, &error),
        TARN_ERR_LIMIT);
    assert_non_null(strstr(error.text, "more than the limit of 2000000 bytes of memory"));
    free(bytes);
}

static void without_memory_no_reader_begins(void **state)
{
    const struct tn_pickle_limits limits = {
        .max_depth = READER_DEPTH, .max_stack = 1 << 20, .max_string = READER_STRING};
    struct tn_pickle pickle;
    struct reader r;

    (void)state;
    reader_open(&r, BYTES("\x80\4]."));
    tarn_host_fail_nth(1);
    assert_int_equal(tn_pickle_init(&pickle, &r.input, &r.decoder, &limits, &r.error),
                     TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_non_null(strstr(r.error.text, "no host memory"));
    tn_pickle_fini(&pickle);
    reader_close(&r);
}

/* ---- rows of frames ---- */

/* Nine frames from the memo, as most stacks are written. */
#define ROW      "h\1h\1h\1h\1h\1h\1h\1h\1h\1e"
#define ROW_SIZE ((size_t)19)
#define FRAME    "}(\x8c\4lineK\1u"

/* A row in the cache becomes its stack; its opcodes, which would fail here, are not executed. */
static void a_known_row_is_not_executed(void **state)
{
    struct reader r;
    uint32_t frame;
    uint32_t stack;

    (void)state;
    reader_open(&r, BYTES("\x80\4(N](" ROW "t."));
    assert_int_equal(tn_model_add_frame(&r.model, &(struct tn_frame){.line = 5}, &frame), TARN_OK);
    assert_int_equal(tn_model_add_stack(&r.model, &frame, 1, &stack), TARN_OK);
    tn_row_cache_keep(&r.pickle.rows, (const uint8_t *)ROW, ROW_SIZE, stack);
    const struct tn_value *items = reader_items(&r, 2)->items;
    const struct tn_object *list = tn_decode_object(&r.decoder, items[1]);

    assert_int_equal(list->kind, TN_OBJECT_STACK);
    assert_int_equal(list->index, stack);
    reader_close(&r);
}

/* A row is in the cache after it was executed once, wherever in the file it is. */
static void executed_rows_are_known(void **state)
{
    static const uint64_t places[] = {0, 1000};

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct reader r;

        reader_open(&r, BYTES("\x80\2(" FRAME "q\1](" ROW "t."));
        r.input.base = places[i];
        const struct tn_value *items = reader_items(&r, 2)->items;
        const struct tn_object *list = tn_decode_object(&r.decoder, items[1]);
        const struct tn_row *row =
            tn_row_cache_find(&r.pickle.rows, (const uint8_t *)ROW, ROW_SIZE);

        assert_int_equal(list->kind, TN_OBJECT_STACK);
        assert_non_null(row);
        assert_int_equal(row->stack, list->index);
        reader_close(&r);
    }
}

/* A memo number that is written again may change what a row means. */
static void a_rewritten_memo_number_disables_the_cache(void **state)
{
    struct reader r;

    (void)state;
    reader_open(&r, BYTES("\x80\2(" FRAME "q\1](" ROW "Nq\1t."));
    (void)reader_items(&r, 3);
    assert_null(tn_row_cache_find(&r.pickle.rows, (const uint8_t *)ROW, ROW_SIZE));
    reader_close(&r);
}

/* The number of frames of the list that is item `index` of the file's tuple. */
static uint32_t frames_of(const struct reader *r, const struct tn_value *items, size_t index)
{
    const struct tn_object *list = tn_decode_object(&r->decoder, items[index]);

    assert_int_equal(list->kind, TN_OBJECT_STACK);
    return tn_model_stack(&r->model, (uint32_t)list->index).count;
}

/* A cached row stands for a whole list: a list that has frames already gets those in addition. */
static void a_list_may_go_on_with_a_known_row(void **state)
{
    struct reader r;

    (void)state;
    reader_open(&r, BYTES("\x80\2(" FRAME "q\1](" ROW "](h\1e(" ROW "](" ROW "(h\1eN](h\1h\1e"
                          "(h\1eK\1t."));
    const struct tn_value *items = reader_items(&r, 7)->items;

    assert_int_equal(frames_of(&r, items, 1), 9);
    assert_int_equal(frames_of(&r, items, 2), 10);
    assert_int_equal(frames_of(&r, items, 3), 10);
    assert_int_equal(frames_of(&r, items, 5), 3);
    reader_close(&r);
}

/* Nested lists in batches: each row belongs to the mark before it. */
static void marks_within_marks_are_told_apart(void **state)
{
    struct reader r;

    (void)state;
    reader_open(&r, BYTES("\x80\2(" FRAME "q\1](]h\1a(h\1e]h\1a(h\1h\1eeN"
                          "](h\1e(}(\x8c\4lineK\2\x8c\1x](h\1euet."));
    const struct tn_value *items = reader_items(&r, 4)->items;
    const struct tn_value_list *lists = tn_decode_items(&r.decoder, items[1], false);

    assert_non_null(lists);
    assert_int_equal(lists->count, 2);
    assert_int_equal(frames_of(&r, lists->items, 0), 2);
    assert_int_equal(frames_of(&r, lists->items, 1), 3);
    assert_int_equal(frames_of(&r, items, 3), 2);
    reader_close(&r);
}

/* A cached row neither turns a dict into a list nor changes a list that is in use. */
static void known_rows_are_only_for_new_lists(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *said;
    } cases[] = {
        {BYTES("\x80\2(" FRAME "q\1](" ROW "}(" ROW "t."), "not a list"},
        {BYTES("\x80\2(" FRAME "q\1](" ROW "]q\2\x85h\2(" ROW "t."), "after its last use"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tn_value top;
        struct reader r;

        reader_open(&r, cases[i].bytes, cases[i].size);
        assert_int_equal(tn_pickle_read(&r.pickle, &top), TARN_ERR_FORMAT);
        assert_non_null(strstr(r.error.text, cases[i].said));
        reader_close(&r);
    }
}

/* At most 64 batches; a cached row counts as one. */
static void batches_of_a_stack_are_bounded(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        for (size_t batches = 64; batches <= 65; batches++) {
            char bytes[512] = "\x80\2(" FRAME "q\1](" ROW;
            size_t size = sizeof "\x80\2(" FRAME "q\1](" ROW - 1;
            struct tn_value top;
            struct reader r;

            if (known) {
                memcpy(bytes + size, "](" ROW, 2 + ROW_SIZE);
                size += 2 + ROW_SIZE;
            }
            for (size_t i = 1; i < batches; i++) {
                memcpy(bytes + size, "(h\1e", 4);
                size += 4;
            }
            memcpy(bytes + size, "t.", 2);
            reader_open(&r, bytes, size + 2);
            assert_int_equal(tn_pickle_read(&r.pickle, &top),
                             batches <= 64 ? TARN_OK : TARN_ERR_LIMIT);
            reader_close(&r);
        }
    }
}

/* ---- what is left of a file that ends early ---- */

/* What is salvaged of a truncated file, or NULL. The error is that of the early end. */
static struct tarn_snapshot *cut(const char *bytes, size_t size)
{
    struct tarn_snapshot *snapshot;
    struct tarn_error error = {0};

    assert_int_equal(load(bytes, size, &snapshot, &error), TARN_ERR_TRUNCATED);
    assert_int_equal(error.status, TARN_ERR_TRUNCATED);
    assert_non_null(strstr(error.text, "ends early"));
    return snapshot;
}

static void left_of(const char *bytes, size_t size, size_t segments, uint64_t entries)
{
    struct tarn_snapshot *snapshot = cut(bytes, size);

    assert_non_null(snapshot);
    const struct tn_model *model = tn_snapshot_model(snapshot);

    if (model->warning_count != 1) {
        fail_msg("%s", model->warnings[0].text);
    }
    assert_non_null(strstr(model->warnings[0].text, "end"));
    assert_int_equal(model->segment_count, segments);
    assert_int_equal(tarn_snapshot_entry_count(snapshot), entries);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

#define SEGMENT                                                                                    \
    "}(\x8c\7"                                                                                     \
    "addressK\1\x8c\x0atotal_sizeK\0\x8c\6"                                                        \
    "blocks]u"
#define ALLOC                                                                                      \
    "}(\x8c\6"                                                                                     \
    "action\x8c\5"                                                                                 \
    "alloc\x8c\4"                                                                                  \
    "addrK\1\x8c\4sizeK\1\x8c\6streamK\0u"
#define TRACES                                                                                     \
    "\x80\x04}(\x8c\x08segments]\x8c\x0d"                                                          \
    "device_traces]("

static void complete_records_are_left_of_a_cut_file(void **state)
{
    (void)state;
    left_of(BYTES("\x80\4}(\x8c\x08segments](" SEGMENT), 1, 0);
    left_of(BYTES("\x80\4}(\x8c\x08segments](" SEGMENT "}"), 1, 0);
    left_of(BYTES("\x80\4}(\x8c\x08segments](" SEGMENT "}(\x8c\7"
                  "addressK\1\x8c\x0atotal_size"),
            1, 0);
    left_of(BYTES("\x80\4}(\x8c\x08segments](}(\x8c\7"
                  "addressK\1\x8c\x0atotal_size"),
            0, 0);
    left_of(BYTES("\x80\4}(\x8c\x08segments](" SEGMENT SEGMENT "e\x8c"), 2, 0);
    left_of(BYTES(TRACES "](" ALLOC ALLOC "}(\x8c\6"
                         "action\x8c\5"
                         "alloc\x8c\4"
                         "addrK\1"),
            0, 2);
    left_of(BYTES(TRACES "](" ALLOC ALLOC "("), 0, 1); /* the second was to get more */
    left_of(BYTES(TRACES "](" ALLOC ALLOC "(\x8c\6"
                         "streamK"),
            0, 1);
    left_of(BYTES(TRACES "](" ALLOC "e](" ALLOC ALLOC), 0, 3);
}

/* CPython writes a list of one item without a mark: APPEND would have followed. */
static void items_without_a_mark_are_left_of_a_cut_file(void **state)
{
    (void)state;
    left_of(BYTES("\x80\4}(\x8c\x08segments]" SEGMENT), 1, 0);
    left_of(BYTES("\x80\4}(\x8c\x08segments]" SEGMENT SEGMENT), 2, 0);
    left_of(BYTES("\x80\4}(\x8c\x08segments]}"), 0, 0);
    left_of(BYTES("\x80\4}(\x8c\x08segments]}(\x8c\7"
                  "addressK\1"),
            0, 0);
    left_of(BYTES("\x80\4}((\x8c\x08segments]" SEGMENT "\x8c\x0d"
                  "device_traces](](" ALLOC "ee"),
            1, 1);
}

/* What follows a value of the wrong kind is not salvaged. */
static void a_wrong_value_ends_a_cut_list(void **state)
{
    (void)state;
    left_of(BYTES(TRACES "](" ALLOC "N" ALLOC), 0, 1);
    left_of(BYTES("\x80\4}(\x8c\x08segments]\x8c\x12"
                  "allocator_settings}K\2K\3"),
            0, 0);

    static const char frames[] = "\x80\2}(\x8c\1x](" FRAME "q\1eNh\1";
    struct tn_value top;
    struct reader r;

    reader_open(&r, frames, sizeof frames - 1);
    assert_int_equal(tn_pickle_read(&r.pickle, &top), TARN_ERR_TRUNCATED);
    assert_true(tn_pickle_salvage(&r.pickle, &top));
    const struct tn_value_list *pairs = tn_decode_items(&r.decoder, top, true);

    assert_non_null(pairs);
    assert_int_equal(pairs->count, 2);
    assert_int_equal(frames_of(&r, pairs->items, 1), 1);
    reader_close(&r);
}

/* Nor what follows a pair that cannot be set for lack of memory. */
static void missing_memory_ends_a_cut_dict(void **state)
{
    struct tn_value top;
    struct reader r;

    (void)state;
    reader_open(&r, BYTES("\x80\2}(\x8c\1xK\1\x8c\1yK\2"));
    assert_int_equal(tn_pickle_read(&r.pickle, &top), TARN_ERR_TRUNCATED);
    tarn_host_fail_nth(1);
    assert_true(tn_pickle_salvage(&r.pickle, &top));
    tarn_host_fail_nth(0);
    assert_int_equal(tn_decode_object(&r.decoder, top)->kind, TN_OBJECT_EMPTY_DICT);
    reader_close(&r);
}

static void pairs_of_a_cut_dict_are_set_once(void **state)
{
    struct tn_value top;
    struct reader r;

    (void)state;
    reader_open(&r, BYTES("\x80\2}((\x8c\1xK\1"));
    assert_int_equal(tn_pickle_read(&r.pickle, &top), TARN_ERR_TRUNCATED);
    assert_true(tn_pickle_salvage(&r.pickle, &top));
    const struct tn_value_list *pairs = tn_decode_items(&r.decoder, top, true);

    assert_non_null(pairs);
    assert_int_equal(pairs->count, 2);
    reader_close(&r);
}

/* Nothing is left of a file whose top-level value is no dict or list, or is within a tuple. */
static void nothing_is_left_of_other_cut_files(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {BYTES("\x80\4(}\x8c\x08segments]s")},
        {BYTES("\x80\4(](")},
        {BYTES("\x80\4K\1(\x8c\1aK\2\x8c")},
        {BYTES("\x80\4N(\x8c\1aK\2")},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(cut(cases[i].bytes, cases[i].size));
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
}

/* Errors of salvaging are not reported; those of the decoder afterwards are. */
static void the_error_of_a_cut_file_remains(void **state)
{
    static const char damage[] = "\x80\4](" ALLOC "N" ALLOC;
    struct tn_value top;
    struct reader r;

    (void)state;
    reader_open(&r, damage, sizeof damage - 1);
    assert_int_equal(tn_pickle_read(&r.pickle, &top), TARN_ERR_TRUNCATED);
    const struct tarn_error error = r.error;

    assert_true(tn_pickle_salvage(&r.pickle, &top));
    assert_string_equal(r.error.text, error.text);
    assert_int_equal(r.error.status, TARN_ERR_TRUNCATED);
    assert_int_equal(tn_decode_object(&r.decoder, top)->kind, TN_OBJECT_RUN);
    assert_int_equal(tn_decode_finish(&r.decoder, top), TARN_ERR_FORMAT);
    assert_int_equal(r.error.status, TARN_ERR_FORMAT);
    reader_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(other_plain_values),
        cmocka_unit_test(memo_opcodes),
        cmocka_unit_test(lists_and_dicts_in_every_spelling),
        cmocka_unit_test(marked_containers_have_their_values),
        cmocka_unit_test(tuples_in_every_spelling),
        cmocka_unit_test(imports_and_calls_are_refused_by_name),
        cmocka_unit_test(every_opcode_is_executed_or_refused),
        cmocka_unit_test(plain_containers_by_name_are_understood),
        cmocka_unit_test(entries_come_in_parts),
        cmocka_unit_test(values_that_cannot_be_kept),
        cmocka_unit_test(keys_are_texts),
        cmocka_unit_test(other_tops_are_refused),
        cmocka_unit_test(stacks_of_too_many_pieces),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(damaged_pickles),
        cmocka_unit_test(lengths_are_not_believed),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(cycles_are_refused),
        cmocka_unit_test(shared_lists_are_not_expanded),
        cmocka_unit_test(wrong_bytes_of_a_text_are_surrogates),
        cmocka_unit_test(a_list_in_use_stays_as_it_is),
        cmocka_unit_test(new_containers_need_memory),
        cmocka_unit_test(a_rewritten_memo_number_is_noticed),
        cmocka_unit_test(numbers_return_from_the_memo),
        cmocka_unit_test(a_marked_dict_has_only_its_pairs),
        cmocka_unit_test(memo_numbers_between_are_unwritten),
        cmocka_unit_test(memo_numbers_are_bounded_by_the_bytes_read),
        cmocka_unit_test(plain_opcodes_take_the_fast_path),
        cmocka_unit_test(the_fast_path_stops_before_other_opcodes),
        cmocka_unit_test(the_fast_path_stays_within_the_window),
        cmocka_unit_test(values_below_a_mark_are_inaccessible),
        cmocka_unit_test(short_texts_are_remembered),
        cmocka_unit_test(similar_texts_are_told_apart),
        cmocka_unit_test(wrong_bytes_are_told_apart),
        cmocka_unit_test(depth_is_bounded_on_both_paths),
        cmocka_unit_test(other_protocols_are_refused),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(strings_are_bounded),
        cmocka_unit_test(the_limit_of_memory_is_in_the_message),
        cmocka_unit_test(without_memory_no_reader_begins),
        cmocka_unit_test(a_known_row_is_not_executed),
        cmocka_unit_test(executed_rows_are_known),
        cmocka_unit_test(a_rewritten_memo_number_disables_the_cache),
        cmocka_unit_test(a_list_may_go_on_with_a_known_row),
        cmocka_unit_test(marks_within_marks_are_told_apart),
        cmocka_unit_test(known_rows_are_only_for_new_lists),
        cmocka_unit_test(batches_of_a_stack_are_bounded),
        cmocka_unit_test(complete_records_are_left_of_a_cut_file),
        cmocka_unit_test(items_without_a_mark_are_left_of_a_cut_file),
        cmocka_unit_test(a_wrong_value_ends_a_cut_list),
        cmocka_unit_test(missing_memory_ends_a_cut_dict),
        cmocka_unit_test(pairs_of_a_cut_dict_are_set_once),
        cmocka_unit_test(nothing_is_left_of_other_cut_files),
        cmocka_unit_test(the_error_of_a_cut_file_remains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
