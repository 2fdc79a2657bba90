// SPDX-License-Identifier: Apache-2.0
// Types are made of the classes' tables when the module is loaded.
#include "class.h"
#include "handle.h"

#include <string.h>

static struct tfos__py_class *const classes[] = {
    &tfos__py_rendezvous_class,     &tfos__py_node_class,           &tfos__py_feed_writer_class,
    &tfos__py_result_iterator_class, &tfos__py_arrow_batch_class,    &tfos__py_trainer_class,
    &tfos__py_feed_reader_class,    &tfos__py_dataset_class,        &tfos__py_example_reader_class,
    &tfos__py_example_writer_class, &tfos__py_record_dataset_class, &tfos__py_file_writer_class,
};

static PyMethodDef *const functions[] = {
    tfos__py_rendezvous_functions, tfos__py_node_functions,       tfos__py_schema_functions,
    tfos__py_file_name_functions,  tfos__py_conversion_functions,
};

#define CLASS_COUNT (sizeof(classes) / sizeof(classes[0]))

const struct tfos__py_class *tfos__py_class_of(PyTypeObject *type)
{
    size_t i = 0;

    while (i + 1 < CLASS_COUNT && classes[i]->type != type)
        i++;
    return classes[i];
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)type;
    (void)args;
    (void)kwargs;
    PyErr_SetString(PyExc_TypeError,
                    "a FeedReader comes from Trainer.open_feed(), a ResultIterator "
                    "from FeedWriter.results(), an ArrowBatch from result_batches()");
    return NULL;
}

static PyObject *iterate(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

/// Adds a class to the module under the last part of its name. -1 with an exception.
static int add(PyObject *module, struct tfos__py_class *class)
{
    PyType_Slot slots[9] = {{Py_tp_doc, (void *)(uintptr_t)class->doc}};
    PyType_Spec spec = {.name = class->name,
                        .basicsize = class->size,
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};
    PyType_Slot *slot = &slots[1];
    PyObject *type = NULL;

    *slot++ = (PyType_Slot){Py_tp_new, class->init ? tfos__py_handle_new : refuse_new};
    *slot++ = (PyType_Slot){Py_tp_dealloc, class->dealloc ? class->dealloc : tfos__py_handle_dealloc};
    if (class->init)
        *slot++ = (PyType_Slot){Py_tp_init, class->init};
    if (class->methods)
        *slot++ = (PyType_Slot){Py_tp_methods, class->methods};
    if (class->properties)
        *slot++ = (PyType_Slot){Py_tp_getset, class->properties};
    if (class->next) {
        *slot++ = (PyType_Slot){Py_tp_iter, iterate};
        *slot++ = (PyType_Slot){Py_tp_iternext, class->next};
    }
    type = PyType_FromSpec(&spec);
    if (!type)
        return -1;
    class->type = (PyTypeObject *)type;
    Py_INCREF(type);
    if (PyModule_AddObject(module, strrchr(class->name, '.') + 1, type) == 0)
        return 0;
    Py_DECREF(type);
    return -1;
}

int tfos__py_classes_add(PyObject *module)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < CLASS_COUNT; i++)
        result = add(module, classes[i]);
    for (size_t i = 0; result == 0 && i < sizeof(functions) / sizeof(functions[0]); i++)
        result = PyModule_AddFunctions(module, functions[i]);
    return result;
}

void tfos__py_class_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}
