// SPDX-License-Identifier: Apache-2.0
/// Objects that own a handle of the library: opened by __init__, used by calls without the GIL,
/// closed by close(), by the end of a with statement or with the last reference. Each of their
/// classes is a struct that begins with this one; its file adds a constructor and the calls.
#ifndef TFOS_PYTHON_HANDLE_H
#define TFOS_PYTHON_HANDLE_H

#include "use_guard.h"

#include <Python.h>
#include <tfos/status.h>

struct tfos__py_handle;

/// What the objects of one class have in common.
struct tfos__py_handle_kind {
    const char *name;  ///< for messages
    const char *state; ///< what __init__ makes of it: "opened", "started"
    bool is_exclusive; ///< it belongs to one thread at a time
    /// Closes `object`, which may be NULL. Called once, with the GIL held and nobody inside.
    void (*close)(struct tfos__py_handle *handle, void *object);
    /// Ends what would keep others inside, if not NULL. Called before close(), with the GIL held
    /// and the gate shut, when there is an object.
    void (*interrupt)(struct tfos__py_handle *handle, void *object);
};

struct tfos__py_handle {
    PyObject_HEAD
    const struct tfos__py_handle_kind *kind;
    struct tfos__py_guard gate;
    void *object; ///< of the library; owned; NULL before it was opened and after it was closed
};

/// The object of a tp_new. NULL with an exception.
PyObject *tfos__py_handle_new(PyTypeObject *class, const struct tfos__py_handle_kind *kind);

/// For an __init__: -1 with InvalidError when it was opened or closed before.
int tfos__py_handle_check_new(const struct tfos__py_handle *handle);

/// The end of an __init__: takes over `object` unless opening it has failed; -1 with an exception
/// then.
int tfos__py_handle_adopt(struct tfos__py_handle *handle, void *object, enum tfos_status status,
                       const struct tfos_error *err);

/// Enters for a call. -1 with an exception when it is not open, or belongs to another thread now.
int tfos__py_handle_enter(struct tfos__py_handle *handle);
void tfos__py_handle_leave(struct tfos__py_handle *handle);

/// Leaves after a call of the library: None, or its exception.
PyObject *tfos__py_handle_conclude(struct tfos__py_handle *handle, enum tfos_status status,
                                const struct tfos_error *err);

/// The same for one that gives a text, which is freed.
PyObject *tfos__py_handle_conclude_text(struct tfos__py_handle *handle, char *text,
                                     enum tfos_status status, const struct tfos_error *err);

/// A call of the library that waits for a text; AGAIN after the timeout.
typedef enum tfos_status tfos__py_handle_waiter(void *object, int64_t timeout_ms, char **text,
                                             struct tfos_error *err);

/// The method `function(timeout_ms)`: waits in slices for a text; None after the timeout.
PyObject *tfos__py_handle_wait_text(PyObject *self, const char *function, PyObject *args,
                                 PyObject *kwargs, tfos__py_handle_waiter *wait);

/// Methods and slots of every class: close() and __exit__(), __enter__(), tp_dealloc.
PyObject *tfos__py_handle_close(PyObject *self, PyObject *unused);
PyObject *tfos__py_handle_enter_context(PyObject *self, PyObject *unused);
void tfos__py_handle_dealloc(PyObject *self);

#endif
