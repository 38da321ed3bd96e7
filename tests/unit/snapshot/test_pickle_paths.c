/* SPDX-License-Identifier: MIT */
/* The reader of pickles from inside: its fast path, its caches, what it salvages. */
#include "support/test.h"

#include "snapshot/pickle.h"
#include "snapshot/pickle_op.h"
#include "support/pickle_bytes.h"

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
    texts->size = bytes_put(texts->bytes, BYTES("\x80\4("));
    for (size_t length = 0; length <= 17; length++) {
        char text[32];

        memset(text, 'x', sizeof text);
        texts_add(texts, text, length);
        for (size_t i = 0; i < length; i++) {
            for (int c = 'a'; c <= 'z'; c++) {
                text[i] = (char)c;
                texts_add(texts, text, length);
            }
            text[i] = 'x';
        }
    }
    for (int c = 'a'; c <= 'z'; c++) {
        char text[32] = {0};

        for (size_t length = 1; length <= 8; length++) {
            text[length - 1] = (char)c;
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
    (void)bytes_put(bytes + 515, BYTES("\nname\n."));
    assert_int_equal(load(bytes, 522, &snapshot, &error), TARN_ERR_UNSAFE);
    assert_non_null(strstr(error.text, "mmm.`"));
    bytes[514] = '\n';
    (void)bytes_put(bytes + 515, BYTES("name\n."));
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
    (void)bytes_put(bytes + sizeof head - 1 + LENGTH - 2, BYTES("u."));
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
                size += bytes_put(bytes + size, "](" ROW, 2 + ROW_SIZE);
            }
            for (size_t i = 1; i < batches; i++) {
                size += bytes_put(bytes + size, BYTES("(h\1e"));
            }
            size += bytes_put(bytes + size, BYTES("t."));
            reader_open(&r, bytes, size);
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
    static const struct CMUnitTest tests[] = {
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
