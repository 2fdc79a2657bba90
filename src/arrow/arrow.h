// SPDX-License-Identifier: Apache-2.0
/// Arrow's types, schemas and arrays, for all modules but base: the only code that knows format
/// strings. The command and the bindings may include it too: it has no state, so that the Python
/// extension, which links to the shared library and its few names, brings a copy of its own.
#ifndef TFOS_ARROW_ARROW_H
#define TFOS_ARROW_ARROW_H

#include "arrow/array.h"
#include "arrow/arrow_schema.h"
#include "arrow/builder.h"
#include "arrow/decimal.h"
#include "arrow/type.h"

#endif
