/* SPDX-License-Identifier: MIT */
#include "analysis/code_origin.h"

static bool has_part(struct tn_string file, const char *const *parts)
{
    while (*parts && !strstr(file.text, *parts)) {
        parts++;
    }
    return *parts != NULL;
}

static bool begins_with_one(struct tn_string file, const char *const *starts)
{
    while (*starts && strncmp(file.text, *starts, strlen(*starts)) != 0) {
        starts++;
    }
    return *starts != NULL;
}

enum tn_code_origin tn_code_origin_of(struct tn_string file)
{
    static const char *const torch[] = {"/torch/", "<frozen", NULL};
    static const char *const torch_starts[] = {"torch/", NULL};
    static const char *const library[] = {
        "/lib/python", "/site-packages/", "/dist-packages/", ".so", ".cpp", ".h", NULL};
    static const char *const library_starts[] = {"site-packages/", NULL};

    if (has_part(file, torch) || begins_with_one(file, torch_starts)) {
        return TN_CODE_TORCH;
    }
    return has_part(file, library) || begins_with_one(file, library_starts) ? TN_CODE_LIBRARY
                                                                            : TN_CODE_OWN;
}
