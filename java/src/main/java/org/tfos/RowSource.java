// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/** A partition's rows: of each what is to be fed, and what is kept beside its result. */
final class RowSource {
    private final Iterator<InternalRow> rows;
    private final ResultColumns columns;
    private final KeptRows kept; // null: nothing is kept
    private UnsafeProjection projection;
    private UnsafeRow row;
    private UnsafeRow fed;

    RowSource(Iterator<InternalRow> rows, ResultColumns columns) {
        this.rows = rows;
        this.columns = columns;
        kept = columns.keptCount > 0 ? new KeptRows(columns.keptCount) : null;
    }

    /** The row to feed next, the same until {@link #take}; null at the end. */
    UnsafeRow peek() {
        if (fed == null && rows.hasNext()) {
            row = unsafe(rows.next());
            fed = kept == null ? row : row.getStruct(0, columns.fedCount);
        }
        return fed;
    }

    /** The row that peek() gave has been copied. */
    void take() {
        if (kept != null) {
            kept.add(row.getStruct(1, kept.fieldCount()));
        }
        fed = null;
    }

    boolean isKeeping() {
        return kept != null;
    }

    /** What is kept of the first row that has been taken and not been given here. */
    UnsafeRow nextKept() {
        return kept.next();
    }

    private UnsafeRow unsafe(InternalRow any) {
        if (any instanceof UnsafeRow) {
            return (UnsafeRow) any;
        }
        projection = projection == null ? UnsafeProjection.create(columns.types) : projection;
        return projection.apply(any);
    }
}
