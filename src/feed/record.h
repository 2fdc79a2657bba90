// SPDX-License-Identifier: Apache-2.0
/// The head of a record, as it lies in a ring and travels over TCP (docs/protocol.md, "Records").
#ifndef TFOS_FEED_RECORD_H
#define TFOS_FEED_RECORD_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define TFOS__FEED_RECORD_ALIGN 64

enum tfos__feed_record_kind {
    TFOS__FEED_RECORD_SCHEMA = 1,
    TFOS__FEED_RECORD_BATCH = 2,
    TFOS__FEED_RECORD_END = 3,
    TFOS__FEED_RECORD_FILLER = 4,
    TFOS__FEED_RECORD_MESSAGE = 5, ///< over TCP only: a JSON object
    TFOS__FEED_RECORD_PIECE = 6    ///< results only: part of the body of the batch that follows
};

struct tfos__feed_record {
    uint32_t kind;
    uint32_t zero;
    uint64_t size; ///< with this head, a multiple of 64
    int64_t feed;
    int64_t partition;
    int64_t attempt;
    int64_t row;  ///< number of the first row; rows of the partition for TFOS__FEED_RECORD_END;
                  ///< place in the body for TFOS__FEED_RECORD_PIECE
    int64_t rows; ///< rows in this record
    uint64_t body_size;
};

static_assert(sizeof(struct tfos__feed_record) == TFOS__FEED_RECORD_ALIGN,
              "the head of a record is 64 bytes");

static inline uint64_t tfos__feed_record_pad(uint64_t size)
{
    return (size + TFOS__FEED_RECORD_ALIGN - 1) & ~(uint64_t)(TFOS__FEED_RECORD_ALIGN - 1);
}

/// The size of a record whose body has `body_size` bytes.
static inline uint64_t tfos__feed_record_size(uint64_t body_size)
{
    return sizeof(struct tfos__feed_record) + tfos__feed_record_pad(body_size);
}

/// Whether the numbers of a head agree with each other.
static inline bool tfos__feed_record_is_valid(const struct tfos__feed_record *record)
{
    return record->kind >= TFOS__FEED_RECORD_SCHEMA && record->kind <= TFOS__FEED_RECORD_PIECE &&
           record->zero == 0 && record->size >= sizeof(*record) &&
           record->size % TFOS__FEED_RECORD_ALIGN == 0 &&
           record->body_size <= record->size - sizeof(*record) && record->feed >= 0 &&
           record->partition >= 0 && record->attempt >= 0 && record->row >= 0 &&
           record->rows >= 0 && record->row <= INT64_MAX - record->rows;
}

static inline bool tfos__feed_record_is_of(const struct tfos__feed_record *record, int64_t feed,
                                           int64_t partition, int64_t attempt)
{
    return record->feed == feed && record->partition == partition && record->attempt == attempt;
}

#endif
