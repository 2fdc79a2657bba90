// SPDX-License-Identifier: Apache-2.0
/// Comparing names without regard to letter case.
#ifndef TFOS_BASE_LETTER_CASE_H
#define TFOS_BASE_LETTER_CASE_H

#include <tfos/stream.h>

#include "base/buffer.h"

/// Appends the text to `out` in a form that is equal for texts that differ in letter case only, as
/// Java's equalsIgnoreCase() defines it. Only ASCII letters are folded where the text is not UTF-8
/// or the machine lacks the locale C.UTF-8.
enum tfos_status tfos__fold_case(struct tfos_view text, struct tfos__buffer *out,
                                 struct tfos_error *err);

#endif
