/* SPDX-License-Identifier: MIT */
#include "tarn/status.h"

const char *tarn_version(void)
{
    return TARN_VERSION_STRING;
}

const char *tarn_status_name(enum tarn_status status)
{
    static const char *const names[] = {
#define STATUS_NAME(name, number, text) [number] = "TARN_" #name,
        TARN_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    };
    return (unsigned)status < TARN_STATUS_COUNT ? names[status] : "unknown status";
}

const char *tarn_status_text(enum tarn_status status)
{
    static const char *const texts[] = {
#define STATUS_TEXT(name, number, text) [number] = text,
        TARN_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    };
    return (unsigned)status < TARN_STATUS_COUNT ? texts[status] : "unknown status";
}
