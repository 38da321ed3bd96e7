/* SPDX-License-Identifier: MIT */
#include "redirect.h"

#include "output.h"
#include "overwrite.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    COPY_BYTES = 65536
};

static enum cli_exit begin_fail(struct cli_redirect *redirect, const struct cli_command *command)
{
    const int reason = errno;

    if (redirect->aside) {
        (void)fclose(redirect->aside);
    }
    return cli_fail(command, CLI_EXIT_IO, "cannot buffer the output for %s in a temporary file: %s",
                    redirect->path,
                    strerror(reason)); /* NOLINT(concurrency-mt-unsafe): one thread */
}

enum cli_exit cli_redirect_begin(struct cli_redirect *redirect, const struct cli_command *command,
                                 const char *path, bool force)
{
    const enum cli_exit checked = cli_overwrite_check(command, path, force);

    *redirect = (struct cli_redirect){.saved_file = -1};
    if (checked || cli_output_is_stdout(path)) {
        return checked;
    }
    redirect->path = path;
    redirect->aside = tmpfile();
    if (!redirect->aside) {
        return begin_fail(redirect, command);
    }
    (void)fflush(stdout);
    redirect->saved_file = dup(STDOUT_FILENO);
    if (redirect->saved_file < 0 || dup2(fileno(redirect->aside), STDOUT_FILENO) < 0) {
        return begin_fail(redirect, command);
    }
    return CLI_EXIT_OK;
}

static enum tarn_status aside_copy(FILE *aside, const struct tarn_writer *writer)
{
    static char bytes[COPY_BYTES];
    enum tarn_status status = TARN_OK;
    size_t size;

    rewind(aside);
    while (status == TARN_OK && (size = fread(bytes, 1, sizeof bytes, aside)) > 0) {
        status = writer->write(writer->context, bytes, size);
    }
    return status == TARN_OK && ferror(aside) ? TARN_ERR_IO : status;
}

static enum cli_exit file_write(struct cli_redirect *redirect, const struct cli_command *command,
                                enum cli_exit code)
{
    struct cli_output output;
    struct tarn_error error = {.offset = -1};
    const int opened = cli_output_open(&output, command, redirect->path);

    if (opened) {
        return (enum cli_exit)opened;
    }
    return (enum cli_exit)cli_output_close(
        &output, command, aside_copy(redirect->aside, &output.writer), &error, (int)code);
}

static bool is_result(enum cli_exit code)
{
    return code == CLI_EXIT_OK || code == CLI_EXIT_GATE || code == CLI_EXIT_TRUNCATED;
}

enum cli_exit cli_redirect_end(struct cli_redirect *redirect, const struct cli_command *command,
                               enum cli_exit code)
{
    if (!redirect->path) {
        return code;
    }
    const bool is_whole = fflush(stdout) == 0 && !ferror(stdout);

    (void)dup2(redirect->saved_file, STDOUT_FILENO);
    (void)close(redirect->saved_file);
    if (is_whole && is_result(code)) {
        code = file_write(redirect, command, code);
    }
    (void)fclose(redirect->aside);
    redirect->path = NULL;
    return code; /* main reports write errors */
}
