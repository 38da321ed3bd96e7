/* SPDX-License-Identifier: MIT */
/*
 * One thread: a request is answered when the one before is, so that the model has one user. Signals
 * arrive as something to read beside the clients, so none is missed between two of them.
 */
#include "metrics_serve.h"

#include "listener.h"
#include "output.h"

#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    CLIENTS_MAX = 32,
    CLIENT_SECONDS = 10, /* without a word; then it is sent away */
    POLL_MAX_MS = 60000
};

/* libmicrohttpd brings a dozen libraries with it, which every other command would wait for:
 * therefore it is loaded when somebody listens. */
#define HTTP_LIBRARY "libmicrohttpd.so.12"
#define HTTP_FUNCTIONS(F)                                                                          \
    F(add_response_header)                                                                         \
    F(create_response_from_buffer)                                                                 \
    F(destroy_response)                                                                            \
    F(get_daemon_info)                                                                             \
    F(get_timeout)                                                                                 \
    F(lookup_connection_value)                                                                     \
    F(queue_response)                                                                              \
    F(run)                                                                                         \
    F(start_daemon)                                                                                \
    F(stop_daemon)

static struct {
#define HTTP_MEMBER(name) __typeof__(MHD_##name) *name;
    HTTP_FUNCTIONS(HTTP_MEMBER)
#undef HTTP_MEMBER
} http; /* written once, by http_load */

static bool http_find(void *library, const char *name, void *function_out)
{
    void *found = dlsym(library, name);

    memcpy(function_out, &found, sizeof found);
    return found != NULL;
}

/* It is never closed. */
static bool http_load(void)
{
    void *library = dlopen(HTTP_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    bool is_there = library != NULL;

#define HTTP_FIND(name) is_there = is_there && http_find(library, "MHD_" #name, (void *)&http.name);
    HTTP_FUNCTIONS(HTTP_FIND)
#undef HTTP_FIND
    return is_there;
}

struct server {
    struct cli_watch *watch;
    const struct cli_metrics_options *options;
    struct MHD_Daemon *daemon;
    int signals;  /* descriptor */
    bool is_port; /* of the loopback */
};

/* ---- answers ---- */

/* Queues an answer and takes the text, which was allocated. */
static enum MHD_Result answer_text(struct MHD_Connection *client, unsigned code, const char *type,
                                   char *text, size_t size)
{
    struct MHD_Response *response =
        http.create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);

    if (!response) {
        free(text);
        return MHD_NO;
    }
    enum MHD_Result result = http.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);

    if (result == MHD_YES && code == MHD_HTTP_METHOD_NOT_ALLOWED) {
        result = http.add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    if (result == MHD_YES) {
        result = http.queue_response(client, code, response);
    }
    http.destroy_response(response);
    return result;
}

static enum MHD_Result answer_sentence(struct MHD_Connection *client, unsigned code,
                                       const char *sentence)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    if (!file) {
        return MHD_NO;
    }
    (void)fprintf(file, "%s\n", sentence);
    if (fclose(file)) {
        free(text);
        return MHD_NO;
    }
    return answer_text(client, code, "text/plain; charset=utf-8", text, size);
}

/* What the client takes; whoever takes anything gets what the option says. */
static enum cli_om_format format_choose(const struct server *server, struct MHD_Connection *client)
{
    const char *accept =
        http.lookup_connection_value(client, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);

    if (accept && strstr(accept, "application/openmetrics-text")) {
        return CLI_OM_OPENMETRICS;
    }
    return accept && strstr(accept, "text/plain") ? CLI_OM_PROMETHEUS : server->options->format;
}

static enum MHD_Result answer_metrics(struct server *server, struct MHD_Connection *client)
{
    struct cli_metrics_options options = *server->options;
    struct tarn_error error = {.offset = -1};
    char *text = NULL;
    size_t size = 0;

    if (cli_watch_refresh(server->watch, &error)) {
        return answer_sentence(client, MHD_HTTP_INTERNAL_SERVER_ERROR, error.text);
    }
    FILE *file = open_memstream(&text, &size);

