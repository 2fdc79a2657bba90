// SPDX-License-Identifier: Apache-2.0
package com.linkedin.spark.datasources.tfrecord;

import org.tfos.RecordFormat;

/** The data source under the name by which programs for spark-tfrecord may have it. */
public class DefaultSource extends RecordFormat {}
