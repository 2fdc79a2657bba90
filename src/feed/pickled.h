// SPDX-License-Identifier: Apache-2.0
/// Columns whose values only Python's pickle can read again, which runs what they say.
#ifndef TFOS_FEED_PICKLED_H
#define TFOS_FEED_PICKLED_H

#include <tfos/status.h>

#include "feed/schema.h"

/// UNSUPPORTED, naming column and type, when a column, at any depth, or the rows are of a type that
/// is not known to be read without pickle. The schema is none then.
enum tfos_status tfos__feed_schema_refuse_pickles(struct tfos__feed_schema *schema,
                                                  struct tfos_error *err);

#endif
