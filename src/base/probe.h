/* SPDX-License-Identifier: MIT */
/*
 * Static tracepoints (SystemTap's sys/sdt.h, where it is installed at build time): names that perf,
 * bpftrace and the like can attach to at run time. An inactive probe is one no-op instruction.
 * docs/watch.md lists them with their arguments.
 */
#ifndef TN_BASE_PROBE_H
#define TN_BASE_PROBE_H

#ifdef TN_HAVE_SDT /* the build found it */
#include <sys/sdt.h>
#define TN_PROBE1(name, a)          DTRACE_PROBE1(tarn, name, a)
#define TN_PROBE4(name, a, b, c, d) DTRACE_PROBE4(tarn, name, a, b, c, d)
#else
#define TN_PROBE1(name, a)          ((void)(a))
#define TN_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

#endif
