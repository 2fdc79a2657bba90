// SPDX-License-Identifier: Apache-2.0
/// tfos record convert from and to Parquet and Arrow IPC.
#ifndef TFOS_CLI_COLUMNAR_CONVERSION_H
#define TFOS_CLI_COLUMNAR_CONVERSION_H

#include "record_options.h"

/// Converts between the formats "tfrecord" and "parquet" or "arrow". Returns an exit status only
/// where it cannot begin: this process becomes Python's.
int convert_columnar(const struct record_options *options, const char *from, const char *to);

#endif
