// SPDX-License-Identifier: Apache-2.0
// Damage is rare enough to take the GIL for.
#include "damage_list.h"

void tfos__py_damage_list_add(void *list, const struct tfos_record_damage *damage)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *note = Py_BuildValue("(sKKs)", tfos_record_damage_text(damage->kind),
                                   (unsigned long long)damage->offset,
                                   (unsigned long long)damage->size, damage->message);

    if (note == NULL || PyList_Append(list, note) < 0)
        PyErr_WriteUnraisable(list);
    Py_XDECREF(note);
    PyGILState_Release(state);
}

PyObject *tfos__py_record_counts_tuple(const struct tfos_record_counts *counts)
{
    return Py_BuildValue("(KKKK)", (unsigned long long)counts->records,
                         (unsigned long long)counts->bytes, (unsigned long long)counts->damages,
                         (unsigned long long)counts->skipped_bytes);
}
