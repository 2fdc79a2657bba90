// SPDX-License-Identifier: Apache-2.0
/// Appends the values of a feature's list to a column. AGAIN, from any of these functions: the
/// column's 32-bit offsets reach no further. After that and after a failure the column is to be
/// truncated.
#ifndef TFOS_RECORD_LIST_DECODER_H
#define TFOS_RECORD_LIST_DECODER_H

#include "record/record_schema.h"

/// Appends the values of a BytesList, FloatList or Int64List. A list of another kind than the
/// field's is converted: integers to a float, double or decimal that is the same number, and
/// numbers to their decimal text. An empty list fits any field.
enum tfos_status tfos__record_list_decode(const struct tfos__record_field *field,
                                          enum tfos__record_feature_kind kind,
                                          struct tfos_view list, struct tfos_error *err);

/// Appends a string or bytes.
enum tfos_status tfos__record_list_decode_bytes(const struct tfos__record_field *field,
                                                struct tfos_view bytes, struct tfos_error *err);

#endif
