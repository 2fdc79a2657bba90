// SPDX-License-Identifier: Apache-2.0
// Records come in and lie in the ring at once, without a copy between. While the ring is full
// nothing is read, and TCP holds the writer back.
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "feed/message.h"
#include "feed/relay_state.h"

static enum tfos_status check_record(const struct tfos__relay *relay, struct tfos_error *err)
{
    const struct tfos__record *record = &relay->record;
    bool is_message = record->kind == TFOS__RECORD_MESSAGE;
    bool is_ours =
        is_message || (record->feed == relay->feed && record->partition == relay->partition &&
                       record->attempt == relay->attempt &&
                       (uint64_t)record->row == tfos__relay_published_rows(relay));

    if (tfos__record_is_sound(record) && is_ours && record->kind != TFOS__RECORD_FILLER &&
        record->kind != TFOS__RECORD_PIECE &&
        record->size <= (uint64_t)(is_message ? TFOS__MESSAGE_LIMIT : TFOS__LANE_SIZE_LIMIT / 2) &&
        (record->rows == 0 || record->kind == TFOS__RECORD_BATCH))
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT, "feed: %s sent a broken record of kind %u",
                      tfos__channel_peer(relay->channel), record->kind);
}

// Reads what is missing of `size` bytes of the record to `data`. OK when all are there.
static enum tfos_status read_part(struct tfos__relay *relay, uint8_t *data, size_t size,
                                  bool *has_moved, struct tfos_error *err)
{
    while (relay->received < size) {
        size_t done = 0;
        enum tfos_status status = tfos__channel_read_some(relay->channel, data + relay->received,
                                                          size - relay->received, &done, err);
        if (status != TFOS_OK)
            return status;
        relay->received += done;
        *has_moved = true;
    }
    return TFOS_OK;
}

static enum tfos_status take_head(struct tfos__relay *relay, bool *has_moved,
                                  struct tfos_error *err)
{
    enum tfos_status status =
        read_part(relay, (uint8_t *)&relay->record, sizeof relay->record, has_moved, err);

    if (status != TFOS_OK)
        return status;
    TFOS__TRY(check_record(relay, err));
    if (relay->record.kind == TFOS__RECORD_MESSAGE) {
        relay->message = tfos__alloc(1, relay->record.size);
        if (!relay->message)
            return tfos__no_memory(err, "feed", "a message");
        relay->space = relay->message;
        relay->intake = TFOS__INTAKE_BODY;
    } else if (relay->record.size > tfos__relay_last_lane(relay)->lane->size) {
        pthread_mutex_lock(&relay->mutex);
        relay->wanted_size = relay->record.size * 2;
        pthread_mutex_unlock(&relay->mutex);
        tfos__relay_wake_host(relay);
        relay->intake = TFOS__INTAKE_LANE;
    } else {
        relay->intake = TFOS__INTAKE_SPACE;
    }
    return TFOS_OK;
}

static enum tfos_status take_lane(struct tfos__relay *relay, struct tfos_error *err)
{
    pthread_mutex_lock(&relay->mutex);
    struct tfos__lane *lane = relay->given_lane;
    relay->given_lane = NULL;
    pthread_mutex_unlock(&relay->mutex);
    if (!lane)
        return TFOS_AGAIN;
    enum tfos_status status = tfos__relay_add_lane(relay, lane, err);
    if (status != TFOS_OK) {
        tfos__lane_release(lane);
        return status;
    }
    if (!relay->has_results)
        tfos__relay_leave_first_lane(relay);
    relay->intake = TFOS__INTAKE_SPACE;
    relay->is_schema_due = relay->record.kind == TFOS__RECORD_BATCH;
    return TFOS_OK;
}

static enum tfos_status repeat_schema(struct tfos__relay *relay, struct tfos_error *err)
{
    struct tfos__inlet *inlet = &tfos__relay_last_lane(relay)->lane->inlet;
    size_t size = tfos__buffer_size(&relay->schema);
    uint8_t *space = NULL;

    if (size > 0) {
        enum tfos_status status = tfos__inlet_reserve(inlet, size, &space, err);
        if (status != TFOS_OK)
            return status;
        memcpy(space, relay->schema.data, size);
        TFOS__TRY(tfos__inlet_commit(inlet, size, inlet->rows, err));
    }
    relay->is_schema_due = false;
    return TFOS_OK;
}

static enum tfos_status make_space(struct tfos__relay *relay, struct tfos_error *err)
{
    enum tfos_status status = relay->is_schema_due ? repeat_schema(relay, err) : TFOS_OK;

    if (status == TFOS_OK)
        status = tfos__inlet_reserve(&tfos__relay_last_lane(relay)->lane->inlet, relay->record.size,
                                     &relay->space, err);
    if (status == TFOS_OK)
        relay->intake = TFOS__INTAKE_BODY;
    return status;
}

static void hear(struct tfos__relay *relay, const json_t *message, bool *is_closed)
{
    const char *type = tfos__json_string_or(message, "type", "");

    *is_closed = strcmp(type, "close") == 0;
    if (strcmp(type, "stalled") != 0)
        return;
    pthread_mutex_lock(&relay->mutex);
    relay->is_stalled = true;
    pthread_mutex_unlock(&relay->mutex);
    tfos__relay_wake_host(relay);
}

static enum tfos_status end_message(struct tfos__relay *relay, struct tfos_error *err)
{
    json_t *message = NULL;
    bool is_closed = false;
    enum tfos_status status =
        tfos__message_read(&relay->record, relay->message + sizeof relay->record, &message, err);

    tfos__free(relay->message);
    relay->message = NULL;
    if (status != TFOS_OK)
        return status;
    hear(relay, message, &is_closed);
    json_decref(message);
    return is_closed ? tfos__fail(err, TFOS_CLOSED, "feed: the writer has closed") : TFOS_OK;
}

static enum tfos_status end_record(struct tfos__relay *relay, struct tfos_error *err)
{
    struct tfos__relay_lane *lane = tfos__relay_last_lane(relay);
    bool is_end = relay->record.kind == TFOS__RECORD_END;
    uint64_t rows = tfos__relay_published_rows(relay) + (uint64_t)relay->record.rows;

    memcpy(relay->space, &relay->record, sizeof relay->record);
    if (relay->record.kind == TFOS__RECORD_SCHEMA) {
        tfos__buffer_consume(&relay->schema, tfos__buffer_size(&relay->schema));
        TFOS__TRY(tfos__buffer_append(&relay->schema, relay->space, relay->record.size, err));
    }
    TFOS__TRY(tfos__inlet_commit(&lane->lane->inlet, relay->record.size,
                                 is_end ? rows | TFOS__ROWS_COMPLETE : rows, err));
    lane->row_count += relay->record.rows;
    relay->is_complete |= is_end;
    return TFOS_OK;
}

// Moves on with what comes in. AGAIN when it must wait for something.
enum tfos_status tfos__relay_take_in(struct tfos__relay *relay, bool *has_moved,
                                     struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;

    switch (relay->intake) {
    case TFOS__INTAKE_HEAD:
        return take_head(relay, has_moved, err);
    case TFOS__INTAKE_LANE:
        return take_lane(relay, err);
    case TFOS__INTAKE_SPACE:
        return make_space(relay, err);
    case TFOS__INTAKE_BODY:
        status = read_part(relay, relay->space, relay->record.size, has_moved, err);
        if (status != TFOS_OK)
            return status;
        relay->intake = TFOS__INTAKE_HEAD;
        relay->received = 0;
        return relay->message ? end_message(relay, err) : end_record(relay, err);
    }
    return status;
}
