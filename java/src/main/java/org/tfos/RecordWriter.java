// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.LongAccumulator;

/** Writes the rows of a task to a file. */
final class RecordWriter extends OutputWriter {
    private final String path;
    private final UnsafeRows rows;
    private final LongAccumulator rounded;
    private final CollectionAccumulator<String> totals;
    private final TaskContext context = TaskContext.get();
    private RowStage stage;
    private ByteSink sink;
    private long handle; // 0: closed
    private boolean hasFailed;

    /**
     * @param path what Spark calls the file
     * @param place where it is written
     * @param rounded counts numbers
     * @param totals counts them by column; null where rounding is not reported
     */
    RecordWriter(String path, Path place, StructType schema, RecordOptions options, LongAccumulator rounded, CollectionAccumulator<String> totals,
            Configuration configuration) throws IOException {
        NativeLibrary.load();
        this.path = path;
        this.rounded = rounded;
        this.totals = totals;
        StructType stored = RecordColumns.stored(schema);
        rows = new UnsafeRows(schema);
        try (NativeSchema arrow = RecordColumns.arrow(stored)) {
            sink = ByteSink.createUnsummed(place, configuration);
            handle = ExampleWriterNative.open(
                    sink, arrow.address(), options.type.ordinal(), options.compression.ordinal(), options.isExact);
            stage = new RowStage();
        } catch (IOException | RuntimeException error) {
            hasFailed = true;
            release();
            throw error;
        }
    }

    @Override
    public String path() {
        return path;
    }

    @Override
    public void write(InternalRow row) {
        UnsafeRow unsafe = rows.of(row);
        if (!stage.takes(unsafe)) {
            flush();
        }
        stage.add(unsafe);
    }

    private void flush() {
        hasFailed = true; // until it has not
        // Spark looks only where rows come from another task or a file.
        if (context.isInterrupted()) {
            throw new TaskKilledException("writing was interrupted");
        }
        ExampleWriterNative.append(handle, stage.address(), stage.size(), stage.rowCount());
        hasFailed = false;
        stage.clear();
    }

    /** Spark calls this also after a failure, and removes the file. */
    @Override
    public void close() {
        try {
            if (handle != 0 && !hasFailed) {
                if (!stage.isEmpty()) {
                    flush();
                }
                ExampleWriterNative.finish(handle);
                countRounding();
            }
        } finally {
            release();
        }
    }

    private void countRounding() {
        long[] losses = ExampleWriterNative.losses(handle);
        for (int i = 0; 2 * i < losses.length; i++) {
            if (losses[2 * i] > 0) {
                rounded.add(losses[2 * i]);
                if (totals != null) {
                    String name = new String(ExampleWriterNative.columnName(handle, i), StandardCharsets.UTF_8);
                    totals.add(NamedTotals.item(name, losses[2 * i], losses[2 * i + 1]));
                }
            }
        }
    }

    private void release() {
        ExampleWriterNative.close(handle);
        handle = 0;
        if (stage != null) {
            stage.close();
            stage = null;
        }
        if (sink != null) {
            try {
                sink.close();
            } catch (IOException error) {
                if (!hasFailed) {
                    throw new UncheckedIOException(error);
                }
            } finally {
                sink = null;
            }
        }
    }
}
