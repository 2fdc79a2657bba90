// SPDX-License-Identifier: Apache-2.0
// Each struct is released once: by whoever imported it from its capsule, else by the capsule, else
// by the object that never exported it.
#include "arrow_batch.h"

#include "capsule.h"
#include "error.h"
#include "handle.h"

struct batch {
    PyObject_HEAD
    PyObject *schema, *array; ///< capsules; owned; NULL once exported
};

PyObject *tfos__py_arrow_batch_new(struct ArrowSchema *schema, struct ArrowArray *array)
{
    PyObject *schema_capsule = tfos__py_capsule_wrap_schema(schema),
             *array_capsule = tfos__py_capsule_wrap_array(array);
    struct batch *self = NULL;

    if (schema_capsule && array_capsule)
        self = (struct batch *)PyType_GenericAlloc(tfos__py_arrow_batch_class.type, 0);
    if (!self) {
        Py_XDECREF(schema_capsule);
        Py_XDECREF(array_capsule);
        return NULL;
    }
    self->schema = schema_capsule;
    self->array = array_capsule;
    return (PyObject *)self;
}

static PyObject *export(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct batch *self = (struct batch *)object;
    PyObject *pair = NULL;

    (void)args; // a requested schema, which a producer need not follow
    (void)kwargs;
    if (!self->schema)
        return tfos__py_raise_format(TFOS_INVALID, "arrow batch: it was given out before");
    pair = PyTuple_Pack(2, self->schema, self->array);
    if (pair) {
        Py_CLEAR(self->schema);
        Py_CLEAR(self->array);
    }
    return pair;
}

static void dealloc(PyObject *object)
{
    struct batch *self = (struct batch *)object;

    Py_XDECREF(self->schema);
    Py_XDECREF(self->array);
    tfos__py_class_free(object);
}

static PyMethodDef methods[] = {
    {"__arrow_c_array__", TFOS__KEYWORDS(export), "The batch as two capsules; once."},
    {0},
};

struct tfos__py_class tfos__py_arrow_batch_class = {
    .name = "tensorflowonspark._tfos.ArrowBatch",
    .doc = "An Arrow batch, to be imported once, such as by pyarrow.record_batch().",
    .size = sizeof(struct batch),
    .methods = methods,
    .dealloc = dealloc,
};
