// SPDX-License-Identifier: Apache-2.0
// Any messages, from any of eight peers in any order, into the rendezvous' handling of them,
// without sockets. The input is lines. The first: what kind of cluster (its bytes' bits). Each
// later one: a peer ('0' to '7'; '7' is on the status socket), then a JSON message, or '-' for the
// end of its connection; or '!' and an action of the driver.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/memory.h"
#include "cluster/cluster_state.h"
#include "cluster/dispatch.h"
#include "cluster/failure_text.h"
#include "cluster/session.h"
#include "cluster/status_document.h"

#define PEER_COUNT 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct stage {
    struct tfos__cluster cluster;
    struct tfos__cluster_session peers[PEER_COUNT];
    struct tfos_error err;
};

/// What the server sends must be a frame: an object with a type, and text that can be made of it.
static void send_nowhere(struct tfos__cluster_session *session, json_t *message)
{
    (void)session;
    char *text = tfos__json_text(message);
    assert(text && json_is_string(json_object_get(message, "type")));
    tfos__free(text);
    json_decref(message);
}

static void connect_peer(struct stage *stage, int number)
{
    stage->peers[number] = (struct tfos__cluster_session){.cluster = &stage->cluster,
                                                          .address = "fuzz",
                                                          .is_local = number == PEER_COUNT - 1,
                                                          .send = send_nowhere};
}

static void end_peer(struct stage *stage, int number, const char *cause)
{
    tfos__cluster_dispatch_end(&stage->peers[number], cause);
    connect_peer(stage, number);
}

static void say(struct stage *stage, int number, const char *text, size_t size)
{
    json_t *message;
    if (size > 0 && text[0] == '-') {
        end_peer(stage, number, "the end");
        return;
    }
    if (tfos__json_parse(text, size, &message, &stage->err) != TFOS_OK)
        return;
    if (tfos__cluster_dispatch_message(&stage->peers[number], message, &stage->err) < 0)
        end_peer(stage, number, stage->err.message);
    json_decref(message);
}

/// The driver's own actions, one a letter.
static void act(struct stage *stage, char action)
{
    static char schema[] = "{\"fields\": []}";
    const struct tfos__cluster_feed_description description = {schema, 1, 2};
    struct tfos__cluster *cluster = &stage->cluster;
    switch (action) {
    case 'e':
        tfos__cluster_end_epoch(cluster, 0, 1);
        break;
    case 'v':
        tfos__cluster_end_epoch(cluster, 1, 1);
        break;
    case 'd':
        (void)tfos__cluster_scheduler_describe(&cluster->scheduler, "validation", &description,
                                               &stage->err);
        break;
    case 'f':
        tfos__cluster_end_feed(cluster);
        break;
    case 's':
        tfos__cluster_stop(cluster, 0);
        break;
    case 'x':
        tfos__cluster_fail(cluster, TFOS_IO, "the driver's failure");
        break;
    case 't':
        for (int step = 1; step <= 8;
             step++) // a single long step is taken for a sleep of the machine
            tfos__cluster_tick(cluster, tfos__now_ms() + step * 10000);
        break;
    default:
        break;
    }
}

/// Whatever was said, the cluster can be described, waited for and read out.
static void inspect(struct stage *stage)
{
    struct tfos__cluster *cluster = &stage->cluster;
    for (int phase = TFOS_PHASE_RUNNING; phase <= TFOS_PHASE_ENDED; phase++)
        if (!tfos__cluster_has_reached(cluster, (enum tfos_rendezvous_phase)phase))
            (void)tfos__cluster_failure_text_of_timeout(&cluster->scheduler, cluster->address,
                                                        (enum tfos_rendezvous_phase)phase, 1000,
                                                        &stage->err);
    json_t *document = tfos__cluster_status_document(cluster);
    assert(document);
    json_decref(document);
    for (char *text = tfos__cluster_event_queue_take(&cluster->events); text;
         text = tfos__cluster_event_queue_take(&cluster->events)) {
        json_t *event;
        assert(tfos__json_parse(text, strlen(text), &event, &stage->err) == TFOS_OK);
        json_decref(event);
        tfos__free(text);
    }
}

static const char *end_of_line(const char *line, const char *end)
{
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    return newline ? newline : end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct stage *stage = tfos__alloc(1, sizeof(*stage));
    if (!stage)
        return 0;
    struct tfos_rendezvous_options options = {.cluster_id = "fuzz",
                                              .node_count = 1 + (data[0] & 3),
                                              .ps_count = data[0] >> 2 & 1,
                                              .master_name = data[0] & 8 ? "chief" : NULL,
                                              .has_evaluator = data[0] & 16,
                                              .is_feeding = !(data[0] & 32),
                                              .queues = "input,validation"};
    if (tfos__cluster_init(&stage->cluster, &options, &stage->err) == TFOS_OK) {
        for (int number = 0; number < PEER_COUNT; number++)
            connect_peer(stage, number);
        const char *end = (const char *)data + size;
        for (const char *line = end_of_line((const char *)data, end); line < end;) {
            const char *begin = line + 1;
            line = begin < end ? end_of_line(begin, end) : end;
            if (line - begin < 2)
                continue;
            if (*begin == '!')
                act(stage, begin[1]);
            else
                say(stage, *begin & (PEER_COUNT - 1), begin + 1, (size_t)(line - begin - 1));
        }
        inspect(stage);
        for (int number = 0; number < PEER_COUNT; number++)
            tfos__cluster_dispatch_end(&stage->peers[number], "the end");
        tfos__cluster_clear(&stage->cluster);
    }
    tfos__free(stage);
    return 0;
}
