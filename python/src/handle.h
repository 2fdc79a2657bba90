// SPDX-License-Identifier: Apache-2.0
/// The classes of the extension, each of which is a table, and the handles of the library that most
/// of their objects own: opened by __init__, used by calls without the GIL, closed by close(), by
/// the end of a with statement or with the last reference. The caller holds the GIL.
#ifndef TFOS_PYTHON_HANDLE_H
#define TFOS_PYTHON_HANDLE_H

#include <Python.h>

#include <stdbool.h>
#include <tfos/status.h>
#include <tfos/wait.h>

#include "parameter.h"
#include "use_guard.h"

struct tfos__py_handle;

struct tfos__py_class {
    const char *name; ///< with its module
    const char *doc;
    int size; ///< of an object
    PyMethodDef *methods;
    PyGetSetDef *properties;
    initproc init;      ///< NULL: only the extension makes such objects
    destructor dealloc; ///< NULL: the object is a handle and has nothing more
    iternextfunc next;  ///< of iterators
    PyTypeObject *type; ///< set when the module is made; kept until the process ends

    // Of classes with init(), whose objects begin with a struct tfos__py_handle:
    const char *label; ///< for messages
    bool is_exclusive; ///< an object belongs to one thread at a time
    /// Ends what would keep other threads in a call, if not NULL. Called before close(), with the
    /// GIL held, when there is an object.
    void (*interrupt)(struct tfos__py_handle *handle, void *object);
    /// Closes `object`, which may be NULL. Called once, with the GIL held, while no call is in it.
    void (*close)(struct tfos__py_handle *handle, void *object);
};

extern struct tfos__py_class tfos__py_rendezvous_class, tfos__py_node_class,
    tfos__py_feed_writer_class, tfos__py_result_iterator_class, tfos__py_arrow_batch_class,
    tfos__py_trainer_class, tfos__py_feed_reader_class, tfos__py_dataset_class,
    tfos__py_example_reader_class, tfos__py_example_writer_class, tfos__py_record_dataset_class,
    tfos__py_file_writer_class, tfos__py_file_reader_class, tfos__py_collective_class,
    tfos__py_gpu_class;

extern PyMethodDef tfos__py_rendezvous_functions[], tfos__py_node_functions[],
    tfos__py_schema_functions[], tfos__py_file_name_functions[], tfos__py_conversion_functions[],
    tfos__py_gpu_functions[];

/// Adds all classes and functions to the module. -1 with an exception.
int tfos__py_classes_add(PyObject *module);

/// The flags and function of a method that takes keywords.
#define TFOS__KEYWORDS(function)                                                                   \
    (PyCFunction)(void (*)(void))(function), METH_VARARGS | METH_KEYWORDS

/// The last step of a dealloc: frees the object and lets go of its class.
void tfos__py_class_free(PyObject *self);

struct tfos__py_handle {
    PyObject_HEAD
    const struct tfos__py_class *class;
    struct tfos__py_guard guard;
    void *object; ///< of the library; owned; NULL before it was opened and after it was closed
};

/// The tp_dealloc of handles, and the methods that all have: close(), which is __exit__() too, and
/// __enter__().
void tfos__py_handle_dealloc(PyObject *self);
PyObject *tfos__py_handle_close(PyObject *self, PyObject *unused);
PyObject *tfos__py_handle_enter_context(PyObject *self, PyObject *unused);

#define TFOS__CLOSE_METHODS(doc)                                                                   \
    {"close", tfos__py_handle_close, METH_NOARGS, doc},                                            \
        {"__enter__", tfos__py_handle_enter_context, METH_NOARGS, NULL},                           \
    {                                                                                              \
        "__exit__", tfos__py_handle_close, METH_VARARGS, doc                                       \
    }

/// A new object of a class with init() that is yet to be given its object. NULL with an exception.
PyObject *tfos__py_handle_new(const struct tfos__py_class *class);

/// For an __init__ that reads its arguments before the call: -1 with InvalidError when it was
/// opened or closed before.
int tfos__py_handle_check_new(const struct tfos__py_handle *handle);

/// Enters for a call that keeps the GIL. -1 with an exception when it is not open, or another
/// thread uses one that is exclusive.
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
