// SPDX-License-Identifier: Apache-2.0
/// Python's cyclic garbage collector, kept from looking at rows again and again while many are
/// made: measured with rows of 784 floats it takes a fifth of the time. The caller holds the GIL.
#ifndef TFOS_PYTHON_COLLECTOR_H
#define TFOS_PYTHON_COLLECTOR_H

#include <stdbool.h>

/// Turns it off. true: it was on, and resume() must follow, also after an exception.
bool tfos__py_collector_pause(void);

/// Turns it on again; an exception that is set stays set.
void tfos__py_collector_resume(void);

#endif
