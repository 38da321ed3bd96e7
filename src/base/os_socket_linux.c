/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* accept4, struct ucred, pipe2 */
#include "base/os_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 4,
    PEER_TIMEOUT_MS = 2000 /* for a message of somebody who has connected */
};

static int fail_closed(int socket)
{
    const int failed = errno;

    (void)close(socket);
    errno = failed;
    return -1;
}

static bool address_make(struct sockaddr_un *address_out, const char *path)
{
    *address_out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address_out->sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address_out->sun_path, path, strlen(path) + 1);
    return true;
}

static bool timeout_set(int socket, int timeout_ms)
{
    const struct timeval time = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000L};

    return setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) == 0 &&
           setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) == 0;
}

int tn_os_socket_listen(const char *path)
{
    struct sockaddr_un address;

    if (!address_make(&address, path)) {
        return -1;
    }
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (listener < 0) {
        return -1;
    }
    (void)unlink(path);
    if (fchmod(listener, 0600) != 0 ||
        bind(listener, (const struct sockaddr *)&address, sizeof address) != 0 ||
        chmod(path, 0600) != 0 || listen(listener, BACKLOG) != 0) {
        return fail_closed(listener);
    }
    return listener;
}

static bool peer_is_welcome(int socket)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

int tn_os_socket_accept(int listener, int wake, int timeout_ms, bool *woken_out)
{
    struct pollfd waits[2] = {{.fd = listener, .events = POLLIN}, {.fd = wake, .events = POLLIN}};

    *woken_out = false;
    if (poll(waits, 2, timeout_ms) <= 0) {
        return -1;
    }
    if (waits[1].revents) {
        *woken_out = true;
        return -1;
    }
    const int socket = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (socket >= 0 && (!peer_is_welcome(socket) || !timeout_set(socket, PEER_TIMEOUT_MS))) {
        (void)close(socket);
        return -1;
    }
    return socket;
}

int tn_os_socket_connect(const char *path, int timeout_ms)
{
    struct sockaddr_un address;

    if (!address_make(&address, path)) {
        return -1;
    }
    const int to = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (to < 0) {
        return -1;
    }
    if (!timeout_set(to, timeout_ms) ||
        connect(to, (const struct sockaddr *)&address, sizeof address) != 0) {
        return fail_closed(to);
    }
    return to;
}

bool tn_os_socket_send(int socket, const void *message, size_t size)
{
    return send(socket, message, size, MSG_NOSIGNAL) == (ssize_t)size;
}

bool tn_os_socket_receive(int socket, void *message_out, size_t size)
{
    /* MSG_TRUNC: the real size of a longer message */
    return recv(socket, message_out, size, MSG_TRUNC) == (ssize_t)size;
}

bool tn_os_pipe(int ends_out[2])
{
    return pipe2(ends_out, O_CLOEXEC | O_NONBLOCK) == 0;
}

void tn_os_pipe_write(int end)
{
    const ssize_t written = write(end, "", 1);

    (void)written; /* a full pipe can be read as well */
}
