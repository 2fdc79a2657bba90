// SPDX-License-Identifier: Apache-2.0
/// Hadoop's classes for commands that are given URIs.
#ifndef TFOS_CLI_HADOOP_JARS_H
#define TFOS_CLI_HADOOP_JARS_H

#include <stdbool.h>

/// Whether a name is that of a file of another file system than this machine's.
bool is_remote(const char *name);

/// Before such a name is used: where the environment names no Hadoop, the jars are those that come
/// with the pyspark of the Python beside this command, if there is one.
void find_hadoop(const char *name);

#endif
