// SPDX-License-Identifier: Apache-2.0
/// Runs of varints, as a packed field has them.
#ifndef TFOS_RECORD_VARINTS_H
#define TFOS_RECORD_VARINTS_H

#include "record/wire.h"

/// How many varints end in these bytes.
size_t tfos__varints_count(struct tfos_view packed);

/// Decodes up to `limit` varints and says in `*count` how many. False: there is a place that is
/// none.
bool tfos__varints_decode(struct tfos__wire *wire, uint64_t *values, size_t limit, size_t *count);

/// The same on any CPU: tfos__varints_decode() takes the fastest way that the CPU has.
bool tfos__varints_decode_plain(struct tfos__wire *wire, uint64_t *values, size_t limit,
                                size_t *count);

#endif
