/* SPDX-License-Identifier: MIT */
/*
 * GPUs by name or by size: "H200", "RTX 4090", "A100-80GB", "24G".
 */
#ifndef CLI_CARD_H
#define CLI_CARD_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CLI_CARDS_MAX = 16,
    CLI_CARD_NAME_MAX = 40
};

struct cli_card {
    char name[CLI_CARD_NAME_MAX]; /* as given, without control characters */
    bool is_known;                /* a GPU, whose name does not tell its size */
    uint64_t bytes;               /* total_memory of its torch.cuda.get_device_properties() */
};

struct cli_cards {
    struct cli_card items[CLI_CARDS_MAX];
    int count;
};

/* Adds the cards of a list, separated by commas. On failure writes one sentence to `error`. */
bool cli_cards_read(struct cli_cards *cards, const char *list, char *error, int error_size);

/* All GPUs that are known here, largest memory first. */
void cli_cards_known(struct cli_cards *cards_out);

#endif
