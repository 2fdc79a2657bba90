// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.lang.ref.Cleaner;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Function1;

/** The record of a row, by the encoder that also writes files. Doubles become the nearest floats. */
public final class RowEncoder implements UDF1<Row, byte[]> {
    private static final long serialVersionUID = 1L;
    private static final Cleaner CLEANER = Cleaner.create();

    private final RecordType type;
    private transient Encoder encoder; // for the schema of the last row

    private RowEncoder(RecordType type) {
        this.type = type;
    }

    /** A function of a struct; {@code type} is as the option {@code recordType} has it. */
    public static UserDefinedFunction function(String type) {
        return functions.udf(new RowEncoder(RecordType.of(type)), DataTypes.BinaryType);
    }

    @Override
    public synchronized byte[] call(Row row) {
        if (row == null) {
            return null;
        }
        if (encoder == null || !encoder.isFor(row.schema())) {
            encoder = new Encoder(row.schema(), type);
        }
        return encoder.encode(row);
    }

    private static final class Encoder {
        private final StructType schema;
        private final Function1<Object, Object> converter;
        private final UnsafeRows rows;
        private final Memory memory;

        Encoder(StructType schema, RecordType type) {
            this.schema = schema;
            converter = CatalystTypeConverters.createToCatalystConverter(schema);
            rows = new UnsafeRows(schema);
            memory = new Memory(RecordColumns.stored(schema), type);
            CLEANER.register(this, memory);
        }

        boolean isFor(StructType other) {
            return other == schema || other.equals(schema);
        }

        byte[] encode(Row row) {
            memory.stage.clear();
            memory.stage.add(rows.of((InternalRow) converter.apply(row)));
            return RowEncoderNative.encode(memory.handle, memory.stage.address(), memory.stage.size());
        }
    }

    /** What is not Java's; it is freed when its encoder is garbage. */
    private static final class Memory implements Runnable {
        private final long handle;
        private final RowStage stage;

        Memory(StructType stored, RecordType type) {
            NativeLibrary.load();
            try (NativeSchema arrow = RecordColumns.arrow(stored)) {
                handle = RowEncoderNative.open(arrow.address(), type.ordinal());
            }
            stage = new RowStage();
        }

        @Override
        public void run() {
            RowEncoderNative.close(handle);
            stage.close();
        }
    }
}
