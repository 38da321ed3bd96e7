/* SPDX-License-Identifier: MIT */
/*
 * Writes a file that is small for what it means to standard output: something large, to which it
 * refers again and again. make_bomb KIND; without an argument, the kinds.
 */
#include <stdio.h>
#include <string.h>

enum {
    FRAMES_MAX = 4096, /* of a stack, as readers take them */
    MEGABYTE = 1 << 20
};

/* ---- pickles ---- */

static void put(const char *ops)
{
    (void)fputs(ops, stdout);
}

static void put_times(const char *ops, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) {
        put(ops);
    }
}

static void put_number(unsigned long number, int size)
{
    for (int i = 0; i < size; i++) {
        (void)putchar((int)(number >> (8 * i) & 0xff));
    }
}

static void put_text(const char *text)
{
    (void)putchar('X');
    put_number(strlen(text), 4);
    put(text);
}

static void put_long_text(unsigned long length)
{
    (void)putchar('X');
    put_number(length, 4);
    put_times("x", length);
}

/* The value on top can be had again; the one-digit numbers of this file suffice. */
static void memo_put(char number)
{
    (void)putchar('q');
    (void)putchar(number);
}

/* From the memo, `count` times. */
static void memo_get(char number, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) {
        (void)putchar('h');
        (void)putchar(number);
    }
}

static void put_item(const char *key, unsigned number)
{
    put_text(key);
    (void)putchar('K');
    (void)putchar((int)number);
}

static void put_items(const char *key, unsigned number, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) {
        put_item(key, number);
    }
}

static void top_begin(void)
{
    put("\x80\x04}(");
}

static void top_end(void)
{
    put("u.");
}

/* An entry is open: its action is there. */
static void entry_begin(void)
{
    put("}(");
    put_text("action");
    put_text("alloc");
    put_item("addr", 1);
    put_item("size", 1);
}

static void run_put(unsigned long count)
{
    put("](");
    for (unsigned long i = 0; i < count; i++) {
        entry_begin();
        put("u");
    }
    put("e");
}

/* A stack of as many frames as there may be, all the same, with a name of that length. */
static void stack_put(unsigned long name_length)
{
    put("](}(");
    put_text("name");
    put_long_text(name_length);
    put_text("filename");
    put_text("f");
    put_item("line", 1);
    put("u");
    memo_put(7);
    memo_get(7, FRAMES_MAX - 1);
    put("e");
}

/* A segment that lacks its blocks; open. */
static void segment_begin(void)
{
    put("}(");
    put_item("address", 1);
    put_item("total_size", 1);
}

static void block_begin(void)
{
    put("}(");
    put_item("size", 1);
    put_text("state");
    put_text("inactive");
}

static void blocks_put(unsigned long count)
{
    put("](");
    for (unsigned long i = 0; i < count; i++) {
        block_begin();
        put("u");
    }
    put("e");
}

/* ---- what is referred to again and again ---- */

static void bomb_trace(void)
{
    top_begin();
    put_text("device_traces");
    put("](");
    run_put(30000);
    memo_put(1);
    memo_get(1, 30000);
    put("e");
    top_end();
}

static void bomb_list_of_traces(void)
{
    top_begin();
    put_text("device_traces");
    put("](");
    run_put(30000);
    put("e");
    memo_put(1);
    for (int i = 0; i < 30000; i++) {
        put_text("device_traces");
        memo_get(1, 1);
    }
    top_end();
}

static void bomb_entry(void)
{
    top_begin();
    put_text("device_traces");
    put("](](");
    entry_begin();
    put("u");
    memo_put(1);
    memo_get(1, 10000000);
    put("ee");
    top_end();
}

static void bomb_segment(void)
{
    top_begin();
    put_text("segments");
    put("](");
    segment_begin();
    put_text("blocks");
    blocks_put(20000);
    put("u");
    memo_put(1);
    memo_get(1, 20000);
    put("e");
    top_end();
}

static void bomb_keys_of_a_segment(void)
{
    top_begin();
    put_text("segments");
    put("](");
    segment_begin();
    put_text("blocks");
    put("]");
    put_items("total_size", 1, 30000);
    put("u");
    memo_put(1);
    memo_get(1, 30000);
    put("e");
    top_end();
}

