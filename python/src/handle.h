// SPDX-License-Identifier: Apache-2.0
/// Objects that own a handle of the library: opened by __init__, used by calls without the GIL,
/// closed by close(), by the end of a with statement or with the last reference. Their structs begin
/// with this one.
#ifndef TFOS_PYTHON_HANDLE_H
#define TFOS_PYTHON_HANDLE_H

#include "class.h"
#include "parameter.h"
#include "use_guard.h"

#include <Python.h>
#include <tfos/status.h>
#include <tfos/wait.h>

struct tfos__py_handle {
    PyObject_HEAD
    const struct tfos__py_class *class;
    struct tfos__py_guard guard;
    void *object; ///< of the library; owned; NULL before it was opened and after it was closed
};

/// The tp_new and tp_dealloc of the classes, and the methods that all have: close(), which is
/// __exit__() too, and __enter__().
PyObject *tfos__py_handle_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);
void tfos__py_handle_dealloc(PyObject *self);
PyObject *tfos__py_handle_close(PyObject *self, PyObject *unused);
PyObject *tfos__py_handle_enter_context(PyObject *self, PyObject *unused);

#define TFOS__CLOSE_METHODS(doc)                                                                   \
    {"close", tfos__py_handle_close, METH_NOARGS, doc},                                            \
        {"__enter__", tfos__py_handle_enter_context, METH_NOARGS, NULL},                           \
    {                                                                                              \
        "__exit__", tfos__py_handle_close, METH_VARARGS, doc                                       \
    }

/// For an __init__ that does not call begin_open(): -1 with InvalidError when it was opened or
/// closed before.
int tfos__py_handle_check_new(const struct tfos__py_handle *handle);

/// Enters for a call that keeps the GIL. -1 with an exception when it is not open, or another thread
/// uses one that is exclusive.
int tfos__py_handle_enter(struct tfos__py_handle *handle);
void tfos__py_handle_leave(struct tfos__py_handle *handle);

/// A call of the library on a handle, without the GIL between its begin and its end.
struct tfos__py_call {
    struct tfos__py_handle *handle;
    void *object;          ///< the handle's
    PyThreadState *thread; ///< of the caller while the GIL is released
    PyObject *kept;        ///< texts of the arguments; owned
    PyObject **cause;      ///< of a failure: a file object's exception; NULL: there is none
    struct tfos__py_watch watch;
    enum tfos_status status; ///< of the call
    struct tfos_error err;
};

/// Reads the arguments of the method `function`, enters the handle and releases the GIL. false with
/// an exception.
bool tfos__py_call_begin(struct tfos__py_call *call, PyObject *self, const char *function,
                         const struct tfos__py_parameter *parameters, PyObject *args,
                         PyObject *kwargs);

/// The same for a method without arguments.
bool tfos__py_call_enter(struct tfos__py_call *call, PyObject *self);

/// The same for an __init__: for one whose arguments were read, or for a method that reads them.
bool tfos__py_call_enter_new(struct tfos__py_call *call, PyObject *self);
bool tfos__py_call_begin_new(struct tfos__py_call *call, PyObject *self, const char *function,
                             const struct tfos__py_parameter *parameters, PyObject *args,
                             PyObject *kwargs);

/// For a wait of the library: ends it for signals and close().
struct tfos_wait tfos__py_call_wait(struct tfos__py_call *call, int64_t timeout_ms);

/// Takes the GIL again, while the handle stays entered.
void tfos__py_call_resume(struct tfos__py_call *call);

/// Takes the GIL and leaves. -1 with an exception when the call has failed or was interrupted.
int tfos__py_call_leave(struct tfos__py_call *call);

/// The same for an __init__, whose handle takes over `object` unless opening it has failed.
int tfos__py_call_leave_new(struct tfos__py_call *call, void *object);

/// The result of a method: None, or a text that the library gave out; NULL with an exception.
PyObject *tfos__py_call_end(struct tfos__py_call *call);
PyObject *tfos__py_call_end_text(struct tfos__py_call *call, char *text);

/// Text of the library as a str; the text is freed. NULL with an exception.
PyObject *tfos__py_text(char *text);

/// Waits are made of short calls, so that signals are handled between them. When a wait of
/// `timeout_ms` ends on the monotonic clock in ms (negative: never), and how long its next call may
/// take: 0 after the deadline.
#define TFOS__SLICE_MS 100
int64_t tfos__py_now_ms(void);
int64_t tfos__py_deadline(int64_t timeout_ms);
int64_t tfos__py_next_slice(int64_t deadline);

/// A call of the library that waits for a text; AGAIN after the timeout.
typedef enum tfos_status tfos__py_text_waiter(void *object, int64_t timeout_ms, char **text,
                                              struct tfos_error *err);

/// The method `function(timeout_ms)`: waits in slices for a text; None after the timeout.
PyObject *tfos__py_handle_wait_text(PyObject *self, const char *function, PyObject *args,
                                    PyObject *kwargs, tfos__py_text_waiter *wait);

#endif
