/* SPDX-License-Identifier: MIT */
/* What the tests of the class share: which version of torch it is, and one case. */
#ifndef TESTS_PLUG_TEST_CLASS_POOL_H
#define TESTS_PLUG_TEST_CLASS_POOL_H

#define TARN_TORCH_AT_LEAST(minor) (TORCH_VERSION_MINOR >= (minor))

void pools_with_an_allocator_of_their_own();

#endif
