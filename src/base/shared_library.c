// SPDX-License-Identifier: Apache-2.0
#include "base/shared_library.h"

#include <dlfcn.h>
#include <string.h>

const char *tfos__find_functions(void *library, const struct tfos__library_function *functions,
                                 size_t count, void *pointers)
{
    const char *missing = NULL;
    for (size_t i = 0; i < count; i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol && !missing)
            missing = functions[i].name;
        memcpy((char *)pointers + functions[i].offset, &symbol, sizeof(symbol));
    }
    return missing;
}
