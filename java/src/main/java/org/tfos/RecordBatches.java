// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.Closeable;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.LongAccumulator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.AbstractIterator;

/**
 * The batches of a file, or of a part of one. A batch lives until the next is asked for.
 *
 * <p>Spark's FileScanRDD closes it, at the file's end or the task's. In Spark 3 a task may end while a thread that feeds its Python worker still
 * reads: what that thread uses is left to it, or to the garbage collector if it never asks for more.
 */
final class RecordBatches extends AbstractIterator<ColumnarBatch> implements Closeable {
    private static final Logger LOG = LoggerFactory.getLogger(RecordBatches.class);
    private static final long ROWS = 4096;
    private static final long SIZE = 1 << 20; // bytes: what was decoded is still in a cache when Spark reads it

    private final RecordFileReader reader;
    private final PartitionedFile file;
    private final StructType stored;
    private final Resources resources;
    private volatile Thread user;
    private volatile boolean isClosed;
    private boolean isNext;

    RecordBatches(RecordFileReader reader, PartitionedFile file, Configuration configuration) throws IOException {
        this.reader = reader;
        this.file = file;
        stored = RecordColumns.stored(reader.required);
        Path path = file.toPath();
        user = Thread.currentThread();
        resources = new Resources(reader.damages, reader.totals, path.toString());
        try {
            resources.schema = RecordColumns.arrow(stored);
            resources.source = ByteSource.open(path, configuration);
            long end = file.start() + file.length();
            long[] numbers = {reader.options.type.ordinal(), reader.options.mode, file.start(), end >= file.fileSize() ? 0 : end, ROWS, SIZE};
            resources.handle = ExampleReaderNative.open(
                    resources.source, resources.source.name(), resources.schema.address(), reader.ignoresCase, numbers);
        } catch (IOException | RuntimeException error) {
            resources.run();
            throw error;
        }
    }

    @Override
    public boolean hasNext() {
        user = Thread.currentThread();
        if (isClosed) {
            isNext = false;
            resources.run();
        } else if (!isNext && resources.handle != 0) {
            isNext = load();
        }
        return isNext;
    }

    private boolean load() {
        resources.closeBatch();
        resources.batch = new NativeBatch();
        boolean isLoaded = read();
        logDamage();
        if (!isLoaded) {
            resources.run();
        }
        return isLoaded;
    }

    private boolean read() {
        try {
            return ExampleReaderNative.next(resources.handle, resources.batch.address());
        } catch (TfosException error) {
            // A range was asked for because of an option that only this class's callers know.
            throw error.getMessage().endsWith("read it whole")
                    ? new TfosException(error.getMessage() + ", with the option splitFiles=false")
                    : error;
        }
    }

    private void logDamage() {
        byte[] damage = ExampleReaderNative.takeDamage(resources.handle);
        if (damage != null) {
            LOG.warn("passed over: {}", new String(damage, StandardCharsets.UTF_8));
        }
    }

    @Override
    public ColumnarBatch next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        isNext = false;
        int rowCount = resources.batch.rowCount();
        ColumnVector[] columns = resources.batch.columns(stored, resources.schema);
        StructField[] partition = reader.partition.fields();
        int count = columns.length;
        ColumnVector[] all = Arrays.copyOf(columns, count + partition.length);
        for (int i = 0; i < count; i++) {
            if (RecordColumns.isVector(reader.required.fields()[i].dataType())) {
                all[i] = new DenseVectorColumn(reader.required.fields()[i].dataType(), columns[i], rowCount);
            }
        }
        for (int i = 0; i < partition.length; i++) {
            ConstantColumnVector constant = new ConstantColumnVector(rowCount, partition[i].dataType());
            ColumnVectorUtils.populate(constant, file.partitionValues(), i);
            all[count + i] = constant;
        }
        return new ColumnarBatch(all, rowCount);
    }

    @Override
    public void close() {
        if (isClosed) {
            return;
        }
        isClosed = true;
        if (user == Thread.currentThread() || !user.isAlive()) {
            isNext = false;
            resources.run();
        } else {
            Leftovers.CLEANER.register(this, resources);
        }
    }

    /** Made when it is needed first: it has a thread. */
    private static final class Leftovers {
        static final Cleaner CLEANER = Cleaner.create();
    }

    /** What is to be given back, once. */
    private static final class Resources implements Runnable {
        private final LongAccumulator damages; // null where reading is strict, as is the next
        private final CollectionAccumulator<String> totals;
        private final String file;
        private ByteSource source;
        private NativeSchema schema;
        private long handle; // 0: nothing is left to read
        private NativeBatch batch; // the last one that was given out, or the next

        Resources(LongAccumulator damages, CollectionAccumulator<String> totals, String file) {
            this.damages = damages;
            this.totals = totals;
            this.file = file;
        }

        private void closeBatch() {
            if (batch != null) {
                batch.close();
                batch = null;
            }
        }

        private void countDamage() {
            long places = damages != null ? ExampleReaderNative.damageCount(handle) : 0;
            if (places > 0) {
                damages.add(places);
                totals.add(NamedTotals.item(file, places, ExampleReaderNative.skippedBytes(handle)));
            }
        }

        @Override
        public void run() {
            closeBatch();
            if (handle != 0) {
                countDamage();
                ExampleReaderNative.close(handle);
                handle = 0;
            }
            if (schema != null) {
                schema.close();
                schema = null;
            }
            if (source != null) {
                try {
                    source.close();
                } catch (IOException error) {
                    throw Raised.as(error);
                } finally {
                    source = null;
                }
            }
        }
    }
}
