// SPDX-License-Identifier: Apache-2.0
/// What the library calls of spark beyond its public headers.
#ifndef TFOS_SPARK_SPARK_H
#define TFOS_SPARK_SPARK_H

#include <tfos/unsafe_row.h>

int64_t tfos__spark_row_batch_row_count(const struct tfos_row_batch *batch);

#endif
