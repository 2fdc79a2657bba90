// SPDX-License-Identifier: Apache-2.0
// A bounded queue of events. Each is kept as text: smaller than a tree of values, and its size is
// known.
#include "cluster/event_queue.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"

enum tfos_status tfos__cluster_event_queue_init(struct tfos__cluster_event_queue *events,
                                                struct tfos_error *err)
{
    *events = (struct tfos__cluster_event_queue){0};
    events->texts = tfos__alloc(TFOS__EVENT_LIMIT, sizeof(*events->texts));
    if (!events->texts)
        return tfos__no_memory(err, "rendezvous", "the queue of events");
    return TFOS_OK;
}

static char *remove_first(struct tfos__cluster_event_queue *events)
{
    char *text = events->texts[events->first];
    events->texts[events->first] = NULL;
    events->first = (events->first + 1) % TFOS__EVENT_LIMIT;
    events->count--;
    events->size -= strlen(text);
    return text;
}

void tfos__cluster_event_queue_push(struct tfos__cluster_event_queue *events, json_t *event)
{
    char *text = event ? tfos__json_text(event) : NULL;
    json_decref(event);
    if (!text) {
        events->dropped_count++;
        return;
    }
    size_t size = strlen(text);
    while (events->count > 0 &&
           (events->count == TFOS__EVENT_LIMIT || events->size + size > TFOS__EVENT_SIZE_LIMIT)) {
        tfos__free(remove_first(events));
        events->dropped_count++;
    }
    events->texts[(events->first + events->count) % TFOS__EVENT_LIMIT] = text;
    events->count++;
    events->size += size;
}

char *tfos__cluster_event_queue_take(struct tfos__cluster_event_queue *events)
{
    if (events->dropped_count > 0) {
        char *text = tfos__format("{\"event\":\"dropped\",\"node\":\"\",\"count\":%lld}",
                                  (long long)events->dropped_count);
        if (text)
            events->dropped_count = 0;
        return text;
    }
    return events->count > 0 ? remove_first(events) : NULL;
}

void tfos__cluster_event_queue_clear(struct tfos__cluster_event_queue *events)
{
    while (events->count > 0)
        tfos__free(remove_first(events));
    tfos__free(events->texts);
    *events = (struct tfos__cluster_event_queue){0};
}
