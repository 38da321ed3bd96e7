/* SPDX-License-Identifier: MIT */
#include "bits.h"
