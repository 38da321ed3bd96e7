/* SPDX-License-Identifier: MIT */
/*
 * The whole program: commands that read inputs of this kind, with some of their options, one after
 * the other on one input, in one process. An input chooses about an eighth of the commands, so
 * that a fuzzer tries eight times as many; with TARN_FUZZ_ALL in the environment, as in the tests,
 * all of them run.
 *
 * An input that begins with a byte below 16 is a row of decisions: eight bytes choose commands and
 * options, the others make a document (maker.h), which is well-formed in most of its parts and
 * wrong in some. Any other input is taken as a file, as it is.
 *
 * Besides what sanitizers see, each run must end with a documented exit code, say why when it
 * fails, print nothing that a terminal would obey and JSON that is JSON, write a bounded amount,
 * and leave neither host memory nor files behind.
 */
#include "fuzz_target.h"

#include "maker.h"
#include "program.h"
#include "program_forms.h"

#include "exit_code.h"
#include "tarn/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    GENERATED_BELOW = 16, /* first bytes of generated inputs */
    OPTION_BYTES = 8,
    COMMANDS_ONCE_IN = 8,
    ARGUMENTS_MAX = 24,
    LINE_MAX_BYTES = 1024,
    OUTPUT_MAX = 64 << 20 /* bytes that a run may print: inputs are small */
};

static struct {
    char folder[64];
    char a[80];
    char b[80];
    char output[80];
    int out; /* what is printed; descriptor 1 is this file while commands run */
    int own_out;
    FILE *err;
    FILE *own_err;
    bool runs_all;
    bool is_ready;
} world;

static struct maker maker;
static struct document document;

/* ---- before the first input ---- */

static int temporary_file(const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", world.folder, name);
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (file < 0 || unlink(path) != 0) {
        abort();
    }
    return file;
}

static void world_remove(void)
{
    (void)rmdir(world.folder);
}

static void world_open(void)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(world.folder, sizeof world.folder, "%.40s/tarn-fuzz-XXXXXX",
                   base ? base : "/tmp");
    if (!mkdtemp(world.folder)) {
        abort();
    }
    (void)atexit(world_remove);
    (void)snprintf(world.a, sizeof world.a, "%s/a", world.folder);
    (void)snprintf(world.b, sizeof world.b, "%s/b", world.folder);
    (void)snprintf(world.output, sizeof world.output, "%s/o", world.folder);
    world.out = temporary_file("out");
    world.err = fdopen(temporary_file("err"), "w+");
    world.own_out = dup(STDOUT_FILENO);
    world.own_err = stderr;
    if (world.own_out < 0 || !world.err) {
        abort();
    }
    world.runs_all = getenv("TARN_FUZZ_ALL") != NULL;
    world.is_ready = true;
}

/* What the program prints goes to the files, or again where it went before. Messages of the fuzzing
 * engine still go to descriptor 2. */
static void output_redirect(int file, FILE *errors)
{
    (void)fflush(stdout);
    if (dup2(file, STDOUT_FILENO) < 0) {
        abort();
    }
    stderr = errors;
}

static void file_write(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        abort();
    }
}

/* ---- one command line ---- */

struct line {
    char text[LINE_MAX_BYTES];
    size_t used;
    char *arguments[ARGUMENTS_MAX];
    int count;
};

static void line_add(struct line *line, const char *word, size_t length)
{
    const bool is_path = length == 2 && word[0] == '@';
    const char *text = !is_path         ? word
                       : word[1] == 'A' ? world.a
                       : word[1] == 'B' ? world.b
                                        : world.output;

    length = is_path ? strlen(text) : length;
    if (line->count == ARGUMENTS_MAX - 1 || length >= sizeof line->text - line->used) {
        abort();
    }
    line->arguments[line->count++] = line->text + line->used;
    memcpy(line->text + line->used, text, length);
    line->text[line->used + length] = '\0';
    line->used += length + 1;
}

static void line_add_words(struct line *line, const char *words)
{
    while (*words) {
        const size_t length = strcspn(words, " ");

        line_add(line, words, length);
        words += length + (words[length] == ' ');
    }
}

