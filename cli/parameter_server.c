// SPDX-License-Identifier: Apache-2.0
// A parameter server without Python, which a node starts as its trainer: a server of TensorFlow's
// runtime, from the library of its Python package, on the port that the node has reserved. It
// serves until the node ends it, or dies with the node.
//
// The library brings symbols of OpenSSL's and zlib's names. RTLD_DEEPBIND keeps it to its own.
#include <dlfcn.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/trainer.h>

#include "commands.h"
#include "terminal.h"

#define REASON_SIZE 2000

struct TF_Server;
struct TF_Status;

/// TensorFlow's functions, as tensorflow/c/c_api.h has them. X(result, name without TF_,
/// parameters)
#define FUNCTIONS(X)                                                                               \
    X(struct TF_Status *, NewStatus, (void))                                                       \
    X(int, GetCode, (const struct TF_Status *))                                                    \
    X(const char *, Message, (const struct TF_Status *))                                           \
    X(struct TF_Server *, NewServer, (const void *server_def, size_t size, struct TF_Status *))    \
    X(void, ServerStart, (struct TF_Server *, struct TF_Status *))                                 \
    X(void, ServerJoin, (struct TF_Server *, struct TF_Status *))

struct tensorflow {
#define X(result, name, parameters) result(*name) parameters;
    FUNCTIONS(X)
#undef X
};

// ---- ServerDef, a protobuf message: {cluster = 1 {job = 1 {name = 1, tasks = 2 {key = 1, value =
// 2}}}, job_name = 2, task_index = 3, protocol = 5}

enum { CLUSTER = 1, JOB_NAME = 2, TASK_INDEX = 3, PROTOCOL = 5 };
enum { CLUSTER_JOB = 1, NAME = 1, TASKS = 2, KEY = 1, VALUE = 2 };

struct message {
    unsigned char *data; ///< owned
    size_t size;
    bool has_failed; ///< no memory
};

static void append(struct message *message, const void *data, size_t size)
{
    unsigned char *grown =
        message->has_failed ? NULL : realloc(message->data, message->size + size);
    if (!grown) {
        message->has_failed = true;
        return;
    }
    memcpy(grown + message->size, data, size);
    message->data = grown;
    message->size += size;
}

static void append_varint(struct message *message, uint64_t number)
{
    unsigned char bytes[10];
    size_t count = 0;
    do {
        bytes[count] = (unsigned char)((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
        number >>= 7;
        count++;
    } while (number > 0);
    append(message, bytes, count);
}

static void append_number(struct message *message, unsigned field, uint64_t number)
{
    append_varint(message, field << 3);
    append_varint(message, number);
}

static void append_bytes(struct message *message, unsigned field, const void *data, size_t size)
{
    append_varint(message, field << 3 | 2);
    append_varint(message, size);
    append(message, data, size);
}

/// Appends `inner` as a field, and frees it.
static void append_message(struct message *message, unsigned field, struct message *inner)
{
    message->has_failed |= inner->has_failed;
    append_bytes(message, field, inner->size > 0 ? inner->data : (const void *)"", inner->size);
    free(inner->data);
}

static void append_job(struct message *cluster, const char *name, const json_t *addresses)
{
    struct message job = {0};
    append_bytes(&job, NAME, name, strlen(name));
    for (size_t i = 0; i < json_array_size(addresses); i++) {
        const char *address = json_string_value(json_array_get(addresses, i));
        struct message task = {0};
        append_number(&task, KEY, i);
        append_bytes(&task, VALUE, address ? address : "", address ? strlen(address) : 0);
        append_message(&job, TASKS, &task);
    }
    append_message(cluster, CLUSTER_JOB, &job);
}

/// The message for this node, by its context.
static struct message make_server_def(const json_t *context)
{
    static const char protocol[] = "grpc";
    const char *job_name = json_string_value(json_object_get(context, "job_name"));
    struct message server = {0}, cluster = {0};
    const char *name;
    json_t *addresses;
    json_object_foreach(json_object_get(context, "cluster_spec"), name, addresses)
    {
        // It takes no part in training, so TF_CONFIG has none either.
        if (strcmp(name, "evaluator") != 0)
            append_job(&cluster, name, addresses);
    }
    append_message(&server, CLUSTER, &cluster);
    append_bytes(&server, JOB_NAME, job_name ? job_name : "", job_name ? strlen(job_name) : 0);
    append_number(&server, TASK_INDEX,
                  (uint64_t)json_integer_value(json_object_get(context, "task_index")));
    append_bytes(&server, PROTOCOL, protocol, strlen(protocol));
    return server;
}

// ---- the server

/// Says why the server does not serve, here and to the driver. Returns the exit status.
__attribute__((format(printf, 2, 3))) static int fail(struct tfos_trainer *trainer,
                                                      const char *format, ...)
{
    char reason[REASON_SIZE];
    struct tfos_error err;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    fprintf(stderr, "tfos: %s\n", reason);
    if (tfos_trainer_fail(trainer, reason, &err) < 0)
        say_error(&err);
    return 1;
}

static const char *load(const char *path, struct tensorflow *tensorflow)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define X(result, name, parameters) {"TF_" #name, offsetof(struct tensorflow, name)},
        FUNCTIONS(X)
#undef X
    };
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
    for (size_t i = 0; library && i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol)
            return dlerror();
        memcpy((char *)tensorflow + functions[i].offset, &symbol, sizeof(symbol));
    }
    return library ? NULL : dlerror();
}

static int serve(struct tfos_trainer *trainer, const struct tensorflow *tensorflow)
{
    json_t *context = json_loads(tfos_trainer_context(trainer), 0, NULL);
    struct message server_def = make_server_def(context);
    struct TF_Status *status = tensorflow->NewStatus();
    json_decref(context);
    if (server_def.has_failed || !status)
        return fail(trainer, "parameter server: no memory");
    struct TF_Server *server = tensorflow->NewServer(server_def.data, server_def.size, status);
    free(server_def.data);
    if (tensorflow->GetCode(status) == 0)
        tensorflow->ServerStart(server, status);
    if (tensorflow->GetCode(status) == 0)
        tensorflow->ServerJoin(server, status); // the node ends this process
    return fail(trainer, "parameter server: TensorFlow's server does not serve: %s",
                tensorflow->Message(status));
}

int run_parameter_server(int argc, char **argv)
{
    struct tensorflow tensorflow;
    struct tfos_trainer *trainer;
    struct tfos_error err;
    if (argc != 1)
        return refuse_usage("ps takes TensorFlow's library, and is started by a node");
    if (tfos_trainer_open(TFOS_TRAINER_FD, &trainer, &err) < 0)
        return say_error(&err);
    const char *reason = load(argv[0], &tensorflow);
    int status = reason
                     ? fail(trainer,
                            "parameter server: %s is no library of TensorFlow's that it can use: "
                            "%s; it needs that of TensorFlow 2.15 or later on this machine",
                            argv[0], reason)
                     : serve(trainer, &tensorflow);
    tfos_trainer_close(trainer);
    return status;
}
