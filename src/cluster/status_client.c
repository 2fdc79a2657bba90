// SPDX-License-Identifier: Apache-2.0
// Finds the drivers on this machine by their abstract sockets, which the kernel lists, and asks
// each for its status.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <tfos/rendezvous.h>
#include <unistd.h>

#include "base/channel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/socket.h"
#include "cluster/cluster_state.h"
#include "cluster/status_document.h"

#define DRIVER_LIMIT 256     // most drivers asked
#define LEAST_WAIT_MS 20     // for each driver, when an earlier one has used up the time
#define ACCEPTS_FLAG 0x10000 // of a listening socket, in /proc/net/unix

/// The cluster id of a listening status socket in a line of /proc/net/unix, or NULL.
static const char *find_id(char *line)
{
    unsigned flags;
    char *name = strstr(line, " @" TFOS__STATUS_SOCKET_PREFIX);
    if (!name || sscanf(line, "%*s %*s %*s %x", &flags) != 1 || !(flags & ACCEPTS_FLAG))
        return NULL;
    name += 2; // the abstract name itself
    name[strcspn(name, "\n")] = '\0';
    return name;
}

/// Connects to a driver of this user and asks; NULL when there is none.
static struct tfos__channel *ask(const char *name, int64_t deadline)
{
    int fd;
    struct ucred driver;
    socklen_t size = sizeof(driver);
    struct tfos__channel *channel;
    if (tfos__socket_connect_unix(name, TFOS__UNTIL(deadline), &fd, NULL) != TFOS_OK)
        return NULL;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &driver, &size) != 0 || driver.uid != geteuid()) {
        close(fd);
        return NULL;
    }
    if (tfos__channel_open(fd, TFOS__CHANNEL_UNIX, NULL, name, &channel, NULL) != TFOS_OK)
        return NULL;
    if (tfos__channel_queue(channel, json_pack("{s:s}", "type", "status"), NULL, 0, NULL) ==
            TFOS_OK &&
        tfos__channel_pump(channel, NULL) == TFOS_OK)
        return channel;
    tfos__channel_close(channel);
    return NULL;
}

/// Sends every driver the request before it waits for any answer, so that a slow one does not delay
/// the others.
static enum tfos_status ask_all(struct tfos__channel **channels, size_t *count, int64_t deadline,
                                struct tfos_error *err)
{
    char line[512];
    FILE *table = fopen("/proc/net/unix", "re");
    if (!table)
        return tfos__fail_errno(err, TFOS_IO, "status: cannot read /proc/net/unix");
    while (*count < DRIVER_LIMIT && fgets(line, sizeof(line), table)) {
        const char *name = find_id(line);
        struct tfos__channel *channel = name ? ask(name, deadline) : NULL;
        if (channel)
            channels[(*count)++] = channel;
    }
    fclose(table);
    return TFOS_OK;
}

enum tfos_status tfos_status_query(int64_t timeout_ms, char **json, struct tfos_error *err)
{
    struct tfos__channel *channels[DRIVER_LIMIT];
    size_t count = 0;
    int64_t deadline = tfos__deadline(timeout_ms);
    TFOS__TRY(ask_all(channels, &count, deadline, err));
    json_t *documents = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *document;
        int64_t until = tfos__deadline(LEAST_WAIT_MS);
        if (until < deadline)
            until = deadline;
        // A driver that ends meanwhile, or hangs, is left out.
        if (tfos__channel_receive(channels[i], &document, NULL, NULL, until, NULL) == TFOS_OK)
            json_array_append_new(documents, document);
        tfos__channel_close(channels[i]);
    }
    return tfos__json_print(documents, "status", "the documents", json, err);
}
