/* SPDX-License-Identifier: MIT */
/* Files without a name, which the system removes when the process ends in any way. Thread-safe. */
#ifndef TN_BASE_OS_FILE_H
#define TN_BASE_OS_FILE_H

#include "base/attr.h"

#include <stdbool.h>
#include <sys/types.h>

/* A new file on the file system of `folder`, open for writing; -1 where that file system has no
 * unnamed files, or they could not be named later. */
int tn_os_file_unnamed(const char *folder, mode_t mode) TN_MUST_CHECK;

/* Gives it a name; false with errno, EEXIST if the path is taken. */
bool tn_os_file_name(int file, const char *path) TN_MUST_CHECK;

#endif
