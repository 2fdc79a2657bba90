// SPDX-License-Identifier: Apache-2.0
// Records come in and lie in the ring at once, without a copy between. While the ring is full
// nothing is read, and TCP holds the writer back.
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "feed/message.h"
#include "feed/remote_proxy_state.h"

static enum tfos_status check_record(const struct tfos__feed_remote_proxy *proxy,
                                     struct tfos_error *err)
{
    const struct tfos__feed_record *record = &proxy->record;
    bool is_message = record->kind == TFOS__FEED_RECORD_MESSAGE;
    bool is_ours =
        is_message || (record->feed == proxy->feed && record->partition == proxy->partition &&
                       record->attempt == proxy->attempt &&
                       (uint64_t)record->row == tfos__feed_remote_proxy_published_rows(proxy));

    if (tfos__feed_record_is_valid(record) && is_ours && record->kind != TFOS__FEED_RECORD_FILLER &&
        record->kind != TFOS__FEED_RECORD_PIECE &&
        record->size <= (uint64_t)(is_message ? TFOS__FEED_CONTROL_MESSAGE_LIMIT
                                              : TFOS__FEED_CHANNEL_SIZE_LIMIT / 2) &&
        (record->rows == 0 || record->kind == TFOS__FEED_RECORD_BATCH))
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT, "feed: %s sent a broken record of kind %u",
                      tfos__channel_peer(proxy->connection), record->kind);
}

// Reads what is missing of `size` bytes of the record to `data`. OK when all are there.
static enum tfos_status read_part(struct tfos__feed_remote_proxy *proxy, uint8_t *data, size_t size,
                                  bool *has_moved, struct tfos_error *err)
{
    while (proxy->received < size) {
        size_t done = 0;
        enum tfos_status status = tfos__channel_read_some(proxy->connection, data + proxy->received,
                                                          size - proxy->received, &done, err);
        if (status != TFOS_OK)
            return status;
        proxy->received += done;
        *has_moved = true;
    }
    return TFOS_OK;
}

static enum tfos_status take_head(struct tfos__feed_remote_proxy *proxy, bool *has_moved,
                                  struct tfos_error *err)
{
    enum tfos_status status =
        read_part(proxy, (uint8_t *)&proxy->record, sizeof proxy->record, has_moved, err);

    if (status != TFOS_OK)
        return status;
    TFOS__TRY(check_record(proxy, err));
    if (proxy->record.kind == TFOS__FEED_RECORD_MESSAGE) {
        proxy->message = tfos__alloc(1, proxy->record.size);
        if (!proxy->message)
            return tfos__no_memory(err, "feed", "a message");
        proxy->space = proxy->message;
        proxy->intake = TFOS__INTAKE_BODY;
    } else if (proxy->record.size > tfos__feed_remote_proxy_last_channel(proxy)->channel->size) {
        pthread_mutex_lock(&proxy->mutex);
        proxy->wanted_size = proxy->record.size * 2;
        pthread_mutex_unlock(&proxy->mutex);
        tfos__feed_remote_proxy_wake_host(proxy);
        proxy->intake = TFOS__INTAKE_CHANNEL;
    } else {
        proxy->intake = TFOS__INTAKE_SPACE;
    }
    return TFOS_OK;
}

static enum tfos_status take_channel(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    pthread_mutex_lock(&proxy->mutex);
    struct tfos__feed_channel *channel = proxy->given_channel;
    proxy->given_channel = NULL;
    pthread_mutex_unlock(&proxy->mutex);
    if (!channel)
        return TFOS_AGAIN;
    enum tfos_status status = tfos__feed_remote_proxy_add_channel(proxy, channel, err);
    if (status != TFOS_OK) {
        tfos__feed_channel_release(channel);
        return status;
    }
    if (!proxy->has_results)
        tfos__feed_remote_proxy_leave_first_channel(proxy);
    proxy->intake = TFOS__INTAKE_SPACE;
    proxy->is_schema_due = proxy->record.kind == TFOS__FEED_RECORD_BATCH;
    return TFOS_OK;
}

