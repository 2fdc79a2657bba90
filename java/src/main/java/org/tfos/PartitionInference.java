// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Collections;
import java.util.Iterator;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.util.TaskCompletionListener;

/** What a Spark task of an inference runs: rows of one partition go to a node, and each comes back as its result. */
final class PartitionInference implements FlatMapFunction<Iterator<InternalRow>, InternalRow> {
    private static final long serialVersionUID = 1L;

    private final byte[] options;
    private final DataType[] types;
    private final int fedCount;
    private final int keptCount;
    private final int resultCount;

    /**
     * @param types of the plan's columns
     * @param fedCount how many columns are fed
     * @param keptCount how many stay beside the results. 0: the plan's columns are those to feed; else they are two structs, the columns to feed and
     *     those to keep
     * @param resultCount how many columns a result has
     */
    PartitionInference(byte[] options, DataType[] types, int fedCount, int keptCount, int resultCount) {
        this.options = options;
        this.types = types;
        this.fedCount = fedCount;
        this.keptCount = keptCount;
        this.resultCount = resultCount;
    }

    @Override
    public Iterator<InternalRow> call(Iterator<InternalRow> rows) {
        if (!rows.hasNext()) {
            return Collections.emptyIterator();
        }
        TaskContext context = TaskContext.get();
        ResultIterator results = new ResultIterator(new RowSource(rows, types, fedCount, keptCount), new Feeder(options, context), resultCount, context);
        context.addTaskCompletionListener((TaskCompletionListener) ended -> results.close());
        return results;
    }
}
