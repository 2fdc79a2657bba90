// SPDX-License-Identifier: Apache-2.0
/// Values of the columns that records decode to, as JSON.
#ifndef TFOS_CLI_ARROW_JSON_H
#define TFOS_CLI_ARROW_JSON_H

#include <jansson.h>
#include <tfos/arrow.h>

/// Value `index` of an array of int64, float, string, binary, lists or structs of these. Numbers
/// that JSON does not have are the texts "nan", "inf" and "-inf"; bytes that are no text are
/// {"base64": ...}. NULL when out of memory.
json_t *arrow_value_to_json(const struct ArrowSchema *schema, const struct ArrowArray *array,
                            int64_t index);

#endif
