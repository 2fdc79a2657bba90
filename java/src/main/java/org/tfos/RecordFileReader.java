// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.Serializable;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.LongAccumulator;
import org.apache.spark.util.SerializableConfiguration;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/** Opens a file, or a part of one, in a task. */
final class RecordFileReader extends AbstractFunction1<PartitionedFile, Iterator<InternalRow>> implements Serializable {
    private static final long serialVersionUID = 1L;

    final RecordOptions options;
    final StructType required;
    final StructType partition;
    final boolean ignoresCase;
    final LongAccumulator damages; // null where reading is strict, as is the next
    final CollectionAccumulator<String> totals;
    private final boolean asBatches;
    private final Broadcast<SerializableConfiguration> configuration;

    /** On the driver: refuses, by its name, a column that cannot be read. */
    RecordFileReader(SparkSession session, RecordOptions options, StructType required, StructType partition, boolean asBatches,
            Configuration configuration) {
        try (NativeSchema schema = RecordColumns.arrow(RecordColumns.stored(required))) {
            ExampleReaderNative.check(schema.address(), options.type.ordinal());
        }
        this.options = options;
        this.required = required;
        this.partition = partition;
        this.asBatches = asBatches;
        ignoresCase = !RecordColumns.isCaseSensitive(configuration);
        this.configuration = JavaSparkContext.fromSparkContext(session.sparkContext()).broadcast(new SerializableConfiguration(configuration));
        boolean isStrict = options.mode == ExampleReaderNative.STRICT;
        damages = isStrict ? null : session.sparkContext().longAccumulator("tfrecord: places passed over");
        totals = isStrict ? null : DamageTotals.of(session.sparkContext());
    }

    @Override
    @SuppressWarnings("unchecked") // Spark takes batches from an iterator of rows
    public Iterator<InternalRow> apply(PartitionedFile file) {
        try {
            RecordBatches batches = new RecordBatches(this, file, configuration.value().value());
            return asBatches ? (Iterator<InternalRow>) (Iterator<?>) batches : new RecordRows(batches, required, partition);
        } catch (IOException error) {
            throw Raised.as(error); // Spark skips files that are missing, or damaged, by their exceptions
        }
    }
}
