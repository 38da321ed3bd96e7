/* SPDX-License-Identifier: MIT */
#include "exit_code.h"

enum cli_exit cli_exit_from_status(enum tarn_status status)
{
    switch (status) {
    case TARN_OK:
        return CLI_EXIT_OK;
    case TARN_ERR_MISMATCH:
        return CLI_EXIT_GATE;
    case TARN_ERR_INVALID_ARGUMENT:
    case TARN_ERR_CONFIG:
    case TARN_ERR_NOT_FOUND:
        return CLI_EXIT_USAGE;
    case TARN_ERR_FORMAT:
    case TARN_ERR_NOT_SUPPORTED:
        return CLI_EXIT_FORMAT;
    case TARN_ERR_UNSAFE:
        return CLI_EXIT_UNSAFE;
    case TARN_ERR_TRUNCATED:
        return CLI_EXIT_TRUNCATED;
    case TARN_ERR_IO:
        return CLI_EXIT_IO;
    case TARN_ERR_LIMIT:
    case TARN_ERR_HOST_MEMORY:
    case TARN_ERR_OUT_OF_MEMORY:
        return CLI_EXIT_LIMIT;
    case TARN_ERR_INVALID_POINTER:
    case TARN_ERR_STATE:
    case TARN_ERR_DEVICE:
    case TARN_ERR_NOT_READY:
    case TARN_ERR_INTERNAL:
    case TARN_STATUS_COUNT:
        break;
    }
    return CLI_EXIT_INTERNAL;
}
