/* SPDX-License-Identifier: MIT */
/*
 * The table has the bytes that cudaGetDeviceProperties reports as totalGlobalMem, which is what
 * PyTorch shows as total_memory. They differ a little between drivers, and are less where ECC is
 * on; of several reports the table has the lowest, so that what fits here fits there. Cards whose
 * figure nobody published in bytes are not in it: a size can be given for them.
 */
#include "card.h"

#include "escape.h"
#include "size_read.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLAIN_MAX = 64
};

/* Letters and digits of names, in small letters. */
static const struct known {
    const char *name;
    const char *plain[3]; /* accepted spellings, as plain_make writes them */
    uint64_t bytes;
} known[] = {
    /* PyTorch 2.11 on an H200, driver 580.159 */
    {"H200", {"h200", "h200sxm", "h200141gb"}, 150109880320},
    /* deviceQuery on "NVIDIA H100 80GB HBM3", CUDA 13.0 driver (85045477376 with 12.7) */
    {"H100-80GB", {"h100", "h10080gb", "h10080gbhbm3"}, 85017755648},
    /* deviceQuery on "NVIDIA A100-SXM4-80GB", CUDA 12.2 driver (85100068864 with 12.5) */
    {"A100-80GB", {"a10080gb", "a100sxm480gb", "a10080gbsxm"}, 84987740160},
    /* deviceQuery on "NVIDIA A100-SXM4-40GB", CUDA 12.2 driver; the PCIe card reports the same */
    {"A100-40GB", {"a10040gb", "a100sxm440gb", "a100pcie40gb"}, 42298834944},
    /* deviceQuery on "NVIDIA L40S", CUDA 12.4 driver */
    {"L40S", {"l40s"}, 47576711168},
    /* deviceQuery on "NVIDIA L4", CUDA 12.0 driver */
    {"L4", {"l4"}, 23612293120},
    /* deviceQuery on "NVIDIA A10", CUDA 12.2 driver */
    {"A10", {"a10"}, 23609475072},
    /* deviceQuery on "Tesla T4", CUDA 12.5 driver (15843721216 with 11.2) */
    {"T4", {"t4"}, 15642329088},
    /* deviceQuery on "Tesla V100-SXM2-32GB", CUDA 12.9 driver (34089926656 with 11.6) */
    {"V100-32GB", {"v10032gb", "v100sxm232gb"}, 34072559616},
    /* deviceQuery on "NVIDIA GeForce RTX 5090", CUDA 13.0 driver */
    {"RTX 5090", {"rtx5090", "5090"}, 33660534784},
    /* deviceQuery on "NVIDIA GeForce RTX 4090", CUDA 12.4 driver */
    {"RTX 4090", {"rtx4090", "4090"}, 25386352640},
    /* deviceQuery on "NVIDIA GeForce RTX 3090", CUDA 11.4 driver (25443893248 with 11.8) */
    {"RTX 3090", {"rtx3090", "3090"}, 25411846144},
};

/* "NVIDIA GeForce RTX 4090" is "rtx4090". */
static void plain_make(const char *text, char *plain)
{
    static const char *const makers[] = {"nvidia", "geforce", "tesla"};
    size_t used = 0;

    for (; *text && used + 1 < PLAIN_MAX; text++) {
        if (isalnum((unsigned char)*text)) {
            plain[used++] = (char)tolower((unsigned char)*text);
        }
    }
    plain[used] = '\0';
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        const size_t length = strlen(makers[i]);

        if (strncmp(plain, makers[i], length) == 0) {
            memmove(plain, plain + length, strlen(plain + length) + 1);
        }
    }
}

static const struct known *known_find(const char *text)
{
    char plain[PLAIN_MAX];

    plain_make(text, plain);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        for (size_t k = 0; k < sizeof known[i].plain / sizeof *known[i].plain; k++) {
            if (known[i].plain[k] && strcmp(plain, known[i].plain[k]) == 0) {
                return &known[i];
            }
        }
    }
    return NULL;
}

static void error_write(char *error, int size, const char *text)
{
    int used = snprintf(error, (size_t)size,
                        "\"%s\" is neither a size, such as 24GiB, nor a card that is known here:",
                        cli_escaped(text).text);

    for (size_t i = 0; i < sizeof known / sizeof *known && used < size; i++) {
        used += snprintf(error + used, (size_t)(size - used), "%s %s", i ? "," : "", known[i].name);
    }
}

static bool card_read(struct cli_card *card, const char *text, char *error, int error_size)
{
    const struct known *found = known_find(text);

    *card = (struct cli_card){.is_known = found != NULL};
    if (found) {
        card->bytes = found->bytes;
    } else if (!cli_size_read(text, &card->bytes) || card->bytes == 0) {
        error_write(error, error_size, text);
        return false;
    }
    (void)snprintf(card->name, sizeof card->name, "%s", found ? found->name : text);
    return true;
}

bool cli_cards_read(struct cli_cards *cards, const char *list, char *error, int error_size)
{
    for (const char *next = list; next;) {
        char text[CLI_CARD_NAME_MAX];
        const char *begin = next + strspn(next, " ");
        const char *comma = strchr(begin, ',');
        const int length = comma ? (int)(comma - begin) : (int)strlen(begin);

        if (cards->count == CLI_CARDS_MAX) {
            (void)snprintf(error, (size_t)error_size, "more than %d cards", (int)CLI_CARDS_MAX);
            return false;
        }
        (void)snprintf(text, sizeof text, "%.*s", length, begin);
        if (!card_read(&cards->items[cards->count], text, error, error_size)) {
            return false;
        }
        cards->count++;
        next = comma ? comma + 1 : NULL;
    }
    return true;
}

static int largest_first(const void *left, const void *right)
{
    const struct cli_card *a = left;
    const struct cli_card *b = right;

    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

void cli_cards_known(struct cli_cards *cards_out)
{
    static_assert(sizeof known / sizeof *known <= CLI_CARDS_MAX, "there is room for all");
    *cards_out = (struct cli_cards){.count = 0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct cli_card *card = &cards_out->items[cards_out->count++];

        card->is_known = true;
        card->bytes = known[i].bytes;
        (void)snprintf(card->name, sizeof card->name, "%s", known[i].name);
    }
    qsort(cards_out->items, (size_t)cards_out->count, sizeof *cards_out->items, largest_first);
}
