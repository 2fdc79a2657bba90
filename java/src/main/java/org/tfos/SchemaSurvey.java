// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
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

/** Finds the schema of files: a sample of them is looked at here, or all of them in a Spark job. */
final class SchemaSurvey {
    private static final int TASKS_PER_CORE = 3;

    private final SparkSession session;
    private final RecordOptions options;

    SchemaSurvey(SparkSession session, RecordOptions options) {
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
        byte[] survey = merge((options.inferAll ? all(full) : sample(full)).iterator());
        if (survey == null) {
            return null;
        }
        try (NativeSchema schema = new NativeSchema()) {
            SurveyNative.schema(survey, schema.address());
            StructType found = schema.childCount() == 0 ? null : RecordColumns.spark(schema);
            boolean isCaseSensitive = RecordColumns.isCaseSensitive(session.sessionState().newHadoopConf());
            return found == null || isCaseSensitive ? found : RecordColumns.distinct(found);
        }
    }

    /** First and last, and some between at equal distances. */
    private List<byte[]> sample(List<FileStatus> files) {
        Configuration configuration = session.sessionState().newHadoopConf();
        int count = Math.min(options.inferFiles, files.size());
        List<byte[]> surveys = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int index = count == 1 ? 0 : (int) ((long) i * (files.size() - 1) / (count - 1));
            surveys.add(read(files.get(index).getPath(), options, options.inferRecords, configuration));
        }
        return surveys;
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

    private static byte[] read(Path path, RecordOptions options, long limit, Configuration configuration) {
        try (ByteSource source = ByteSource.open(path, configuration)) {
            return SurveyNative.read(source, path.toString().getBytes(StandardCharsets.UTF_8), options.type.ordinal(), options.mode, limit);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** What is known from all; null from none. */
    private static byte[] merge(Iterator<byte[]> surveys) {
        byte[] merged = surveys.hasNext() ? surveys.next() : null;
        while (surveys.hasNext()) {
            merged = SurveyNative.merge(merged, surveys.next());
        }
        return merged;
    }

    /** Looks at all records of some files. */
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
                byte[] survey = read(new Path(paths.next()), options, 0, configuration.value());
                merged = merged == null ? survey : SurveyNative.merge(merged, survey);
            }
            return merged == null ? Collections.emptyIterator() : Collections.singletonList(merged).iterator();
        }
    }
}
