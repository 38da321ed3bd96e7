/* SPDX-License-Identifier: MIT */
#include "fleet_files.h"

#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void code_keep(int *code, int failure)
{
    *code = *code ? *code : failure;
}

void cli_fleet_files_release(struct cli_fleet_files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->paths[i]);
    }
    free(files->paths);
}

/* "folder/name", or the name alone. */
static bool path_add(struct cli_fleet_files *files, const char *folder, const char *name)
{
    const size_t before = folder ? strlen(folder) + 1 : 0;
    const size_t length = strlen(name);
    char *path = malloc(before + length + 1);

    if (path && files->count == files->capacity) {
        const size_t capacity = files->capacity ? files->capacity * 2 : 64;
        char **paths = realloc(files->paths, capacity * sizeof *paths);

        if (!paths) {
            free(path);
            return false;
        }
        files->paths = paths;
        files->capacity = capacity;
    }
    if (!path) {
        return false;
    }
    if (folder) {
        memcpy(path, folder, before - 1);
        path[before - 1] = '/';
    }
    memcpy(path + before, name, length + 1);
    files->paths[files->count++] = path;
    return true;
}

/* ---- folders ---- */

static bool ends_in(const char *name, size_t length, const char *ending)
{
    const size_t size = strlen(ending);

    return length > size && memcmp(name + length - size, ending, size) == 0;
}

/* Whether a file of a folder is meant: a snapshot or a summary, packed or not. */
static bool is_wanted(const char *name)
{
    static const char *const packings[] = {".gz", ".zst", ".zstd", NULL};
    static const char *const endings[] = {".pickle", ".pkl", ".json", ".tsum", NULL};
    size_t length = strlen(name);

    for (int i = 0; packings[i]; i++) {
        length -= ends_in(name, length, packings[i]) ? strlen(packings[i]) : 0;
    }
    for (int i = 0; endings[i]; i++) {
        if (ends_in(name, length, endings[i])) {
            return name[0] != '.';
        }
    }
    return false;
}

static int path_compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static bool folder_add(struct cli_fleet_files *files, const struct cli_command *command,
                       const char *folder, int *code)
{
    const size_t first = files->count;
    DIR *open = opendir(folder);
    bool good = true;

    if (!open) {
        code_keep(code, (int)cli_fail(command, CLI_EXIT_IO, "cannot read %s: %s", folder,
                                      strerror(errno)));
        return true;
    }
    for (const struct dirent *entry; good && (entry = readdir(open));) {
        good = !is_wanted(entry->d_name) || path_add(files, folder, entry->d_name);
    }
    (void)closedir(open);
    if (files->count > first) {
        qsort(files->paths + first, files->count - first, sizeof *files->paths, path_compare);
    } else if (good) {
        code_keep(code, (int)cli_fail(command, CLI_EXIT_IO,
                                      "%s has no snapshot and no summary: none ends in .pickle, "
                                      ".json or .tsum",
                                      folder));
    }
    return good;
}

/* ---- lists ---- */

static bool list_add(struct cli_fleet_files *files, const struct cli_command *command,
                     const char *path, int *code)
{
    FILE *list = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    bool good = true;

    if (!list) {
        code_keep(code,
                  (int)cli_fail(command, CLI_EXIT_IO, "cannot read %s: %s", path, strerror(errno)));
        return true;
    }
    for (ssize_t length; good && (length = getline(&line, &room, list)) > 0;) {
        if (line[length - 1] == '\n') {
            line[--length] = '\0';
        }
        good = length == 0 || path_add(files, NULL, line);
    }
    free(line);
    (void)fclose(list);
    return good;
}

static bool is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool cli_fleet_files_collect(struct cli_fleet_files *files, const struct cli_call *call,
                             int *code_out)
{
    bool good = true;

    *files = (struct cli_fleet_files){.paths = NULL};
    for (int i = 0; good && i < call->argument_count; i++) {
        const char *argument = call->arguments[i];

        if (argument[0] == '@') {
            good = list_add(files, call->command, argument + 1, code_out);
        } else if (is_folder(argument)) {
            good = folder_add(files, call->command, argument, code_out);
        } else {
            good = path_add(files, NULL, argument);
        }
    }
    return good;
}

/* ---- adding ---- */

static bool is_regular(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

bool cli_fleet_is_many(const char *argument)
{
    return argument[0] == '@' || is_folder(argument) ||
           (is_regular(argument) && tarn_fleet_is_summary(argument));
}

static void summary_add(const struct cli_command *command, struct tarn_fleet *fleet,
                        const char *path, bool narrows, int *code)
{
    struct tarn_error error = {.offset = -1};

    if (narrows) {
        code_keep(code, (int)cli_fail(command, CLI_EXIT_USAGE,
                                      "%s is a summary: options that select, group or name a time "
                                      "point need its snapshot",
                                      path));
        return;
    }
    const enum tarn_status status = tarn_fleet_load(fleet, path, NULL, &error);

    if (status) {
        code_keep(code, (int)cli_fail_status(command, status, &error, path));
    }
}

void cli_fleet_add_file(const struct cli_command *command, struct tarn_fleet *fleet,
                        const char *path, const char *name,
                        const struct tarn_summary_options *options, bool narrows, int *code)
{
    struct tarn_error error = {.offset = -1};
    int loaded;

    if (is_regular(path) && tarn_fleet_is_summary(path)) {
        summary_add(command, fleet, path, narrows, code);
        return;
    }
    struct tarn_snapshot *snapshot = cli_load_one_of(command, path, &loaded);

    code_keep(code, loaded);
    if (!snapshot) {
        return;
    }
    const enum tarn_status status =
        tarn_fleet_add(fleet, snapshot, name ? name : path, options, &error);

    tarn_snapshot_destroy(snapshot);
    if (status) {
        code_keep(code, (int)cli_fail_status(command, status, &error, path));
    }
}
