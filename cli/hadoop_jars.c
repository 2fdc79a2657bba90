// SPDX-License-Identifier: Apache-2.0
#include "hadoop_jars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/file_list.h>

#include "program.h"

#define PYTHON_TIMEOUT_MS 30000
#define OPTIONS "LIBHDFS_OPTS"
#define SHORT_LIVED "-XX:TieredStopAtLevel=1" // the second compiler costs more than it gives

bool is_remote(const char *name)
{
    return tfos_file_name_path_offset(name) > 0 &&
           tfos_file_system_of(name) != tfos_file_system_of("/");
}

// Before the user's own options, which override it.
static void shorten_start(void)
{
    const char *own = getenv(OPTIONS);
    char options[4096];
    int size = snprintf(options, sizeof(options), SHORT_LIVED " %s", own ? own : "");
    if (size > 0 && (size_t)size < sizeof(options))
        setenv(OPTIONS, options, 1);
}

void find_hadoop(const char *name)
{
    static bool is_done;
    char python[4096], jars[4096];
    char option[] = "-Ic", code[] = "import importlib.util as u, os\n"
                                    "s = u.find_spec('pyspark')\n"
                                    "print(os.path.join(os.path.dirname(s.origin), 'jars'))\n";
    char *argv[] = {python, option, code, NULL};
    if (is_done || !is_remote(name))
        return;
    is_done = true;
    shorten_start();
    choose_python(python, sizeof(python));
    if (tfos_hadoop_is_configured() || !run_program(argv, PYTHON_TIMEOUT_MS, jars, sizeof(jars)))
        return;
    jars[strcspn(jars, "\n")] = '\0';
    // Without memory there are no jars, and that is said when they are needed.
    (void)!tfos_hadoop_set_jars(jars, NULL);
}