static void bomb_blocks(void)
{
    top_begin();
    put_text("segments");
    put("](");
    for (int i = 0; i < 20000; i++) {
        segment_begin();
        put_text("blocks");
        if (i == 0) {
            blocks_put(20000);
            memo_put(1);
        } else {
            memo_get(1, 1);
        }
        put("u");
    }
    put("e");
    top_end();
}

static void bomb_block(void)
{
    top_begin();
    put_text("segments");
    put("](");
    segment_begin();
    put_text("blocks");
    put("](");
    block_begin();
    put("u");
    memo_put(1);
    memo_get(1, 10000000);
    put("eue");
    top_end();
}

/* A history of one dict with very many keys. */
static void bomb_history(void)
{
    top_begin();
    put_text("segments");
    put("](");
    segment_begin();
    put_text("blocks");
    put("](");
    block_begin();
    put_text("history");
    put("](}(");
    put_items("addr", 1, 30000);
    put("u");
    memo_put(1);
    memo_get(1, 30000);
    put("eueue");
    top_end();
}

static void bomb_annotation(void)
{
    top_begin();
    put_text("segments");
    put("]");
    put_text("external_annotations");
    put("](}(");
    put_items("other", 1, 30000);
    put("u");
    memo_put(1);
    memo_get(1, 30000);
    put("e");
    top_end();
}

static void bomb_text_of_an_annotation(void)
{
    top_begin();
    put_text("segments");
    put("]");
    put_text("external_annotations");
    put("](}(");
    put_text("name");
    put_long_text(MEGABYTE);
    put("u");
    memo_put(1);
    memo_get(1, 100000);
    put("e");
    top_end();
}

static void bomb_settings(void)
{
    top_begin();
    put_text("segments");
    put("]");
    put_text("allocator_settings");
    put("}(");
    put_items("other", 1, 30000);
    put("u");
    memo_put(1);
    for (int i = 0; i < 30000; i++) {
        put_text("allocator_settings");
        memo_get(1, 1);
    }
    top_end();
}

static void bomb_roundup(void)
{
    top_begin();
    put_text("segments");
    put("]");
    put_text("allocator_settings");
    put("}(");
    put_text("roundup_power2_divisions");
    put("}(");
    put_items("64", 1, 30000);
    put("u");
    memo_put(1);
    for (int i = 0; i < 30000; i++) {
        put_text("roundup_power2_divisions");
        memo_get(1, 1);
    }
    put("u");
    top_end();
}

static void entries_with(const char *key, char memo, unsigned long count)
{
    for (unsigned long i = 0; i < count; i++) {
        entry_begin();
        put_text(key);
        memo_get(memo, 1);
        put("u");
    }
}

/* Entries that all have the same, which is on top. */
static void bomb_of_entries(const char *key, void (*put_value)(unsigned long), unsigned long size,
                            unsigned long count)
{
    top_begin();
    put_text("device_traces");
    put("](](");
    entry_begin();
    put_text(key);
    put_value(size);
    memo_put(1);
    put("u");
    entries_with(key, 1, count);
    put("ee");
    top_end();
}

static void bomb_stack(void)
{
    bomb_of_entries("frames", stack_put, 1, 100000);
}

static void bomb_frame_name(void)
{
    bomb_of_entries("frames", stack_put, MEGABYTE, 100);
}

static void bomb_user_metadata(void)
{
    bomb_of_entries("user_metadata", put_long_text, MEGABYTE, 20000);
}

static void bomb_category(void)
{
    bomb_of_entries("category", put_long_text, MEGABYTE, 20000);
}

static void bomb_compile_context(void)
{
    bomb_of_entries("compile_context", put_long_text, MEGABYTE, 20000);
}

static void bomb_action(void)
{
    top_begin();
    put_text("device_traces");
    put("](](}(");
    put_text("action");
    put_long_text(MEGABYTE);
    memo_put(1);
    put_item("addr", 1);
    put("u");
    for (int i = 0; i < 20000; i++) {
        put("}(");
        put_text("action");
        memo_get(1, 1);
        put_item("addr", 1);
        put("u");
    }
    put("ee");
    top_end();
}

