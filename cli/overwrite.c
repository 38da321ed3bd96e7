/* SPDX-License-Identifier: MIT */
#include "overwrite.h"

#include "output.h"

#include <sys/stat.h>

static bool is_link(const char *path)
{
    struct stat info;

    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

enum cli_exit cli_overwrite_check(const struct cli_command *command, const char *path, bool force)
{
    struct stat info;

    if (force || cli_output_is_stdout(path)) {
        return CLI_EXIT_OK;
    }
    if (stat(path, &info) != 0) {
        return is_link(path) ? cli_fail(command, CLI_EXIT_IO,
                                        "%s is a dangling link and is not replaced; "
                                        "use --force or give another name",
                                        path)
                             : CLI_EXIT_OK;
    }
    if (!S_ISREG(info.st_mode)) {
        return CLI_EXIT_OK;
    }
    return cli_fail(command, CLI_EXIT_IO,
                    "%s exists and is not replaced; use --force or give another name", path);
}
