/* SPDX-License-Identifier: MIT */
/* A case of the class's tests in a file of its own. */
#ifndef TESTS_PLUG_TEST_CLASS_POOL_H
#define TESTS_PLUG_TEST_CLASS_POOL_H

void pools_with_an_allocator_of_their_own();

/* Before torch 2.8; nothing since then. */
void what_names_no_pool_is_about_the_active_one();

#endif
