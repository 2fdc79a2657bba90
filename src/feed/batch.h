// SPDX-License-Identifier: Apache-2.0
/// A batch as a record's body (docs/protocol.md, "Records"): written with one copy for each buffer,
/// read in place.
#ifndef TFOS_FEED_BATCH_H
#define TFOS_FEED_BATCH_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

#include "feed/copy.h"
#include "feed/schema.h"

/// Where the parts of one column of a slice lie, here and in the body.
struct tfos__feed_column_plan {
    const struct ArrowArray *array;
    int64_t offset; ///< of the slice's first value in the array's buffers
    int64_t length;
    int64_t null_count;
    int64_t first;                        ///< the first of the offsets, for columns that have them
    uint64_t places[TFOS__ARROW_BUFFERS]; ///< in the body
    uint64_t sizes[TFOS__ARROW_BUFFERS];
};

/// How a slice of a batch will be written. Zeroed to begin with; used again and again, cleared at
/// the end.
struct tfos__feed_batch_plan {
    struct tfos__feed_column_plan *columns;
    size_t capacity;
    uint64_t body_size;
    struct tfos__feed_copier copier;
};

/// Plans rows [row, row + rows) of `array`. INVALID, naming the column, when the array does not fit
/// the schema.
enum tfos_status tfos__feed_batch_measure(struct tfos__feed_batch_plan *plan,
                                          const struct tfos__feed_schema *schema,
                                          const struct ArrowArray *array, int64_t row, int64_t rows,
                                          struct tfos_error *err);

/// Plans the rows from `row` on that go into the next record of a ring of `ring_size` bytes: all
/// where they need no more than half of it, else so many that a quarter holds them, but one at
/// least.
enum tfos_status tfos__feed_batch_fit(struct tfos__feed_batch_plan *plan,
                                      const struct tfos__feed_schema *schema,
                                      const struct ArrowArray *array, int64_t row,
                                      uint64_t ring_size, int64_t *rows, struct tfos_error *err);

/// Writes the body: plan->body_size bytes.
void tfos__feed_batch_write(struct tfos__feed_batch_plan *plan,
                            const struct tfos__feed_schema *schema, uint8_t *body);

void tfos__feed_batch_plan_clear(struct tfos__feed_batch_plan *plan);

/// Who is told about a decoded batch: `use`, which may be NULL, when rows of it have been used, and
/// `release` once no view of it is left.
struct tfos__feed_batch_owner {
    void (*use)(void *holder, uint64_t sequence, uint64_t rows);
    void (*release)(void *holder, uint64_t sequence);
    void *holder;
    uint64_t sequence;
};

/// Makes a view of a body of `size` bytes with `rows` rows, which the caller releases. The body may
/// be hostile and may change meanwhile: what memory safety depends on, offsets above all, is copied
/// out and checked. CORRUPT: `owner` is not called.
enum tfos_status tfos__feed_batch_decode(const struct tfos__feed_schema *schema,
                                         const uint8_t *body, uint64_t size, int64_t rows,
                                         const struct tfos__feed_batch_owner *owner,
                                         struct ArrowArray *array, struct tfos_error *err);

#endif
