// SPDX-License-Identifier: Apache-2.0
/// What both writers of batches do, the feed's writer and the reader that answers: schema records
/// when the schema changes, and batches cut to the ring.
#ifndef TFOS_FEED_SENDER_H
#define TFOS_FEED_SENDER_H

#include <stdbool.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "feed/batch.h"
#include "feed/record.h"
#include "feed/schema.h"

struct tfos__feed_batch_encoder {
    struct tfos__feed_schema schema; ///< of the batch at hand
    struct tfos__buffer body;        ///< its schema record's body
    struct tfos__buffer scratch;
    bool is_sent;         ///< whether the peer has the schema
    bool refuses_pickles; ///< columns that only Python's pickle can read are refused
    struct tfos__feed_batch_plan plan;
};

/// Takes up the schema of the next batch.
enum tfos_status tfos__feed_batch_encoder_begin(struct tfos__feed_batch_encoder *encoder,
                                                const struct ArrowSchema *schema,
                                                const struct ArrowArray *array,
                                                struct tfos_error *err);

/// The size of the schema's record.
uint64_t tfos__feed_batch_encoder_schema_size(const struct tfos__feed_batch_encoder *encoder);

/// Writes a schema record to `space`; `head` names feed, partition and attempt.
void tfos__feed_batch_encoder_put_schema(const struct tfos__feed_batch_encoder *encoder,
                                         const struct tfos__feed_record *head, uint8_t *space);

/// The size of the planned batch's record.
uint64_t tfos__feed_batch_encoder_batch_size(const struct tfos__feed_batch_encoder *encoder);

/// Writes the planned batch; `head` has the row and rows too.
void tfos__feed_batch_encoder_put_batch(struct tfos__feed_batch_encoder *encoder,
                                        const struct tfos__feed_record *head, uint8_t *space);

/// Writes a record with `size` bytes of a body, of which `place` bytes came before.
void tfos__feed_batch_encoder_put_piece(const struct tfos__feed_record *head, uint64_t place,
                                        const uint8_t *data, uint64_t size, uint8_t *space);

/// Writes the record of a batch whose body came in pieces.
void tfos__feed_batch_encoder_put_end_of_pieces(const struct tfos__feed_record *head,
                                                uint8_t *space);

void tfos__feed_batch_encoder_clear(struct tfos__feed_batch_encoder *encoder);

#endif
