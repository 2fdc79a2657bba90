// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.io;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.JobConfigurable;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;
import org.tfos.PathPatterns;
import org.tfos.RawRecordReader;
import org.tfos.RecordSettings;

/** {@link TFRecordFileInputFormat} for Hadoop's older interface, in which keys are used again. */
public class TFRecordFileInputFormatV1 extends FileInputFormat<BytesWritable, NullWritable> implements JobConfigurable {
    private JobConf job = new JobConf(false);

    @Override
    public void configure(JobConf job) {
        this.job = job;
    }

    @Override
    public RecordReader<BytesWritable, NullWritable> getRecordReader(InputSplit split, JobConf job, Reporter reporter) throws IOException {
        reporter.setStatus(split.toString());
        return new Reader((FileSplit) split, job, reporter);
    }

    @Override
    protected FileStatus[] listStatus(JobConf job) throws IOException {
        for (Path path : getInputPaths(job)) {
            PathPatterns.check(path, job);
        }
        return super.listStatus(job);
    }

    @Override
    protected boolean isSplitable(FileSystem system, Path file) {
        return RecordSettings.isSplittable(file, job);
    }

    private static final class Reader implements RecordReader<BytesWritable, NullWritable> {
        private final FileSplit split;
        private final RawRecordReader reader;

        Reader(FileSplit split, JobConf job, Reporter reporter) throws IOException {
            this.split = split;
            reader = TFRecordSplits.open(split.getPath(), split.getStart(), split.getLength(), job,
                    (name, amount) -> reporter.incrCounter(TFRecordSplits.COUNTERS, name, amount));
        }

        @Override
        public boolean next(BytesWritable key, NullWritable value) throws IOException {
            if (!reader.next()) {
                return false;
            }
            key.setSize(0); // nothing is to be kept when it grows
            key.setSize(reader.size());
            reader.copyTo(key.getBytes());
            return true;
        }

        @Override
        public BytesWritable createKey() {
            return new BytesWritable();
        }

        @Override
        public NullWritable createValue() {
            return NullWritable.get();
        }

        @Override
        public long getPos() {
            return reader.position();
        }

        @Override
        public float getProgress() {
            return TFRecordSplits.progress(reader, split.getStart(), split.getLength());
        }

        @Override
        public void close() throws IOException {
            reader.close();
        }
    }
}
