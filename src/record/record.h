// SPDX-License-Identifier: Apache-2.0
/// What the library calls of record beyond its public headers.
#ifndef TFOS_RECORD_RECORD_H
#define TFOS_RECORD_RECORD_H

#include <tfos/example.h>
#include <tfos/record.h>

/// Where the frame of a record of the last call begins. `record` is one that it gave out.
uint64_t tfos__record_reader_offset(const struct tfos_record_reader *reader,
                                    struct tfos_view record);

/// Bytes of the values of the rows so far, as they stand in the columns.
uint64_t tfos__record_decoder_size(const struct tfos_example_decoder *decoder);

#endif
