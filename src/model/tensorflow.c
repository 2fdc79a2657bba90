// SPDX-License-Identifier: Apache-2.0
// The library brings symbols of OpenSSL's and zlib's names. RTLD_DEEPBIND keeps it to its own. It
// starts threads, so it is never unloaded.
#include "model/tensorflow.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/shared_library.h"

#define LIBRARY "libtensorflow_cc.so.2"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tfos__model_tensorflow loaded; // guarded by the lock until it is whole
static char *loaded_folder;                  // guarded by the lock; NULL: none is loaded

static const struct tfos__library_function functions[] = {
#define X(result, name, parameters) {"TF_" #name, offsetof(struct tfos__model_tensorflow, name)},
    TFOS__MODEL_FUNCTIONS(X)
#undef X
};

static enum tfos_status find_functions(void *library, const char *path, struct tfos_error *err)
{
    const char *missing =
        tfos__find_functions(library, functions, sizeof(functions) / sizeof(functions[0]), &loaded);
    return missing
               ? tfos__fail(err, TFOS_UNSUPPORTED,
                            "model: %s has no %s: install TensorFlow 2.15 or later", path, missing)
               : TFOS_OK;
}

static enum tfos_status load(const char *folder, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    char *name = tfos__strdup(folder), *path = tfos__format("%s/" LIBRARY, folder);
    void *library = NULL;
    if (!name || !path) {
        status = tfos__no_memory(err, "model", "TensorFlow's name");
        goto free_texts;
    }
    library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
    status = library ? find_functions(library, path, err)
                     : tfos__fail(err, TFOS_UNSUPPORTED,
                                  "model: TensorFlow's library cannot be loaded: %s", dlerror());
    if (status == TFOS_OK) {
        loaded_folder = name;
        name = NULL;
    }
free_texts:
    tfos__free(name);
    tfos__free(path);
    return status;
}

enum tfos_status tfos__model_tensorflow_load(const char *folder,
                                             const struct tfos__model_tensorflow **out,
                                             struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    pthread_mutex_lock(&lock);
    if (!loaded_folder)
        status = load(folder, err);
    else if (strcmp(loaded_folder, folder) != 0)
        status = tfos__fail(err, TFOS_INVALID,
                            "model: this process has loaded TensorFlow from %s, and cannot load "
                            "that of %s as well: start the executors anew",
                            loaded_folder, folder);
    pthread_mutex_unlock(&lock);
    if (status == TFOS_OK)
        *out = &loaded;
    return status;
}

const struct tfos__model_type *tfos__model_type_of(int code)
{
    static const struct tfos__model_type types[] = {
        {1, "float32", TFOS__ARROW_FLOAT, 32},
        {2, "float64", TFOS__ARROW_FLOAT, 64},
        {3, "int32", TFOS__ARROW_INT, 32},
        {4, "uint8", TFOS__ARROW_UINT, 8},
        {5, "int16", TFOS__ARROW_INT, 16},
        {6, "int8", TFOS__ARROW_INT, 8},
        {9, "int64", TFOS__ARROW_INT, 64},
        {10, "bool", TFOS__ARROW_BOOL, 8},
        {17, "uint16", TFOS__ARROW_UINT, 16},
        {22, "uint32", TFOS__ARROW_UINT, 32},
        {23, "uint64", TFOS__ARROW_UINT, 64},
        {TFOS__MODEL_TF_STRING, "string", TFOS__ARROW_BINARY, 0},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].code == code)
            return &types[i];
    return NULL;
}
