// SPDX-License-Identifier: Apache-2.0
/// Encodes values of a column as a feature's list.
#ifndef TFOS_RECORD_LIST_ENCODER_H
#define TFOS_RECORD_LIST_ENCODER_H

#include "base/memory.h"
#include "record/record_schema.h"

/// Checks that a message with this column in it can have `size` bytes: protobuf's limit is 2 GiB.
/// INVALID names the column.
enum tfos_status tfos__record_check_message_size(const struct tfos__record_field *field,
                                                 size_t size, struct tfos_error *err);

/// Appends the BytesList, FloatList or Int64List of a span of `values`. `loss` counts the numbers
/// that are rounded; where it is NULL they are refused. INVALID names the column.
enum tfos_status tfos__record_list_encode(const struct tfos__record_field *field,
                                          const struct ArrowArray *values,
                                          struct tfos__arrow_span span, struct tfos__buffer *out,
                                          struct tfos_example_loss *loss, struct tfos_error *err);

#endif
