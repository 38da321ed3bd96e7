/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a settings string. A refused one leaves the settings alone and has an offset within
 * the text; an accepted one is printed, and the print gives the same settings.
 */
#include "fuzz_target.h"

#include "tarn/config.h"

#include <stdlib.h>
#include <string.h>

static void demand(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Byte by byte: settings are copied whole, and the library clears what lies between the fields. */
static bool is_same(const struct tarn_config *a, const struct tarn_config *b)
{
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c): see above */
    return memcmp(a, b, sizeof *a) == 0;
}

static void update_check(const char *text)
{
    struct tarn_config config;
    struct tarn_config before;
    struct tarn_error error;

    demand(tarn_config_parse("large_segment_size_mb:12,expandable_segments:True", &config, NULL) ==
           TARN_OK);
    before = config;
    if (tarn_config_update(text, &config, &error) != TARN_OK) {
        demand(is_same(&config, &before));
        demand(error.offset >= 0 && (uint64_t)error.offset <= strlen(text));
        demand(error.text[0] != '\0');
    }
}

static void round_trip_check(const char *text)
{
    char printed[TARN_CONFIG_TEXT_MAX];
    struct tarn_config config;
    struct tarn_config back;

    if (tarn_config_parse(text, &config, NULL) != TARN_OK) {
        return;
    }
    demand(tarn_config_format(&config, printed, sizeof printed, NULL) == TARN_OK);
    demand(tarn_config_parse(printed, &back, NULL) == TARN_OK);
    memcpy(back.text, config.text, sizeof back.text);
    demand(is_same(&back, &config));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (text) {
        if (size > 0) {
            memcpy(text, data, size);
        }
        text[size] = '\0';
        update_check(text);
        round_trip_check(text);
    }
    free(text);
    return 0;
}
