// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.compress.CompressionCodecFactory;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileFormat;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Map;

/**
 * The data source {@code tfrecord}.
 *
 * <p>Methods with a Seq are there twice: in Spark of Scala 2.12 it is a scala.collection.Seq, in that of 2.13 a scala.collection.immutable.Seq.
 * Each Spark calls the one that it knows.
 */
public class RecordFormat implements FileFormat, DataSourceRegister {
    /** Spark's word to the readers whether it takes batches. */
    private static final String RETURNING_BATCH = "returning_batch";

    private transient CompressionCodecFactory codecs; // made when it is needed first

    @Override
    public String shortName() {
        return "tfrecord";
    }

    /** What messages and plans call it. */
    @Override
    public String toString() {
        return "TFRecord";
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof RecordFormat;
    }

    @Override
    public int hashCode() {
        return RecordFormat.class.hashCode();
    }

    @Override
    public boolean supportDataType(DataType type) {
        return RecordColumns.canHold(type);
    }

    // ---- schemas

    public Option<StructType> inferSchema(SparkSession session, Map<String, String> options, scala.collection.Seq<FileStatus> files) {
        return infer(session, options, files.iterator());
    }

    public Option<StructType> inferSchema(SparkSession session, Map<String, String> options, scala.collection.immutable.Seq<FileStatus> files) {
        return infer(session, options, files.iterator());
    }

    private static Option<StructType> infer(SparkSession session, Map<String, String> options, Iterator<FileStatus> files) {
        List<FileStatus> list = new ArrayList<>();
        while (files.hasNext()) {
            list.add(files.next());
        }
        return Option.apply(schemaOf(session, new RecordOptions(options, session.sessionState().newHadoopConf()), list));
    }

    /** Null when nothing says what it is. */
    private static StructType schemaOf(SparkSession session, RecordOptions options, List<FileStatus> files) {
        try {
            StructType beside = options.usesSidecar ? SchemaSidecar.of(files, session.sessionState().newHadoopConf()) : null;
            if (beside == null && options.isSidecar && !files.isEmpty()) {
                throw new IllegalArgumentException("tfrecord: there is no schema beside " + files.get(0).getPath() + ", which schemaMode=sidecar asks for");
            }
            return beside != null ? beside : new SchemaInference(session, options).infer(files);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Only where one path was given: Spark does not pass several. */
    private static void checkPath(Map<String, String> options, Configuration configuration) {
        Option<String> path = options.get("path");
        try {
            if (path.isDefined()) {
                PathPatterns.check(new Path(path.get()), configuration);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    // ---- reading

    @Override
    public boolean isSplitable(SparkSession session, Map<String, String> options, Path path) {
        if (!new RecordOptions(options).isSplittable || RecordCompression.isNameOfCompressed(path.getName())) {
            return false;
        }
        if (codecs == null) {
            codecs = new CompressionCodecFactory(session.sessionState().newHadoopConf());
        }
        return codecs.getCodec(path) == null;
    }

    @Override
    public boolean supportBatch(SparkSession session, StructType schema) {
        return true;
    }

    public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
            SparkSession session, StructType data, StructType partition, StructType required, scala.collection.Seq<Filter> filters,
            Map<String, String> options, Configuration configuration) {
        return reader(session, data, partition, required, options, configuration);
    }

    public Function1<PartitionedFile, Iterator<InternalRow>> buildReaderWithPartitionValues(
            SparkSession session, StructType data, StructType partition, StructType required, scala.collection.immutable.Seq<Filter> filters,
            Map<String, String> options, Configuration configuration) {
        return reader(session, data, partition, required, options, configuration);
    }

    private static Function1<PartitionedFile, Iterator<InternalRow>> reader(
            SparkSession session, StructType data, StructType partition, StructType required, Map<String, String> options,
            Configuration configuration) {
        Option<String> returningBatch = options.get(RETURNING_BATCH);
        boolean asBatches = returningBatch.isDefined() && returningBatch.get().equals("true");
        RecordOptions parsed = new RecordOptions(options, configuration);
        checkPath(options, configuration);
        StructType named = RecordColumns.named(required, data);
        StructType columns = parsed.isSidecar ? SchemaSidecar.exact(named) : named;
        return new RecordFileReader(session, parsed, columns, partition, asBatches, configuration);
    }

    // ---- writing

    @Override
    public OutputWriterFactory prepareWrite(SparkSession session, Job job, Map<String, String> options, StructType schema) {
        RecordOptions parsed = new RecordOptions(options);
        StructType columns = parsed.isSidecar ? SchemaSidecar.exact(schema) : SchemaSidecar.plain(schema);
        return new RecordWriterFactory(session, job, parsed, columns);
    }
}
