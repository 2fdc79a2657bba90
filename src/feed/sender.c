// SPDX-License-Identifier: Apache-2.0
// A schema is compared by its record's bytes: most batches have the schema of the one before, and
// nothing is made.
#include "feed/sender.h"

#include <string.h>

#include "base/fail.h"
#include "feed/pickled.h"

enum tfos_status tfos__sender_begin(struct tfos__sender *sender, const struct ArrowSchema *schema,
                                    const struct ArrowArray *array, struct tfos_error *err)
{
    if (array->offset < 0 || array->length < 0)
        return tfos__fail(err, TFOS_INVALID, "feed: a batch with length %lld and offset %lld",
                          (long long)array->length, (long long)array->offset);
    enum tfos_status status = tfos__arrow_schema_encode(schema, &sender->scratch, err);
    if (status < 0) {
        tfos__fail_prefix(err, "feed");
        return status;
    }
    size_t size = tfos__buffer_size(&sender->scratch);
    if (sender->schema.field_count > 0 && size == tfos__buffer_size(&sender->body) &&
        memcmp(sender->scratch.data, sender->body.data, size) == 0)
        return TFOS_OK;
    status = tfos__schema_take(&sender->schema, schema, err);
    if (status < 0) // the caller's mistake
        return status == TFOS_NO_MEMORY ? status : TFOS_INVALID;
    if (sender->refuses_pickles)
        TFOS__TRY(tfos__pickled_refuse(&sender->schema, err));
    struct tfos__buffer previous = sender->body;
    sender->body = sender->scratch;
    sender->scratch = previous;
    sender->is_sent = false;
    return TFOS_OK;
}

static void put_head(const struct tfos__record *head, enum tfos__record_kind kind,
                     uint64_t body_size, uint8_t *space)
{
    struct tfos__record record = *head;

    record.kind = kind;
    record.zero = 0;
    record.size = tfos__record_size(body_size);
    record.body_size = body_size;
    memcpy(space, &record, sizeof record);
}

uint64_t tfos__sender_schema_size(const struct tfos__sender *sender)
{
    return tfos__record_size(tfos__buffer_size(&sender->body));
}

uint64_t tfos__sender_batch_size(const struct tfos__sender *sender)
{
    return tfos__record_size(sender->plan.body_size);
}

void tfos__sender_put_schema(const struct tfos__sender *sender, const struct tfos__record *head,
                             uint8_t *space)
{
    struct tfos__record record = *head;

    record.rows = 0;
    put_head(&record, TFOS__RECORD_SCHEMA, tfos__buffer_size(&sender->body), space);
    size_t size = tfos__buffer_size(&sender->body);
    memcpy(space + sizeof record, sender->body.data, size);
    memset(space + sizeof record + size, 0, tfos__record_pad(size) - size);
}

void tfos__sender_put_batch(struct tfos__sender *sender, const struct tfos__record *head,
                            uint8_t *space)
{
    put_head(head, TFOS__RECORD_BATCH, sender->plan.body_size, space);
    tfos__batch_write(&sender->plan, &sender->schema, space + sizeof *head);
}

void tfos__sender_put_piece(const struct tfos__record *head, uint64_t place, const uint8_t *data,
                            uint64_t size, uint8_t *space)
{
    struct tfos__record record = *head;

    record.row = (int64_t)place;
    record.rows = 0;
    put_head(&record, TFOS__RECORD_PIECE, size, space);
    memcpy(space + sizeof record, data, size);
    memset(space + sizeof record + size, 0, tfos__record_pad(size) - size);
}

void tfos__sender_put_end_of_pieces(const struct tfos__record *head, uint8_t *space)
{
    put_head(head, TFOS__RECORD_BATCH, 0, space);
}

void tfos__sender_clear(struct tfos__sender *sender)
{
    tfos__schema_clear(&sender->schema);
    tfos__buffer_clear(&sender->body);
    tfos__buffer_clear(&sender->scratch);
    tfos__batch_plan_clear(&sender->plan);
}
