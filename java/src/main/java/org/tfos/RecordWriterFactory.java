// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.LongAccumulator;

/** Makes the writers of files, in tasks. */
final class RecordWriterFactory extends OutputWriterFactory {
    private static final long serialVersionUID = 1L;

    private final RecordOptions options;
    private final StructType columns;
    private final LongAccumulator rounded;
    private final CollectionAccumulator<String> totals; // null where rounding is not reported
    private transient boolean isFolderReady; // in this task

    /** On the driver: refuses, by its name, a column that cannot be written. */
    RecordWriterFactory(SparkSession session, Job job, RecordOptions options, StructType columns) {
        try (NativeSchema arrow = RecordColumns.arrow(RecordColumns.stored(columns))) {
            ExampleWriterNative.check(arrow.address(), options.type.ordinal());
        }
        if (options.isLocal) {
            checkLocal(session, job);
        }
        this.options = options;
        this.columns = columns;
        rounded = session.sparkContext().longAccumulator("tfrecord: values rounded");
        totals = options.isRoundingTold ? RoundingTotals.of(session.sparkContext()) : null;
    }

    private static void checkLocal(SparkSession session, Job job) {
        String scheme = FileOutputFormat.getOutputPath(job).toUri().getScheme();
        if (scheme != null && !scheme.equals("file")) {
            throw new IllegalArgumentException("tfrecord: writeLocality=local writes to the executors' own disks, and not to " + scheme + ":");
        }
        if (session.sparkContext().getConf().getBoolean("spark.speculation", false)) {
            throw new IllegalArgumentException("tfrecord: with spark.speculation two executors could keep the same rows: writeLocality=local is refused");
        }
    }

    @Override
    public String getFileExtension(TaskAttemptContext context) {
        return ".tfrecord" + options.compression.extension();
    }

    @Override
    public OutputWriter newInstance(String path, StructType schema, TaskAttemptContext context) {
        try {
            if (!isFolderReady && !options.isLocal) {
                // Not on the driver: Spark 4 deletes what is to be overwritten only after prepareWrite().
                SchemaSidecar.prepare(context, options.isSidecar ? columns : null);
                isFolderReady = true;
            }
            Path place = options.isLocal ? new LocalFile(path, context).path() : new Path(path);
            return new RecordWriter(path, place, columns, options, rounded, totals, context.getConfiguration());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
