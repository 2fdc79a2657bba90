// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.LongAccumulator;

/** Makes the writers of files, in tasks. */
final class RecordWriterFactory extends OutputWriterFactory {
    private static final long serialVersionUID = 1L;

    private final RecordOptions options;
    private final LongAccumulator rounded; // null where nothing may be

    /** On the driver: refuses, by its name, a column that cannot be written. */
    RecordWriterFactory(SparkSession session, RecordOptions options, StructType schema) {
        try (NativeSchema arrow = RecordColumns.arrow(RecordColumns.stored(schema))) {
            ExampleWriterNative.check(arrow.address(), options.type.ordinal());
        }
        this.options = options;
        rounded = options.allowRounding ? session.sparkContext().longAccumulator("tfrecord: values rounded") : null;
    }

    @Override
    public String getFileExtension(TaskAttemptContext context) {
        return ".tfrecord" + options.compression.extension();
    }

    @Override
    public OutputWriter newInstance(String path, StructType schema, TaskAttemptContext context) {
        try {
            return new RecordWriter(path, schema, options, rounded, context.getConfiguration());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