static unsigned option_count(const char *const *options)
{
    unsigned count = 0;

    while (options[count]) {
        count++;
    }
    return count;
}

static uint64_t seed_next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* The command and up to three options. */
static void line_make(struct line *line, const struct command_form *format, uint64_t *seed)
{
    const unsigned count = option_count(format->options);

    line->used = 0;
    line->count = 0;
    line_add_words(line, format->arguments);
    for (uint64_t taken = seed_next(seed) % 4; taken > 0 && count > 0; taken--) {
        line_add_words(line, format->options[seed_next(seed) % count]);
    }
    line->arguments[line->count] = NULL;
}

static bool line_has(const char *words, const struct line *line)
{
    for (int i = 0; i < line->count; i++) {
        if (strcmp(line->arguments[i], words) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- what must hold of each run ---- */

/* NOLINTNEXTLINE(cert-err33-c): there is nobody to tell */
#define BROKEN(...) (dprintf(STDERR_FILENO, __VA_ARGS__), abort())

static void line_show(const struct line *line)
{
    for (int i = 0; i < line->count; i++) {
        (void)dprintf(STDERR_FILENO, " %s", line->arguments[i]);
    }
    (void)dprintf(STDERR_FILENO, "\n");
}

static bool terminal_obeys(const uint8_t *at, const uint8_t *end)
{
    /* U+202A to U+202E and U+2066 to U+2069 turn the direction of what follows. */
    const bool turns = end - at > 2 && at[0] == 0xe2 &&
                       ((at[1] == 0x80 && at[2] >= 0xaa && at[2] <= 0xae) ||
                        (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9));

    if (*at == '\r' && end - at > 1 && at[1] == '\n') {
        return false; /* CSV */
    }
    return (*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f || turns ||
           (*at == 0xc2 && end - at > 1 && at[1] >= 0x80 && at[1] < 0xa0);
}

static void check_harmless(const struct line *line, const char *where, const uint8_t *bytes,
                           size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (terminal_obeys(bytes + i, bytes + size)) {
            line_show(line);
            BROKEN("%s: byte 0x%02x at %zu would be obeyed by a terminal\n", where, bytes[i], i);
        }
    }
}

/* Half a pair of surrogates, as Python may have it in a text, is JSON by its grammar and stays what
 * it was; jansson takes none. */
static void surrogates_replace(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i + 6 <= size; i++) {
        if (bytes[i] == '\\' && bytes[i + 1] == 'u' && (bytes[i + 2] | 32) == 'd' &&
            strchr("89abcdef", bytes[i + 3] | 32)) {
            bytes[i + 2] = '0';
            bytes[i + 3] = '0';
            bytes[i + 4] = '4'; /* a letter */
        }
        i += bytes[i] == '\\';
    }
}

static void check_json(const struct line *line, uint8_t *bytes, size_t size)
{
    json_error_t error;

    surrogates_replace(bytes, size);
    json_t *const json =
        json_loadb((const char *)bytes, size,
                   JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);

    if (!json) {
        line_show(line);
        BROKEN("no JSON: %s at %d\n%.300s\n", error.text, error.position, (const char *)bytes);
    }
    json_decref(json);
}

/* What the file has; the file is empty afterwards. */
static uint8_t *file_take(int file, size_t *size_out)
{
    const off_t end = lseek(file, 0, SEEK_END);
    uint8_t *bytes = end >= 0 && end <= OUTPUT_MAX ? malloc((size_t)end + 1) : NULL;

    if (!bytes || pread(file, bytes, (size_t)end, 0) != end || ftruncate(file, 0) != 0 ||
        lseek(file, 0, SEEK_SET) != 0) {
        BROKEN("%lld bytes were printed\n", (long long)end);
    }
    bytes[end] = 0;
    *size_out = (size_t)end;
    return bytes;
}

static void check_output(const struct line *line, const struct command_form *format,
                         bool has_result)
{
    size_t size;
    uint8_t *bytes = file_take(world.out, &size);

    if (format->output != OUTPUT_BYTES) {
        check_harmless(line, "standard output", bytes, size);
    }
    if (size > 0 && has_result && (format->output == OUTPUT_JSON || line_has("--json", line))) {
        check_json(line, bytes, size);
    }
    free(bytes);
}

static void check_messages(const struct line *line, bool has_failed)
{
    size_t size;

    (void)fflush(world.err);
    uint8_t *bytes = file_take(fileno(world.err), &size);

    check_harmless(line, "standard error", bytes, size);
    if (has_failed && size == 0) {
        line_show(line);
        BROKEN("it fails and does not say why\n");
    }
    free(bytes);
}

/* Nothing but the inputs and the output is in the folder. */
static void check_folder(const struct line *line)
{
    DIR *folder = opendir(world.folder);
    const struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        if (entry->d_name[0] != '.' && entry->d_name[1] == '\0' &&
            strchr("abo", entry->d_name[0])) {
            continue;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            line_show(line);
            BROKEN("it leaves %s behind\n", entry->d_name);
        }
    }
    if (folder) {
        (void)closedir(folder);
    }
    (void)unlink(world.output);
}

static void command_run(const struct command_form *format, uint64_t *seed)
{
    struct line line;
    struct line shown;

    line_make(&line, format, seed);
    shown = line;
    const enum cli_exit code = cli_program_run(line.count, line.arguments);

    (void)fflush(stdout);
    for (int i = 0; i < shown.count; i++) { /* the program sorts its arguments */
        shown.arguments[i] = shown.text + (line.arguments[i] - line.text);
    }
    if (code > CLI_EXIT_LIMIT) {
        line_show(&shown);
        BROKEN("exit code %d\n", (int)code);
    }
    const bool has_result = code == CLI_EXIT_OK || code == CLI_EXIT_GATE;

    check_output(&shown, format, has_result);
    check_messages(&shown, !has_result);
    check_folder(&shown);
    if (tarn_host_get_usage().live_count != 0) {
        line_show(&shown);
        BROKEN("host memory is left\n");
    }
}

/* ---- one input ---- */

static const struct {
    void (*make)(struct maker *maker, struct document *document);
    unsigned reads;
} kinds[] = {
    {make_snapshot, FORM_READS_SNAPSHOTS},  {make_snapshot, FORM_READS_SNAPSHOTS},
    {make_snapshot, FORM_READS_SNAPSHOTS},  {make_track, FORM_READS_TRACK},
    {make_decisions, FORM_READS_DECISIONS}, {make_profile, FORM_READS_PROFILE},
    {make_rmm, FORM_READS_SNAPSHOTS},
};

static uint64_t hash_of(const uint8_t *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

/* The commands that read a file are those of its kind; a file as it is may be of any. */
static unsigned input_make(const uint8_t *bytes, size_t size, uint64_t *seed_out)
{
    document.size = 0;
    document.is_full = false;
    if (size < 1 + OPTION_BYTES || bytes[0] >= GENERATED_BELOW) {
        *seed_out = hash_of(bytes, size);
        document_put(&document, bytes, size);
        return FORM_READS_SNAPSHOTS | FORM_READS_TRACK | FORM_READS_DECISIONS | FORM_READS_PROFILE;
    }
    const unsigned kind = bytes[0] % (sizeof kinds / sizeof *kinds);

    memcpy(seed_out, bytes + 1, sizeof *seed_out);
    maker_init(&maker, bytes + 1 + OPTION_BYTES, size - 1 - OPTION_BYTES);
    kinds[kind].make(&maker, &document);
    return kinds[kind].reads;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint64_t seed;

    if (!world.is_ready) {
        world_open();
    }
    output_redirect(world.out, world.err);
    const unsigned reads = input_make(bytes, size, &seed);

    file_write(world.a, document.bytes, document.size);
    file_write(world.b, document.bytes, document.size);
    for (const struct command_form *format = command_forms; format->arguments; format++) {
        if ((format->reads & reads) &&
            (seed_next(&seed) % COMMANDS_ONCE_IN == 0 || world.runs_all)) {
            command_run(format, &seed);
        }
    }
    (void)unlink(world.a);
    (void)unlink(world.b);
    output_redirect(world.own_out, world.own_err);
    return 0;
}
