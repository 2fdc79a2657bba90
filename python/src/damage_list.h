// SPDX-License-Identifier: Apache-2.0
/// Damage that a reader passes over, noted without the GIL until Python asks for it.
#ifndef TFOS_PYTHON_DAMAGE_LIST_H
#define TFOS_PYTHON_DAMAGE_LIST_H

#include <Python.h>
#include <tfos/record.h>

/// All zero is an empty one.
struct tfos__damage_list {
    struct tfos__damage_note *first, *last; ///< owned
    uint64_t lost;                          ///< those for which there was no memory
};

/// The `on_damage` of a reader whose context is the list.
void tfos__damage_list_add(void *list, const struct tfos_record_damage *damage);

/// A list of (kind, offset, size, message) of what was added since the last call, which forgets it.
/// NULL with an exception.
PyObject *tfos__damage_list_take(struct tfos__damage_list *list);

void tfos__damage_list_clear(struct tfos__damage_list *list);

#endif
