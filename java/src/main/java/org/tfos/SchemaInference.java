// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Infers the schema of files: from a sample of them here, or from all of them in a Spark job. */
final class SchemaInference {
    private static final Logger LOG = LoggerFactory.getLogger(SchemaInference.class);
    private static final int TASKS_PER_CORE = 3;

    private final SparkSession session;
    private final RecordOptions options;

    SchemaInference(SparkSession session, RecordOptions options) {
        this.session = session;
        this.options = options;
        NativeLibrary.load();
    }

    /** The schema; null when no record says anything. */
    StructType infer(List<FileStatus> files) {
        if (options.type == RecordType.BYTES) {
            return RecordColumns.BYTES;
        }
        List<FileStatus> full = new ArrayList<>();
        for (FileStatus file : files) {
            if (file.getLen() > 0) {
                full.add(file);
            }
        }
        full.sort(Comparator.comparing(FileStatus::getPath)); // the order of columns is that of the files
        byte[] inference = null;
        for (byte[] one : options.inferAll ? all(full) : sample(full)) {
            inference = merge(inference, one);
        }
        if (inference == null) {
            return null;
        }
        try (NativeSchema schema = new NativeSchema()) {
            SchemaInferenceNative.schema(inference, schema.address());
            StructType found = schema.childCount() == 0 ? null : RecordColumns.spark(schema);
            boolean isCaseSensitive = RecordColumns.isCaseSensitive(session.sessionState().newHadoopConf());
            return found == null || isCaseSensitive ? found : RecordColumns.distinct(found);
        }
    }

    /** Reads the first and the last file, and some between them at equal distances. */
    private List<byte[]> sample(List<FileStatus> files) {
        Configuration configuration = session.sessionState().newHadoopConf();
        int count = Math.min(options.inferFiles, files.size());
        List<byte[]> inferences = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int index = count == 1 ? 0 : (int) ((long) i * (files.size() - 1) / (count - 1));
            inferences.add(read(files.get(index).getPath(), options, options.inferRecords, configuration));
        }
        return inferences;
    }

    private List<byte[]> all(List<FileStatus> files) {
        if (files.isEmpty()) {
            return Collections.emptyList();
        }
        List<String> paths = new ArrayList<>();
        for (FileStatus file : files) {
            paths.add(file.getPath().toString());
        }
        JavaSparkContext context = JavaSparkContext.fromSparkContext(session.sparkContext());
        int tasks = Math.min(paths.size(), TASKS_PER_CORE * context.defaultParallelism());
        SerializableConfiguration configuration = new SerializableConfiguration(session.sessionState().newHadoopConf());
        return context.parallelize(paths, tasks).mapPartitions(new Task(options, configuration)).collect();
    }

    /** What is known from a file; null where it is skipped. */
    private static byte[] read(Path path, RecordOptions options, long limit, Configuration configuration) {
        try (ByteSource source = ByteSource.open(path, configuration)) {
            return SchemaInferenceNative.read(source, source.name(), options.type.ordinal(), options.mode, limit);
        } catch (FileNotFoundException error) {
            return skip(path, error, options.ignoresMissing);
        } catch (IOException | RuntimeException error) {
            return skip(path, error, options.ignoresCorrupt);
        }
    }

    /** Null, or the error. */
    private static byte[] skip(Path path, Exception error, boolean isIgnored) {
        if (!isIgnored) {
            throw Raised.as(error);
        }
        LOG.warn("tfrecord: passed over {} in looking for a schema: {}", path, error.getMessage());
        return null;
    }

    /** What is known from both, each of which may be null. */
    private static byte[] merge(byte[] inference, byte[] other) {
        return inference == null ? other : other == null ? inference : SchemaInferenceNative.merge(inference, other);
    }

    /** Reads all records of some files. */
    private static final class Task implements FlatMapFunction<Iterator<String>, byte[]>, Serializable {
        private static final long serialVersionUID = 1L;

        private final RecordOptions options;
        private final SerializableConfiguration configuration;

        Task(RecordOptions options, SerializableConfiguration configuration) {
            this.options = options;
            this.configuration = configuration;
        }

        @Override
        public Iterator<byte[]> call(Iterator<String> paths) {
            NativeLibrary.load();
            byte[] merged = null;
            while (paths.hasNext()) {
                merged = merge(merged, read(new Path(paths.next()), options, 0, configuration.value()));
            }
            return merged == null ? Collections.emptyIterator() : Collections.singletonList(merged).iterator();
        }
    }
}
