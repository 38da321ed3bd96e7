/* SPDX-License-Identifier: MIT */
/* A socket that waits for clients of this machine: a port of the loopback, or a Unix socket. */
#ifndef CLI_LISTENER_H
#define CLI_LISTENER_H

#include "command.h"

#include <sys/types.h>
#include <sys/un.h>

enum {
    CLI_LISTENER_NAME_MAX = 160
};

struct cli_listener {
    int socket;                       /* does not block */
    char name[CLI_LISTENER_NAME_MAX]; /* as a client writes it: "http://127.0.0.1:9400" */
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of a Unix socket; "" = a port */
    dev_t device;                                         /* of that file, as the following */
    ino_t inode;
};

/* Opens what the option --listen names: PORT, 127.0.0.1:PORT, [::1]:PORT or unix:PATH. Port 0 is a
 * free one. A Unix socket is for this user alone, and takes the place of one on which nobody
 * listens any more. Reports failures: CLI_EXIT_USAGE for any other address, CLI_EXIT_IO when the
 * address is in use. */
enum cli_exit cli_listener_open(struct cli_listener *listener, const struct cli_command *command,
                                const char *place);

/* Closes the socket, if it is still there (>= 0), and removes its file, if it is still its. */
void cli_listener_close(struct cli_listener *listener);

#endif
