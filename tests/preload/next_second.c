/* SPDX-License-Identifier: MIT */
__attribute__((visibility("default"))) int preload_next(void);

int preload_next(void)
{
    return 41;
}
