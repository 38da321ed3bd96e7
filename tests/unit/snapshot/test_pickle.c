/* SPDX-License-Identifier: MIT */
/* Each opcode on its own, and each way to be hostile. */
#include "support/test.h"

#include "snapshot/pickle.h"
#include "snapshot/pickle_op.h"
#include "support/pickle_bytes.h"

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

int main(void)
{
    static const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
