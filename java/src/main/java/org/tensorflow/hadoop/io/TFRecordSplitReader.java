// SPDX-License-Identifier: Apache-2.0
package org.tensorflow.hadoop.io;

import java.io.IOException;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.tfos.RawRecordReader;

/** The records of a split. */
final class TFRecordSplitReader extends RecordReader<BytesWritable, NullWritable> {
    private FileSplit split;
    private RawRecordReader reader;

    @Override
    public void initialize(InputSplit split, TaskAttemptContext context) throws IOException {
        this.split = (FileSplit) split;
        reader = TFRecordSplits.open(this.split.getPath(), this.split.getStart(), this.split.getLength(), context.getConfiguration(),
                (name, amount) -> context.getCounter(TFRecordSplits.COUNTERS, name).increment(amount));
    }

    @Override
    public boolean nextKeyValue() throws IOException {
        return reader.next();
    }

    @Override
    public BytesWritable getCurrentKey() {
        byte[] record = new byte[reader.size()];
        reader.copyTo(record);
        return new BytesWritable(record);
    }

    @Override
    public NullWritable getCurrentValue() {
        return NullWritable.get();
    }

    @Override
    public float getProgress() {
        return TFRecordSplits.progress(reader, split.getStart(), split.getLength());
    }

    @Override
    public void close() throws IOException {
        if (reader != null) {
            reader.close();
        }
    }
}
