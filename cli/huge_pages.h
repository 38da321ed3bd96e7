/* SPDX-License-Identifier: MIT */
#ifndef CLI_HUGE_PAGES_H
#define CLI_HUGE_PAGES_H

/* Makes the library's large allocations come from huge pages, where the system hands them out on
 * request (madvise), and keeps freed memory for the next snapshot. A page fault costs microseconds
 * on a virtual machine, and a snapshot of 100,000 events takes 4,000 small ones. Before any call of
 * the library; the process's malloc grows in larger steps from then on. */
void cli_huge_pages_init(void);

#endif
