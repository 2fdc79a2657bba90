// SPDX-License-Identifier: Apache-2.0
// Finding TensorFlow's functions. Its Python package loads its libraries in a scope of their own,
// so each is asked by its name; a program that is linked to TensorFlow has them in the global
// scope.
#include "tensorflow_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct tfos__tensorflow tfos__tf;

static const char *const libraries[] = {"libtensorflow_framework.so.2", "libtensorflow_cc.so.2",
                                        "_pywrap_tensorflow_internal.so", "libtensorflow.so.2"};

#define LIBRARY_COUNT (sizeof(libraries) / sizeof(libraries[0]))

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define X(result, name, parameters) {"TF_" #name, offsetof(struct tfos__tensorflow, name)},
    TFOS__TF_FUNCTIONS(X)
#undef X
};

#define FUNCTION_COUNT (sizeof(functions) / sizeof(functions[0]))

static void *find(void *const *handles, const char *name)
{
    void *symbol = NULL;

    for (size_t i = 0; i < LIBRARY_COUNT && !symbol; i++) {
        if (handles[i])
            symbol = dlsym(handles[i], name);
    }
    return symbol ? symbol : dlsym(RTLD_DEFAULT, name);
}

const char *tfos__tensorflow_find(void)
{
    static char reason[256];
    void *handles[LIBRARY_COUNT];

    // The handles stay open: what they lead to must not be unloaded while it is used.
    for (size_t i = 0; i < LIBRARY_COUNT; i++)
        handles[i] = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (!find(handles, functions[0].name))
        return "no TensorFlow is loaded in this process; import tensorflow first";
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        void *symbol = find(handles, functions[i].name);
        if (!symbol) {
            snprintf(reason, sizeof(reason),
                     "this TensorFlow has no function %s; versions 2.15 to 2.21 have it",
                     functions[i].name);
            return reason;
        }
        memcpy((char *)&tfos__tf + functions[i].offset, &symbol, sizeof(symbol));
    }
    return NULL;
}
