// SPDX-License-Identifier: Apache-2.0
// The class ArrowBatch. Invariant: a struct is released once: by whoever imported it from its
// capsule, else by the capsule, else by the object that never gave it out.
#include "arrow_batch.h"
#include "arrow/arrow.h"
#include "classes.h"
#include "error.h"

struct batch {
    PyObject_HEAD
    PyObject *schema, *array; ///< capsules; owned; NULL once given out
};

static PyTypeObject *class; // set when the module is made, kept until the process ends

static void release_schema(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");

    tfos__arrow_schema_release(schema);
    PyMem_Free(schema);
}

static void release_array(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");

    tfos__arrow_array_release(array);
    PyMem_Free(array);
}

PyObject *tfos__py_arrow_schema_wrap(struct ArrowSchema *schema)
{
    struct ArrowSchema *moved = PyMem_Malloc(sizeof(*moved));
    PyObject *capsule = moved != NULL ? PyCapsule_New(moved, "arrow_schema", release_schema) : NULL;

    if (capsule == NULL) {
        PyMem_Free(moved);
        schema->release(schema);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    *moved = *schema;
    return capsule;
}

static PyObject *wrap_array(struct ArrowArray *array)
{
    struct ArrowArray *moved = PyMem_Malloc(sizeof(*moved));
    PyObject *capsule = moved != NULL ? PyCapsule_New(moved, "arrow_array", release_array) : NULL;

    if (capsule == NULL) {
        PyMem_Free(moved);
        array->release(array);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    *moved = *array;
    return capsule;
}

PyObject *tfos__py_arrow_batch_new(struct ArrowSchema *schema, struct ArrowArray *array)
{
    PyObject *schema_capsule = tfos__py_arrow_schema_wrap(schema), *array_capsule = wrap_array(array);
    struct batch *self = NULL;

    if (schema_capsule != NULL && array_capsule != NULL)
        self = (struct batch *)PyType_GenericAlloc(class, 0);
    if (self == NULL) {
        Py_XDECREF(schema_capsule);
        Py_XDECREF(array_capsule);
        return NULL;
    }
    self->schema = schema_capsule;
    self->array = array_capsule;
    return (PyObject *)self;
}

static PyObject *give(PyObject *object, PyObject *args, PyObject *kwargs)
{
    struct batch *self = (struct batch *)object;
    PyObject *pair = NULL;

    (void)args; // a requested schema, which a producer need not follow
    (void)kwargs;
    if (self->schema == NULL)
        return tfos__py_raise_format(TFOS_INVALID, "arrow batch: it was given out before");
    pair = PyTuple_Pack(2, self->schema, self->array);
    if (pair != NULL) {
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
    {"__arrow_c_array__", TFOS__KEYWORDS(give), "The batch as two capsules; once."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "An Arrow batch, to be imported once, such as by pyarrow.record_batch()."},
    {Py_tp_new, tfos__py_class_refuse_new},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "tensorflowonspark._tfos.ArrowBatch",
    .basicsize = sizeof(struct batch),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int tfos__py_arrow_batch_class_add(PyObject *module)
{
    class = tfos__py_class_add(module, &spec);
    return class != NULL ? 0 : -1;
}