static void bomb_stack_of_blocks(void)
{
    top_begin();
    put_text("segments");
    put("](");
    segment_begin();
    put_text("blocks");
    put("](");
    for (int i = 0; i < 100000; i++) {
        block_begin();
        put_text("frames");
        if (i == 0) {
            stack_put(1);
            memo_put(1);
        } else {
            memo_get(1, 1);
        }
        put("u");
    }
    put("eue");
    top_end();
}

static void bomb_stack_of_segments(void)
{
    top_begin();
    put_text("segments");
    put("](");
    for (int i = 0; i < 100000; i++) {
        segment_begin();
        put_text("blocks");
        put("]");
        put_text("frames");
        if (i == 0) {
            stack_put(1);
            memo_put(1);
        } else {
            memo_get(1, 1);
        }
        put("u");
    }
    put("e");
    top_end();
}

static void bomb_stack_of_histories(void)
{
    top_begin();
    put_text("segments");
    put("](");
    segment_begin();
    put_text("blocks");
    put("](");
    block_begin();
    put_text("history");
    put("](}(");
    put_text("frames");
    stack_put(1);
    put("u");
    memo_put(1);
    memo_get(1, 100000);
    put("eueue");
    top_end();
}

static void bomb_tuples(void)
{
    put("\x80\x04(");
    put_times(")", 20000000);
    put("t.");
}

/* ---- other forms ---- */

static void bomb_rmm(void)
{
    put("Thread,Time,Action,Pointer,Size,Stream\n");
    put_times("1,0,free,1,1,0\n", 4000000);
}

/* Functions that call one another very deeply, and allocate there. */
static void bomb_profile(void)
{
    put("[");
    for (int i = 0; i < FRAMES_MAX; i++) {
        (void)printf(
            "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"f%d\",\"ts\":%d,\"dur\":99999},\n", i, i);
    }
    for (int i = 0; i < 100000; i++) {
        (void)printf("{\"name\":\"[memory]\",\"ts\":5000,\"args\":{\"Bytes\":1,\"Addr\":%d,"
                     "\"Device Type\":1,\"Device Id\":0}}%s\n",
                     i + 1, i < 99999 ? "," : "]");
    }
}

/* One line of values that take very much more than their text. */
static void values_put(void)
{
    put("[");
    put_times("[],", 5000000);
    put("0]");
}

static void bomb_profile_event(void)
{
    put("[{\"name\":\"[memory]\",\"a\":");
    values_put();
    put("}]");
}

static void bomb_track(void)
{
    put("{\"op\":");
    values_put();
    put("}\n");
}

static void bomb_verify(void)
{
    put("{\"conf\":");
    values_put();
    put("}\n");
}

/* A log of which each line is fine, but for its length. */
static void bomb_verify_line(void)
{
    put("{\"conf\":\"");
    put_times("x", 20000000);
    put("\"}\n");
}

static const struct {
    const char *name;
    void (*write)(void);
} bombs[] = {
    {"trace", bomb_trace},
    {"list_of_traces", bomb_list_of_traces},
    {"entry", bomb_entry},
    {"segment", bomb_segment},
    {"keys_of_a_segment", bomb_keys_of_a_segment},
    {"blocks", bomb_blocks},
    {"block", bomb_block},
    {"history", bomb_history},
    {"annotation", bomb_annotation},
    {"text_of_an_annotation", bomb_text_of_an_annotation},
    {"settings", bomb_settings},
    {"roundup", bomb_roundup},
    {"stack", bomb_stack},
    {"frame_name", bomb_frame_name},
    {"user_metadata", bomb_user_metadata},
    {"category", bomb_category},
    {"compile_context", bomb_compile_context},
    {"action", bomb_action},
    {"stack_of_blocks", bomb_stack_of_blocks},
    {"stack_of_segments", bomb_stack_of_segments},
    {"stack_of_histories", bomb_stack_of_histories},
    {"tuples", bomb_tuples},
    {"rmm", bomb_rmm},
    {"profile", bomb_profile},
    {"profile_event", bomb_profile_event},
    {"track", bomb_track},
    {"verify", bomb_verify},
    {"verify_line", bomb_verify_line},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        if (argc < 2) {
            (void)puts(bombs[i].name);
        } else if (strcmp(argv[1], bombs[i].name) == 0) {
            bombs[i].write();
            return fflush(stdout) == 0 ? 0 : 1;
        }
    }
    return argc < 2 ? 0 : 1;
}
