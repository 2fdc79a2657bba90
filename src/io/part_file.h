// SPDX-License-Identifier: Apache-2.0
/// Files that have a hidden name beside their own until they are whole: parts.
#ifndef TFOS_IO_PART_FILE_H
#define TFOS_IO_PART_FILE_H

#include <tfos/file_system.h>

/// A name for the part of the file `name`, which no other has, also not of another host's. NULL: no
/// memory. For tfos__free().
char *tfos__io_part_make_name(const char *name);

/// Whether certainly nobody writes a part.
typedef bool tfos__io_part_check(const char *part);

/// Deletes the parts that killed processes have left in the folder of `own`, a part that was made
/// just now: those for which `is_abandoned` says so and to which nothing was written in the hour
/// before. A process looks into a folder once an hour, and not at all of a very large one. A
/// failure leaves them there.
void tfos__io_parts_clean(const char *own, tfos__io_part_check *is_abandoned);

#endif
