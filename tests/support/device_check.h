/* SPDX-License-Identifier: MIT */
/*
 * A wrapper that checks the use of another device, for tests. It records all live objects and
 * reports two kinds of errors: the caller's (double free, invalid unmap, use after unmap, unknown
 * handles), which are rejected with TARN_ERR_DEVICE and not forwarded; and the backend's (an
 * address returned twice, outputs written by a failing call). Wraps any backend. Objects that are
 * alive at closing are leaks.
 *
 * Controls of tarn/sim.h go to the inner device, not to this one.
 * Locks: TN_LOCK_DEVICE_CHECK around each call, including the inner one, so that records and calls
 * have the same order. Cost: O(log n) per call.
 */
#ifndef SUPPORT_DEVICE_CHECK_H
#define SUPPORT_DEVICE_CHECK_H

#include "device/device_ops.h"
#include "tarn/findings.h"

/* Takes ownership of `inner` on success: closing the new device closes it. `findings` is borrowed
 * and must outlive the device; it may be read while no call is in progress. Leaks are added at
 * closing. */
enum tarn_status tn_device_check_create(struct tarn_device *inner, struct tarn_findings *findings,
                                        struct tarn_device **device_out);

/* Adds one finding for every live object and returns their number. */
uint64_t tn_device_check_leaks(struct tarn_device *device, struct tarn_findings *findings);

#endif
