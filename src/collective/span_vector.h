// SPDX-License-Identifier: Apache-2.0
/// Spans of elements as one vector.
#ifndef TFOS_COLLECTIVE_SPAN_VECTOR_H
#define TFOS_COLLECTIVE_SPAN_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <tfos/collective.h>
#include <tfos/status.h>

struct tfos__collective_vector {
    const struct tfos_collective_span *spans; ///< borrowed
    int64_t *ends; ///< owned; of each span, in elements from the vector's beginning
    int64_t span_count;
    int64_t count; ///< elements
    size_t element_size;
};

/// INVALID for a span without memory or with a negative count, or a sum beyond what a vector holds.
enum tfos_status tfos__collective_vector_init(struct tfos__collective_vector *vector,
                                              const struct tfos_collective_span *spans,
                                              int64_t span_count, size_t element_size,
                                              struct tfos_error *err);
void tfos__collective_vector_clear(struct tfos__collective_vector *vector);

/// The place of byte `offset`, and how many bytes follow it in its span.
unsigned char *tfos__collective_vector_at(const struct tfos__collective_vector *vector,
                                          int64_t offset, int64_t *size);

/// Copies `count` elements from element `begin` on out of the vector, or into it.
void tfos__collective_vector_read(const struct tfos__collective_vector *vector, int64_t begin,
                                  int64_t count, void *data);
void tfos__collective_vector_write(const struct tfos__collective_vector *vector, int64_t begin,
                                   int64_t count, const void *data);

#endif
