/* SPDX-License-Identifier: MIT */
#include "listener.h"

#include "escape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNIX_BEGIN "unix:"

enum {
    CLIENTS_WAITING = 16,
    PORT_MAX = 65535,
    PORT_DIGITS_MAX = 5
};

/* The descriptor's errors are in errno. */
static int socket_create(int family)
{
    const int made = socket(family, SOCK_STREAM, 0);

    if (made >= 0 && (fcntl(made, F_SETFD, FD_CLOEXEC) || fcntl(made, F_SETFL, O_NONBLOCK))) {
        const int reason = errno;

        (void)close(made);
        errno = reason;
        return -1;
    }
    return made;
}

static enum cli_exit listener_fail(struct cli_listener *listener, const struct cli_command *command,
                                   const char *place)
{
    const int reason = errno;

    cli_listener_close(listener);
    return cli_fail(command, CLI_EXIT_IO, "--listen: cannot listen on %s: %s", place,
                    strerror(reason)); /* NOLINT(concurrency-mt-unsafe): one thread */
}

/* ---- a port ---- */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static bool port_read(const char *text, uint16_t *port_out)
{
    const size_t length = strlen(text);

    if (length == 0 || length > PORT_DIGITS_MAX || strspn(text, "0123456789") != length) {
        return false;
    }
    const unsigned long port = strtoul(text, NULL, 10);

    *port_out = htons((uint16_t)port);
    return port <= PORT_MAX;
}

static enum cli_exit port_open(struct cli_listener *listener, const struct cli_command *command,
                               const char *place, union address *address, socklen_t size)
{
    const int yes = 1;
    const bool is_v6 = address->any.sa_family == AF_INET6;

    listener->socket = socket_create(address->any.sa_family);
    if (listener->socket < 0 ||
        setsockopt(listener->socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) ||
        bind(listener->socket, &address->any, size) || listen(listener->socket, CLIENTS_WAITING) ||
        getsockname(listener->socket, &address->any, &size)) {
        return listener_fail(listener, command, place);
    }
    (void)snprintf(listener->name, sizeof listener->name, "http://%s:%d",
                   is_v6 ? "[::1]" : "127.0.0.1",
                   ntohs(is_v6 ? address->v6.sin6_port : address->v4.sin_port));
    return CLI_EXIT_OK;
}

/* "127.0.0.1" of "127.0.0.1:80"; of a port alone the loopback as well. */
static bool host_is(const char *place, size_t length, const char *host)
{
    return strlen(host) == length && memcmp(place, host, length) == 0;
}

static enum cli_exit inet_open(struct cli_listener *listener, const struct cli_command *command,
                               const char *place)
{
    const char *colon = strrchr(place, ':');
    const size_t length = colon ? (size_t)(colon - place) : 0;
    union address address = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)}};
    uint16_t port;

    if (!port_read(colon ? colon + 1 : place, &port)) {
        return cli_fail(command, CLI_EXIT_USAGE,
                        "--listen: \"%s\" is neither a port (0 to 65535) nor unix:PATH",
                        cli_escaped(place).text);
    }
    if (!colon || host_is(place, length, "127.0.0.1")) {
        address.v4.sin_port = port;
        return port_open(listener, command, place, &address, sizeof address.v4);
    }
    if (host_is(place, length, "[::1]")) {
        address.v6 = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        return port_open(listener, command, place, &address, sizeof address.v6);
    }
    return cli_fail(command, CLI_EXIT_USAGE,
                    "--listen: only the loopback is served, 127.0.0.1 and [::1], not \"%s\"",
                    cli_escaped(place).text);
}

/* ---- a Unix socket ---- */

/* Whether nobody listens on the socket that is there. False as well, with EEXIST, if it is none. */
static bool path_is_left_over(const struct sockaddr_un *address)
{
    struct stat found;

    if (lstat(address->sun_path, &found) || !S_ISSOCK(found.st_mode)) {
        errno = EEXIST;
        return false;
    }
    const int client = socket_create(AF_UNIX);
    const bool is_refused = client >= 0 &&
                            connect(client, (const struct sockaddr *)address, sizeof *address) &&
                            errno == ECONNREFUSED;

    if (client >= 0) {
        (void)close(client);
    }
    errno = EADDRINUSE;
    return is_refused;
}

static bool path_bind(int made, const struct sockaddr_un *address)
{
    const mode_t before = umask(S_IRWXG | S_IRWXO | S_IXUSR); /* it appears with mode 0600 */
    bool bound = bind(made, (const struct sockaddr *)address, sizeof *address) == 0;

    if (!bound && errno == EADDRINUSE && path_is_left_over(address)) {
        bound = unlink(address->sun_path) == 0 &&
                bind(made, (const struct sockaddr *)address, sizeof *address) == 0;
    }
    const int reason = errno;

    (void)umask(before);
    errno = reason;
    return bound;
}

static enum cli_exit unix_open(struct cli_listener *listener, const struct cli_command *command,
                               const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat made;

    if (path[0] == '\0' || strlen(path) >= sizeof address.sun_path) {
        return cli_fail(command, CLI_EXIT_USAGE,
                        "--listen: the path of a Unix socket has 1 to %zu bytes",
                        sizeof address.sun_path - 1);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    listener->socket = socket_create(AF_UNIX);
    if (listener->socket < 0 || !path_bind(listener->socket, &address) ||
        listen(listener->socket, CLIENTS_WAITING) || lstat(path, &made)) {
        return listener_fail(listener, command, path);
    }
    memcpy(listener->path, address.sun_path, sizeof listener->path);
    listener->device = made.st_dev;
    listener->inode = made.st_ino;
    (void)snprintf(listener->name, sizeof listener->name, "unix:%s", path);
    return CLI_EXIT_OK;
}

enum cli_exit cli_listener_open(struct cli_listener *listener, const struct cli_command *command,
                                const char *place)
{
    *listener = (struct cli_listener){.socket = -1};
    return strncmp(place, UNIX_BEGIN, strlen(UNIX_BEGIN)) == 0
               ? unix_open(listener, command, place + strlen(UNIX_BEGIN))
               : inet_open(listener, command, place);
}

void cli_listener_close(struct cli_listener *listener)
{
    struct stat found;

    if (listener->socket >= 0) {
        (void)close(listener->socket);
        listener->socket = -1;
    }
    if (listener->path[0] != '\0' && lstat(listener->path, &found) == 0 &&
        found.st_dev == listener->device && found.st_ino == listener->inode) {
        (void)unlink(listener->path);
    }
}
