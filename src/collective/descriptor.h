// SPDX-License-Identifier: Apache-2.0
/// What an operation is: what ranks compare before they exchange data, in shared memory and as the
/// header of a message over TCP (docs/protocol.md, "Collectives").
#ifndef TFOS_COLLECTIVE_DESCRIPTOR_H
#define TFOS_COLLECTIVE_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/collective.h>
#include <tfos/status.h>

#define TFOS__COLLECTIVE_NAME_LIMIT 255  ///< bytes of an operation's name
#define TFOS__COLLECTIVE_HEADER_SIZE 292 ///< bytes of a descriptor over TCP
#define TFOS__COLLECTIVE_TEXT_SIZE 512   ///< room for a descriptor in words

enum tfos__collective_kind {
    TFOS__COLLECTIVE_ALL_REDUCE = 1,
    TFOS__COLLECTIVE_BROADCAST,
    TFOS__COLLECTIVE_ALL_GATHER,
    TFOS__COLLECTIVE_REDUCE_SCATTER,
    TFOS__COLLECTIVE_BARRIER,
    TFOS__COLLECTIVE_PUSH_PULL ///< of parameters: not compared with other ranks', and never sent
};

struct tfos__collective_descriptor {
    uint64_t sequence; ///< of the operation in its group, from 1
    int64_t count;     ///< elements; of an all-gather this rank's, which may differ
    uint64_t digest;   ///< of a reduce-scatter's counts; else 0
    uint8_t kind, dtype, reduction, root; ///< 0 where the kind has none
    uint8_t is_gpu; ///< 1: the elements are in GPU memory, and go by NCCL; else 0
    char name[TFOS__COLLECTIVE_NAME_LIMIT + 1];
};

/// Bytes of an element; 0 for strings and what is no dtype.
size_t tfos__collective_element_size(enum tfos_dtype dtype);

/// Whether elements can be reduced.
bool tfos__collective_is_reducible(enum tfos_dtype dtype);

/// Whether both are the same operation.
bool tfos__collective_descriptor_matches(const struct tfos__collective_descriptor *left,
                                         const struct tfos__collective_descriptor *right);

/// `all-reduce "gradients" (sum of 1000 float32, operation 17)`; returns `text`.
const char *tfos__collective_descriptor_print(const struct tfos__collective_descriptor *descriptor,
                                              char text[TFOS__COLLECTIVE_TEXT_SIZE]);

/// `all-reduce "gradients"`; returns `text`.
const char *tfos__collective_descriptor_label(const struct tfos__collective_descriptor *descriptor,
                                              char text[TFOS__COLLECTIVE_TEXT_SIZE]);

void tfos__collective_descriptor_encode(const struct tfos__collective_descriptor *descriptor,
                                        unsigned char bytes[TFOS__COLLECTIVE_HEADER_SIZE]);

/// CORRUPT names the field that cannot be.
enum tfos_status
tfos__collective_descriptor_decode(const unsigned char bytes[TFOS__COLLECTIVE_HEADER_SIZE],
                                   struct tfos__collective_descriptor *descriptor,
                                   struct tfos_error *err);

#endif