static enum tfos_status repeat_schema(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    struct tfos__feed_producer *producer =
        &tfos__feed_remote_proxy_last_channel(proxy)->channel->producer;
    size_t size = tfos__buffer_size(&proxy->schema);
    uint8_t *space = NULL;

    if (size > 0) {
        enum tfos_status status = tfos__feed_producer_reserve(producer, size, &space, err);
        if (status != TFOS_OK)
            return status;
        memcpy(space, proxy->schema.data, size);
        TFOS__TRY(tfos__feed_producer_commit(producer, size, producer->rows, err));
    }
    proxy->is_schema_due = false;
    return TFOS_OK;
}

static enum tfos_status make_space(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    enum tfos_status status = proxy->is_schema_due ? repeat_schema(proxy, err) : TFOS_OK;

    if (status == TFOS_OK)
        status = tfos__feed_producer_reserve(
            &tfos__feed_remote_proxy_last_channel(proxy)->channel->producer, proxy->record.size,
            &proxy->space, err);
    if (status == TFOS_OK)
        proxy->intake = TFOS__INTAKE_BODY;
    return status;
}

static void hear(struct tfos__feed_remote_proxy *proxy, const json_t *message, bool *is_closed)
{
    const char *type = tfos__json_string_or(message, "type", "");

    *is_closed = strcmp(type, "close") == 0;
    if (strcmp(type, "stalled") != 0)
        return;
    pthread_mutex_lock(&proxy->mutex);
    proxy->is_stalled = true;
    pthread_mutex_unlock(&proxy->mutex);
    tfos__feed_remote_proxy_wake_host(proxy);
}

static enum tfos_status end_message(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    json_t *message = NULL;
    bool is_closed = false;
    enum tfos_status status = tfos__feed_control_message_read(
        &proxy->record, proxy->message + sizeof proxy->record, &message, err);

    tfos__free(proxy->message);
    proxy->message = NULL;
    if (status != TFOS_OK)
        return status;
    hear(proxy, message, &is_closed);
    json_decref(message);
    return is_closed ? tfos__fail(err, TFOS_CLOSED, "feed: the writer has closed") : TFOS_OK;
}

static enum tfos_status end_record(struct tfos__feed_remote_proxy *proxy, struct tfos_error *err)
{
    struct tfos__feed_remote_proxy_channel *channel = tfos__feed_remote_proxy_last_channel(proxy);
    bool is_end = proxy->record.kind == TFOS__FEED_RECORD_END;
    uint64_t rows = tfos__feed_remote_proxy_published_rows(proxy) + (uint64_t)proxy->record.rows;

    memcpy(proxy->space, &proxy->record, sizeof proxy->record);
    if (proxy->record.kind == TFOS__FEED_RECORD_SCHEMA) {
        tfos__buffer_consume(&proxy->schema, tfos__buffer_size(&proxy->schema));
        TFOS__TRY(tfos__buffer_append(&proxy->schema, proxy->space, proxy->record.size, err));
    }
    TFOS__TRY(tfos__feed_producer_commit(&channel->channel->producer, proxy->record.size,
                                         is_end ? rows | TFOS__FEED_ROWS_COMPLETE : rows, err));
    channel->row_count += proxy->record.rows;
    proxy->is_complete |= is_end;
    return TFOS_OK;
}

// Moves on with what comes in. AGAIN when it must wait for something.
enum tfos_status tfos__feed_remote_proxy_take_in(struct tfos__feed_remote_proxy *proxy,
                                                 bool *has_moved, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    switch (proxy->intake) {
    case TFOS__INTAKE_HEAD:
        return take_head(proxy, has_moved, err);
    case TFOS__INTAKE_CHANNEL:
        return take_channel(proxy, err);
    case TFOS__INTAKE_SPACE:
        return make_space(proxy, err);
    case TFOS__INTAKE_BODY:
        status = read_part(proxy, proxy->space, proxy->record.size, has_moved, err);
        if (status != TFOS_OK)
            return status;
        proxy->intake = TFOS__INTAKE_HEAD;
        proxy->received = 0;
        return proxy->message ? end_message(proxy, err) : end_record(proxy, err);
    }
    return status;
}
