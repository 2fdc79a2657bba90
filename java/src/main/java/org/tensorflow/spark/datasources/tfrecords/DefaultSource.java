// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.spark.datasources.tfrecords;

import org.tfos.RecordFormat;

/** The data source under the name by which programs for spark-tensorflow-connector may have it. */
public class DefaultSource extends RecordFormat {}