    if (!file) {
        return answer_sentence(client, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    }
    options.format = format_choose(server, client);
    cli_metrics_print(server->watch, &options, file);
    const bool is_whole = !ferror(file);

    if (fclose(file) || !is_whole) {
        free(text);
        return answer_sentence(client, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory");
    }
    return answer_text(client, MHD_HTTP_OK, cli_om_content_type(options.format), text, size);
}

/* A page in a browser can make any name of its own lead to the loopback, and read what is served
 * there. The name in the request gives it away. */
static bool host_is_loopback(struct MHD_Connection *client)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *host = http.lookup_connection_value(client, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    bool is_loopback = !host;

    for (size_t i = 0; !is_loopback && i < sizeof hosts / sizeof *hosts; i++) {
        const size_t length = strlen(hosts[i]);

        is_loopback = strncasecmp(host, hosts[i], length) == 0 &&
                      (host[length] == '\0' || host[length] == ':');
    }
    return is_loopback;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *client, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    static char seen;
    struct server *server = context;

    (void)version;
    (void)upload;
    if (*state != &seen || *upload_size > 0) { /* the headers; a body, which nobody wants */
        *state = &seen;
        *upload_size = 0;
        return MHD_YES;
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        return answer_sentence(client, MHD_HTTP_METHOD_NOT_ALLOWED, "metrics can only be read");
    }
    if (server->is_port && !host_is_loopback(client)) {
        return answer_sentence(client, MHD_HTTP_FORBIDDEN, "the host must be localhost");
    }
    if (strcmp(url, "/metrics") != 0) {
        return answer_sentence(client, MHD_HTTP_NOT_FOUND, "the metrics are at /metrics");
    }
    return answer_metrics(server, client);
}

/* ---- the loop ---- */

/* How long nothing needs to be done unless something arrives. */
static int wait_ms(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG most;

    return http.get_timeout(daemon, &most) == MHD_YES && most < POLL_MAX_MS ? (int)most
                                                                            : POLL_MAX_MS;
}

static enum cli_exit loop(const struct server *server)
{
    const union MHD_DaemonInfo *clients =
        http.get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct signalfd_siginfo signal_found;

    if (!clients) {
        return CLI_EXIT_INTERNAL;
    }
    struct pollfd files[] = {{.fd = clients->listen_fd, .events = POLLIN},
                             {.fd = server->signals, .events = POLLIN}};

    for (;;) {
        if (poll(files, 2, wait_ms(server->daemon)) < 0 && errno != EINTR) {
            return CLI_EXIT_INTERNAL;
        }
        if (read(server->signals, &signal_found, sizeof signal_found) ==
            (ssize_t)sizeof signal_found) {
            return signal_found.ssi_signo == SIGINT ? CLI_EXIT_INTERRUPTED : CLI_EXIT_OK;
        }
        if (http.run(server->daemon) != MHD_YES) {
            return CLI_EXIT_INTERNAL;
        }
    }
}

/* A client that goes away is no reason to end. */
static bool signals_take(struct server *server, sigset_t *before_out)
{
    sigset_t ends;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &ends, before_out);
    server->signals = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
    return server->signals >= 0;
}

static enum cli_exit serve_with(struct server *server, const struct cli_command *command,
                                struct cli_listener *listener)
{
    server->daemon =
        http.start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, answer, server, MHD_OPTION_LISTEN_SOCKET,
                          listener->socket, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CLIENTS_MAX,
                          MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CLIENT_SECONDS, MHD_OPTION_END);
    if (!server->daemon) {
        return cli_fail(command, CLI_EXIT_INTERNAL, "--listen: cannot serve %s", listener->name);
    }
    listener->socket = -1; /* the daemon closes it */
    server->is_port = listener->path[0] == '\0';
    cli_note("serving %s%s until SIGTERM", listener->name, listener->path[0] ? "" : "/metrics");
    const enum cli_exit code = loop(server);

    http.stop_daemon(server->daemon);
    return code == CLI_EXIT_INTERNAL
               ? cli_fail(command, code, "--listen: cannot go on serving %s", listener->name)
               : code;
}

enum cli_exit cli_metrics_serve(const struct cli_command *command, const char *place,
                                struct cli_watch *watch, const struct cli_metrics_options *options)
{
    struct server server = {.watch = watch, .options = options};
    struct cli_listener listener;
    sigset_t before;

    if (!http_load()) {
        return cli_fail(command, CLI_EXIT_FORMAT,
                        "--listen needs " HTTP_LIBRARY ", which cannot be opened: install it "
                        "(Debian: libmicrohttpd12)");
    }
    enum cli_exit code = cli_listener_open(&listener, command, place);

    if (code) {
        return code;
    }
    if (signals_take(&server, &before)) {
        code = serve_with(&server, command, &listener);
        (void)close(server.signals);
    } else {
        code = cli_fail(command, CLI_EXIT_INTERNAL, "--listen: cannot wait for signals");
    }
    cli_listener_close(&listener);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}
