// SPDX-License-Identifier: MIT
/** A device, or pinned memory, in words. @param {{host: boolean, device: number}} info */
export function sourceName(info) {
  return info.host ? `pinned memory ${info.device}` : `device ${info.device}`;
}
