// SPDX-License-Identifier: Apache-2.0
/// Of tfos doctor: the managers that run Spark's executors.
#ifndef TFOS_CLI_DOCTOR_MANAGERS_H
#define TFOS_CLI_DOCTOR_MANAGERS_H

#include "doctor_report.h"

/// Adds a check for Standalone, YARN and Kubernetes each: what is found here, and what a job that
/// is submitted from here would lack, which is "missing" where Spark's settings choose that
/// manager. `spark_home` may be NULL.
void check_managers(struct report *report, const char *spark_home);

#endif
