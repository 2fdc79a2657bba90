// SPDX-License-Identifier: Apache-2.0
// A list in the order of the file.
#include "damage_list.h"
#include "error.h"

#include <stdlib.h>
#include <string.h>

struct tfos__damage_note {
    struct tfos__damage_note *next;
    struct tfos_record_damage damage; ///< its message is `text`
    char text[];
};

void tfos__damage_list_add(void *object, const struct tfos_record_damage *damage)
{
    struct tfos__damage_list *list = object;
    size_t size = strlen(damage->message) + 1;
    struct tfos__damage_note *note = malloc(sizeof(*note) + size);

    if (note == NULL) {
        list->lost++;
        return;
    }
    note->next = NULL;
    note->damage = *damage;
    memcpy(note->text, damage->message, size);
    if (list->last != NULL)
        list->last->next = note;
    else
        list->first = note;
    list->last = note;
}

static int append_note(PyObject *notes, const struct tfos__damage_note *note)
{
    PyObject *tuple = Py_BuildValue("(sKKs)", tfos_record_damage_text(note->damage.kind),
                                    (unsigned long long)note->damage.offset,
                                    (unsigned long long)note->damage.size, note->text);
    int result = tuple != NULL ? PyList_Append(notes, tuple) : -1;

    Py_XDECREF(tuple);
    return result;
}

PyObject *tfos__damage_list_take(struct tfos__damage_list *list)
{
    PyObject *notes = NULL;

    if (list->lost > 0)
        return tfos__raise_format(TFOS_NO_MEMORY, "record: no memory to note damage");
    notes = PyList_New(0);
    for (struct tfos__damage_note *note = list->first; notes != NULL && note != NULL;
         note = note->next)
        if (append_note(notes, note) < 0)
            Py_CLEAR(notes);
    if (notes != NULL)
        tfos__damage_list_clear(list);
    return notes;
}

void tfos__damage_list_clear(struct tfos__damage_list *list)
{
    for (struct tfos__damage_note *note = list->first, *next; note != NULL; note = next) {
        next = note->next;
        free(note);
    }
    *list = (struct tfos__damage_list){0};
}
