// SPDX-License-Identifier: Apache-2.0
/// Distributed TensorFlow on Apache Spark: the whole C interface.
#ifndef TFOS_H
#define TFOS_H

#include <tfos/arrow.h>
#include <tfos/collective.h>
#include <tfos/dataset.h>
#include <tfos/dtype.h>
#include <tfos/example.h>
#include <tfos/example_file.h>
#include <tfos/export.h>
#include <tfos/feed.h>
#include <tfos/feeder.h>
#include <tfos/file_list.h>
#include <tfos/file_system.h>
#include <tfos/fork.h>
#include <tfos/gpu.h>
#include <tfos/memory.h>
#include <tfos/node.h>
#include <tfos/record.h>
#include <tfos/record_dataset.h>
#include <tfos/record_index.h>
#include <tfos/rendezvous.h>
#include <tfos/spark_schema.h>
#include <tfos/status.h>
#include <tfos/stream.h>
#include <tfos/trainer.h>
#include <tfos/unsafe_row.h>
#include <tfos/version.h>
#include <tfos/wait.h>

#endif
