/* SPDX-License-Identifier: MIT */
/*
 * Settings from the environment. The order of the variables is PyTorch's, after our own. As in
 * PyTorch, an empty variable counts as set.
 */
#include "alloc/config/config_parse.h"
#include "base/errinfo.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

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

enum tarn_status tarn_config_from_env_sized(struct tarn_config *config_out, size_t size,
                                            struct tarn_error *error)
{
    struct tarn_config config;
    const char *text = NULL;
    const char *variable = "";
    enum tarn_status st;

    for (size_t i = 0; !text && i < sizeof variables / sizeof variables[0]; i++) {
        variable = variables[i];
        text = getenv(variable);
    }
    st = tarn_config_parse(text, &config, error);
    if (st && text) {
        error_name_variable(error, variable);
    }
    if (st) {
        return st;
    }
    config.no_caching = getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != NULL;
    return tn_config_write(&config, config_out, size, error);
}
