// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.io;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.tfos.PathPatterns;
import org.tfos.RecordSettings;

/**
 * Reads TFRecord files: each record is a key of its own, a new object. Large plain files are split, and each record is read once, whatever the
 * splits; files of gzip or zlib are not. {@link RecordSettings} has the keys of the configuration; the counters of passed-over damage are in
 * the group {@code TFRecord}.
 */
public class TFRecordFileInputFormat extends FileInputFormat<BytesWritable, NullWritable> {
    @Override
    public RecordReader<BytesWritable, NullWritable> createRecordReader(InputSplit split, TaskAttemptContext context) {
        return new TFRecordSplitReader();
    }

    @Override
    protected List<FileStatus> listStatus(JobContext job) throws IOException {
        for (Path path : getInputPaths(job)) {
            PathPatterns.check(path, job.getConfiguration());
        }
        return super.listStatus(job);
    }

    @Override
    protected boolean isSplitable(JobContext context, Path file) {
        return RecordSettings.isSplittable(file, context.getConfiguration());
    }
}
