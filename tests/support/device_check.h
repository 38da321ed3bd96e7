/* SPDX-License-Identifier: MIT */
/*
 * A device that watches how another one is used, for tests. It keeps its own record of everything
 * that is alive and reports two kinds of wrong: the caller's (double free, unmap of what is not
 * mapped, use after unmap, handles that do not exist), which are refused with TARN_ERR_DEVICE and
 * not passed on; and the backend's (an address handed out twice, outputs touched by a failing
 * call). Works around any table. Whatever is alive when it is closed is a leak.
 *
 * Controls of tarn/sim.h go to the inner device, not to this one.
 * Locks: TN_LOCK_DEVICE_CHECK around each call, the inner one included, so that records and calls
 * have the same order. Cost: O(log n) a call.
 */
#ifndef SUPPORT_DEVICE_CHECK_H
#define SUPPORT_DEVICE_CHECK_H

#include "device/device_ops.h"
#include "tarn/findings.h"

/* Takes ownership of `inner` on success: closing the new device closes it. `findings` is the
 * caller's and outlives the device; it may be read while no call runs. Leaks are added at closing.
 * */
enum tarn_status tn_device_check_create(struct tarn_device *inner, struct tarn_findings *findings,
                                        struct tarn_device **device_out);

/* Adds one finding for everything that is alive now and returns how many. */
uint64_t tn_device_check_leaks(struct tarn_device *device, struct tarn_findings *findings);

#endif
