/* SPDX-License-Identifier: MIT */
/*
 * Whose code a source file is: the user's, PyTorch's, or another library's or the interpreter's.
 * Known by the path, also by one that begins with the package, as "tarn trim --anonymize" leaves
 * it.
 */
#ifndef TN_ANALYSIS_CODE_ORIGIN_H
#define TN_ANALYSIS_CODE_ORIGIN_H

#include "snapshot/model.h"

enum tn_code_origin {
    TN_CODE_OWN,
    TN_CODE_LIBRARY,
    TN_CODE_TORCH /* and what is frozen into the interpreter */
};

enum tn_code_origin tn_code_origin_of(struct tn_string file);

#endif
