// SPDX-License-Identifier: Apache-2.0
/// Batches as records (docs/protocol.md, "Records"), for the writer of a feed and for the reader
/// that answers: a schema record when the schema has changed, then the rows, cut to the ring.
///
///     begin(schema, array);
///     while (plan(array, ring_size) == TFOS_OK) {
///         reserve next_size bytes; write(head, space); commit;
///         advance();
///     }
///     reset();
///
/// Where the space is not there yet, plan() may be called again later, as long as the batch is the
/// same.
#ifndef TFOS_FEED_BATCH_ENCODER_H
#define TFOS_FEED_BATCH_ENCODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "base/memory.h"
#include "feed/copier.h"
#include "feed/record.h"
#include "feed/schema.h"

struct tfos__feed_column_plan;

/// All zero to begin with, but for the two options.
struct tfos__feed_batch_encoder {
    bool refuses_pickles; ///< option: columns that only Python's pickle can read are refused
    bool makes_pieces;    ///< option: a row that is larger than the ring goes in pieces

    struct tfos__feed_schema schema; ///< of the present batch
    struct tfos__buffer schema_body; ///< its record's body
    struct tfos__buffer scratch;
    bool is_schema_sent; ///< cleared by the user when the next ring does not have it
    int64_t row;         ///< rows of the batch that are committed

    enum tfos__feed_record_kind next_kind; ///< of the record that is planned
    uint64_t next_size, next_body_size;
    int64_t row_count; ///< rows of the batch's next record

    struct tfos__feed_column_plan *columns; ///< owned
    size_t capacity;
    uint64_t body_size;
    struct tfos__feed_copier copier;

    uint8_t *spill; ///< owned; the body of a batch that goes in pieces
    uint64_t spill_sent;
};

/// Takes up the schema of a batch. INVALID; UNSUPPORTED.
enum tfos_status tfos__feed_batch_encoder_begin(struct tfos__feed_batch_encoder *encoder,
                                                const struct ArrowSchema *schema,
                                                const struct ArrowArray *array,
                                                struct tfos_error *err);

/// Done with the batch, whether it was written to its end or not.
void tfos__feed_batch_encoder_reset(struct tfos__feed_batch_encoder *encoder);

/// Plans the next record. END after the last. INVALID, naming the column, when the array does not
/// fit the schema.
enum tfos_status tfos__feed_batch_encoder_plan(struct tfos__feed_batch_encoder *encoder,
                                               const struct ArrowArray *array, uint64_t ring_size,
                                               struct tfos_error *err);

/// Writes that record: next_size bytes. `head` has feed, partition, attempt, and the number of the
/// next row.
void tfos__feed_batch_encoder_write(struct tfos__feed_batch_encoder *encoder,
                                    const struct tfos__feed_record *head, uint8_t *space);

/// The record is committed. Gives its rows.
int64_t tfos__feed_batch_encoder_advance(struct tfos__feed_batch_encoder *encoder);

/// Plans rows [row, row + rows) of `array` as a body of `body_size` bytes, and writes that.
enum tfos_status tfos__feed_batch_encoder_measure(struct tfos__feed_batch_encoder *encoder,
                                                  const struct ArrowArray *array, int64_t row,
                                                  int64_t rows, struct tfos_error *err);
void tfos__feed_batch_encoder_write_body(struct tfos__feed_batch_encoder *encoder, uint8_t *body);

void tfos__feed_batch_encoder_clear(struct tfos__feed_batch_encoder *encoder);

#endif
