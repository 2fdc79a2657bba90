// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * A result for each row of a partition, beside what is kept of the row. It feeds when no result waits, and takes results when no row can be fed.
 *
 * <p>Spark may let one thread iterate and end the task in another: {@link #close} waits until a call of the library has returned, but never for rows
 * of the partition. Rows that it returned are in Java's memory, and can be read later.
 */
final class ResultIterator implements Iterator<InternalRow>, AutoCloseable {
    private enum Phase { FILLING, APPENDING, FINISHING, DRAINING, OVER }

    private final RowSource source;
    private final Feeder feeder; // guarded by this, as is the stage
    private final TaskContext context;
    private final RowStage stage = new RowStage();
    private final RowBuffer buffer;
    private final JoinedRow joined = new JoinedRow();
    private Phase phase = Phase.FILLING;
    private boolean isClosed; // guarded by this

    ResultIterator(RowSource source, Feeder feeder, int fieldCount, TaskContext context) {
        this.source = source;
        this.feeder = feeder;
        this.context = context;
        buffer = new RowBuffer(fieldCount);
    }

    @Override
    public boolean hasNext() {
        return !buffer.isEmpty() || advance();
    }

    /** The next row, which is this until the next call of any method. */
    @Override
    public InternalRow next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return source.isKeeping() ? joined.apply(source.nextKept(), buffer.next()) : buffer.next();
    }

    private boolean advance() {
        boolean mustWait = false;
        while (phase != Phase.OVER) {
            if (context.isInterrupted()) {
                throw new TaskKilledException("inference was interrupted");
            }
            if (takeRows(mustWait)) {
                return true;
            }
            mustWait = !feed();
        }
        return false;
    }

    /** Fills the buffer with rows that have come. */
    private synchronized boolean takeRows(boolean isWaiting) {
        long filled = isClosed ? -1 : buffer.fill(bytes -> feeder.nextRows(bytes, isWaiting));
        if (filled < 0) {
            phase = Phase.OVER;
            close();
        }
        return filled > 0;
    }

    /** Feeds on by one step. False: a result must be taken first, or there is no more to feed. */
    private boolean feed() {
        if (phase == Phase.FILLING) {
            fillStage();
            return true;
        }
        if (phase == Phase.DRAINING || phase == Phase.OVER) {
            return false;
        }
        int status = phase == Phase.APPENDING ? append() : finish();
        if (status == Native.AGAIN) {
            return false;
        }
        // A reader that takes no more still answers what it has.
        phase = status == Native.DONE && phase == Phase.APPENDING ? Phase.FILLING : Phase.DRAINING;
        return true;
    }

    private void fillStage() {
        UnsafeRow fed = source.peek();
        while (fed != null && stage(fed)) {
            source.take();
            fed = context.isInterrupted() ? null : source.peek();
        }
        phase = isStageEmpty() ? Phase.FINISHING : Phase.APPENDING;
    }

    private synchronized boolean stage(UnsafeRow fed) {
        boolean isTaken = !isClosed && stage.takes(fed);
        if (isTaken) {
            stage.add(fed);
        }
        return isTaken;
    }

    private synchronized boolean isStageEmpty() {
        return stage.isEmpty();
    }

    private synchronized int append() {
        return isClosed ? Native.END : feeder.append(stage);
    }

    private synchronized int finish() {
        return isClosed ? Native.END : feeder.finish();
    }

    @Override
    public synchronized void close() {
        if (!isClosed) {
            isClosed = true;
            stage.close();
            feeder.close();
        }
    }
}
