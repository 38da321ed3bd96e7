/* SPDX-License-Identifier: MIT */
/*
 * Sockets within this machine, for processes of one user: messages that arrive whole or not at all.
 * Nothing waits for longer than it is told. Thread-safe.
 */
#ifndef TN_BASE_OS_SOCKET_H
#define TN_BASE_OS_SOCKET_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>

/* Listens at a path, in place of whatever is there; -1 with errno. Close with
 * tn_os_descriptor_close. */
int tn_os_socket_listen(const char *path) TN_MUST_CHECK;

/* The next one who connects, if it is of the same user or root; -1 when `wake`, a descriptor, can
 * be read, or on failure. Others are sent away. */
int tn_os_socket_accept(int listener, int wake, int timeout_ms, bool *woken_out) TN_MUST_CHECK;

/* -1 with errno: ENOENT and ECONNREFUSED when nobody listens. */
int tn_os_socket_connect(const char *path, int timeout_ms) TN_MUST_CHECK;

/* One message; false when it did not go or come in time, or has another size. */
bool tn_os_socket_send(int socket, const void *message, size_t size) TN_MUST_CHECK;
bool tn_os_socket_receive(int socket, void *message_out, size_t size) TN_MUST_CHECK;

/* A pair of descriptors: what is written to the second can be read from the first. */
bool tn_os_pipe(int ends_out[2]) TN_MUST_CHECK;
void tn_os_pipe_write(int end);

#endif
