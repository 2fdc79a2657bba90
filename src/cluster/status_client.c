// SPDX-License-Identifier: Apache-2.0
// Finds the drivers on this machine by their abstract sockets, which the kernel lists, and asks
// each for its status, or one to stop. Access is decided by the user ids of both processes, which
// the kernel reports: no key is needed, and none is exposed.
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

/// Connects to a driver of this user and sends `message`, taken over; NULL when there is none.
static struct tfos__channel *ask(const char *name, json_t *message, int64_t deadline)
{
    int fd;
    struct ucred driver;
    socklen_t size = sizeof(driver);
    struct tfos__channel *channel = NULL;
    if (tfos__socket_connect_unix(name, TFOS__UNTIL(deadline), &fd, NULL) != TFOS_OK)
        goto drop_message;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &driver, &size) != 0 || driver.uid != geteuid()) {
        close(fd);
        goto drop_message;
    }
    if (tfos__channel_open(fd, TFOS__CHANNEL_UNIX, NULL, name, &channel, NULL) != TFOS_OK)
        goto drop_message;
    if (tfos__channel_queue(channel, message, NULL, 0, NULL) == TFOS_OK &&
        tfos__channel_pump(channel, NULL) == TFOS_OK)
        return channel;
    tfos__channel_close(channel);
    return NULL;
drop_message:
    json_decref(message);
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
        struct tfos__channel *channel =
            name ? ask(name, json_pack("{s:s}", "type", "status"), deadline) : NULL;
        if (channel)
            channels[(*count)++] = channel;
    }
    fclose(table);
    return TFOS_OK;
}

/// The documents of all drivers that answer in time.
static enum tfos_status collect(int64_t deadline, json_t **out, struct tfos_error *err)
{
    struct tfos__channel *channels[DRIVER_LIMIT];
    size_t count = 0;
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
    if (!documents)
        return tfos__no_memory(err, "status", "the documents");
    *out = documents;
    return TFOS_OK;
}

enum tfos_status tfos_status_query(int64_t timeout_ms, char **json, struct tfos_error *err)
{
    json_t *documents;
    TFOS__TRY(collect(tfos__deadline(timeout_ms), &documents, err));
    return tfos__json_print(documents, "status", "the documents", json, err);
}

// ---- stopping

/// How well `cluster`, as a person names it, fits a document: 2 its id or address, 1 the beginning
/// of its id, else 0.
static int compare(const json_t *document, const char *cluster)
{
    const char *id = tfos__json_string_or(document, "cluster_id", "");
    if (!strcmp(id, cluster) || !strcmp(tfos__json_string_or(document, "address", ""), cluster))
        return 2;
    return cluster[0] && !strncmp(id, cluster, strlen(cluster));
}

/// The ids of the clusters that there are, for a message.
static void list_ids(const json_t *documents, char *text, size_t size)
{
    size_t i, at = 0;
    const json_t *document;
    snprintf(text, size, "none runs on this machine under this user");
    json_array_foreach((json_t *)documents, i, document)
    {
        int written = snprintf(text + at, size - at, "%s%s", i ? ", " : "there are ",
                               tfos__json_string_or(document, "cluster_id", ""));
        if (written < 0 || (size_t)written >= size - at)
            return;
        at += (size_t)written;
    }
}

/// The id of the cluster that is meant; valid as long as the documents.
static enum tfos_status find_cluster(const json_t *documents, const char *cluster, const char **id,
                                     struct tfos_error *err)
{
    size_t i;
    const json_t *document, *found = NULL;
    int best = 0, equals = 0;
    char ids[768];
    json_array_foreach((json_t *)documents, i, document)
    {
        int match = compare(document, cluster);
        equals = match > best ? 1 : equals + (match == best);
        found = match > best ? document : found;
        best = match > best ? match : best;
    }
    list_ids(documents, ids, sizeof(ids));
    if (!found)
        return tfos__fail(err, TFOS_NOT_FOUND,
                          "stop: there is no cluster \"%.64s\" here: %s; ask where its driver runs",
                          cluster, ids);
    if (equals > 1)
        return tfos__fail(err, TFOS_INVALID,
                          "stop: \"%.64s\" is the beginning of several clusters' ids: %s", cluster,
                          ids);
    *id = tfos__json_string_or(found, "cluster_id", "");
    return TFOS_OK;
}

static enum tfos_status send_stop(const char *cluster_id, int64_t deadline, json_t **answer,
                                  struct tfos_error *err)
{
    char name[TFOS__CLUSTER_ID_SIZE + sizeof(TFOS__STATUS_SOCKET_PREFIX)];
    snprintf(name, sizeof(name), "%s%s", TFOS__STATUS_SOCKET_PREFIX, cluster_id);
    json_t *message = json_pack("{s:s, s:I}", "type", "stop", "pid", (json_int_t)getpid());
    struct tfos__channel *channel = ask(name, message, deadline);
    if (!channel)
        return tfos__fail(err, TFOS_CLOSED, "stop: the driver of cluster %s has just gone",
                          cluster_id);
    enum tfos_status status = tfos__channel_receive(channel, answer, NULL, NULL, deadline, err);
    tfos__channel_close(channel);
    return tfos__fail_in(err, status, "stop: the driver of the cluster does not answer");
}

enum tfos_status tfos_cluster_request_stop(const char *cluster, int64_t timeout_ms, char **json,
                                           struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(timeout_ms);
    json_t *documents, *answer = NULL;
    const char *id;
    TFOS__TRY(collect(deadline, &documents, err));
    enum tfos_status status = find_cluster(documents, cluster, &id, err);
    if (status == TFOS_OK)
        status = send_stop(id, deadline, &answer, err);
    json_decref(documents);
    TFOS__TRY(status);
    return tfos__json_print(answer, "stop", "the answer", json, err);
}
