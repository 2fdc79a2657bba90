// SPDX-License-Identifier: Apache-2.0
/// What Python hears of a reader: its counts, and the damage that it passes over, noted until asked
/// for.
#ifndef TFOS_PYTHON_DAMAGE_LIST_H
#define TFOS_PYTHON_DAMAGE_LIST_H

#include <Python.h>
#include <tfos/record.h>

/// The `on_damage` of a reader whose context is a Python list: adds (kind, offset, size, message).
/// The caller does not hold the GIL. What cannot be added is written to stderr, as Python does it.
void tfos__py_damage_list_add(void *list, const struct tfos_record_damage *damage);

/// (records, bytes, damages, skipped bytes). NULL with an exception.
PyObject *tfos__py_record_counts_tuple(const struct tfos_record_counts *counts);

#endif
