// SPDX-License-Identifier: Apache-2.0
// A schema is compared by its record's bytes: most batches have the schema of the one before, and
// nothing is made.
#include "feed/sender.h"

#include <string.h>

#include "base/fail.h"
#include "feed/pickled.h"

enum tfos_status tfos__feed_batch_encoder_begin(struct tfos__feed_batch_encoder *encoder,
                                                const struct ArrowSchema *schema,
                                                const struct ArrowArray *array,
                                                struct tfos_error *err)
{
    if (array->offset < 0 || array->length < 0)
        return tfos__fail(err, TFOS_INVALID, "feed: a batch with length %lld and offset %lld",
                          (long long)array->length, (long long)array->offset);
    enum tfos_status status = tfos__arrow_schema_encode(schema, &encoder->scratch, err);
    if (status < 0) {
        tfos__fail_prefix(err, "feed");
        return status;
    }
    size_t size = tfos__buffer_size(&encoder->scratch);
    if (encoder->schema.field_count > 0 && size == tfos__buffer_size(&encoder->body) &&
        memcmp(encoder->scratch.data, encoder->body.data, size) == 0)
        return TFOS_OK;
    status = tfos__feed_schema_take(&encoder->schema, schema, err);
    if (status < 0) // the caller's mistake
        return status == TFOS_NO_MEMORY ? status : TFOS_INVALID;
    if (encoder->refuses_pickles)
        TFOS__TRY(tfos__feed_schema_refuse_pickles(&encoder->schema, err));
    struct tfos__buffer previous = encoder->body;
    encoder->body = encoder->scratch;
    encoder->scratch = previous;
    encoder->is_sent = false;
    return TFOS_OK;
}

static void put_head(const struct tfos__feed_record *head, enum tfos__feed_record_kind kind,
                     uint64_t body_size, uint8_t *space)
{
    struct tfos__feed_record record = *head;

    record.kind = kind;
    record.zero = 0;
    record.size = tfos__feed_record_size(body_size);
    record.body_size = body_size;
    memcpy(space, &record, sizeof record);
}

uint64_t tfos__feed_batch_encoder_schema_size(const struct tfos__feed_batch_encoder *encoder)
{
    return tfos__feed_record_size(tfos__buffer_size(&encoder->body));
}

uint64_t tfos__feed_batch_encoder_batch_size(const struct tfos__feed_batch_encoder *encoder)
{
    return tfos__feed_record_size(encoder->plan.body_size);
}

void tfos__feed_batch_encoder_put_schema(const struct tfos__feed_batch_encoder *encoder,
                                         const struct tfos__feed_record *head, uint8_t *space)
{
    struct tfos__feed_record record = *head;

    record.rows = 0;
    put_head(&record, TFOS__FEED_RECORD_SCHEMA, tfos__buffer_size(&encoder->body), space);
    size_t size = tfos__buffer_size(&encoder->body);
    memcpy(space + sizeof record, encoder->body.data, size);
    memset(space + sizeof record + size, 0, tfos__feed_record_pad(size) - size);
}

void tfos__feed_batch_encoder_put_batch(struct tfos__feed_batch_encoder *encoder,
                                        const struct tfos__feed_record *head, uint8_t *space)
{
    put_head(head, TFOS__FEED_RECORD_BATCH, encoder->plan.body_size, space);
    tfos__feed_batch_write(&encoder->plan, &encoder->schema, space + sizeof *head);
}

void tfos__feed_batch_encoder_put_piece(const struct tfos__feed_record *head, uint64_t place,
                                        const uint8_t *data, uint64_t size, uint8_t *space)
{
    struct tfos__feed_record record = *head;

    record.row = (int64_t)place;
    record.rows = 0;
    put_head(&record, TFOS__FEED_RECORD_PIECE, size, space);
    memcpy(space + sizeof record, data, size);
    memset(space + sizeof record + size, 0, tfos__feed_record_pad(size) - size);
}

void tfos__feed_batch_encoder_put_end_of_pieces(const struct tfos__feed_record *head,
                                                uint8_t *space)
{
    put_head(head, TFOS__FEED_RECORD_BATCH, 0, space);
}

void tfos__feed_batch_encoder_clear(struct tfos__feed_batch_encoder *encoder)
{
    tfos__feed_schema_clear(&encoder->schema);
    tfos__buffer_clear(&encoder->body);
    tfos__buffer_clear(&encoder->scratch);
    tfos__feed_batch_plan_clear(&encoder->plan);
}
