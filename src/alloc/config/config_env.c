/* SPDX-License-Identifier: MIT */
/*
 * Settings from the environment. The order of the variables is PyTorch's, after our own. As in
 * PyTorch, an empty variable counts as set.
 */
#include "alloc/config/config_parse.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const variables[] = {"TARN_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_ALLOC_CONF"};

/* Puts the variable's name before the error's text. */
static void error_name_variable(struct tarn_error *error, const char *variable)
{
    char text[TARN_ERROR_TEXT_MAX];

    if (error) {
        (void)snprintf(text, sizeof text, "%s", error->text);
        (void)snprintf(error->text, sizeof error->text, "%s: %.*s", variable,
                       tn_utf8_cut(text, sizeof error->text - 64), text);
    }
}

/* Who may watch, and where. */
static enum tarn_status watch_from_env(struct tarn_config *config, struct tarn_error *error)
{
    const char *text = getenv("TARN_WATCH");
    const char *folder = getenv("XDG_RUNTIME_DIR");

    if (!text || !text[0] || strcmp(text, "0") == 0) {
        return TARN_OK;
    }
    if (strcmp(text, "1") != 0 && strcmp(text, "control") != 0) {
        return tn_fail(error, TARN_ERR_CONFIG, "TARN_WATCH: 0, 1 or control, not \"%.64s\"", text);
    }
    if (folder && strlen(folder) >= sizeof config->watch_folder) {
        return tn_fail(error, TARN_ERR_CONFIG, "TARN_WATCH: XDG_RUNTIME_DIR has more than %d bytes",
                       TARN_WATCH_FOLDER_MAX - 1);
    }
    config->watch = text[0] == '1' ? TARN_WATCH_PAGE : TARN_WATCH_CONTROL;
    (void)snprintf(config->watch_folder, sizeof config->watch_folder, "%s", folder ? folder : "");
    return TARN_OK;
}

enum tarn_status tarn_config_from_env_sized(struct tarn_config *config_out, size_t size,
                                            struct tarn_error *error)
{
    struct tarn_config config;
    const char *text = NULL;
    const char *variable = "";
    struct tarn_config watched = {.watch = TARN_WATCH_OFF};
    enum tarn_status st;

    for (size_t i = 0; !text && i < sizeof variables / sizeof variables[0]; i++) {
        variable = variables[i];
        text = getenv(variable);
    }
    st = watch_from_env(&watched, error);
    if (st) {
        return st;
    }
    st = tarn_config_parse(text, &config, error);
    if (st && tn_always(text)) { /* no text is no mistake */
        error_name_variable(error, variable);
    }
    if (st) {
        return st;
    }
    config.watch = watched.watch;
    memcpy(config.watch_folder, watched.watch_folder, sizeof watched.watch_folder);
    config.no_caching = getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL;
    return tn_config_write(&config, config_out, size, error);
}
