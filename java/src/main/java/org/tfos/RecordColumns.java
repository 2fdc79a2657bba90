// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.nio.charset.StandardCharsets;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.CalendarIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;

/** What Spark's columns are in records. MLlib's vectors are lists of doubles there, other user-defined types what they store. */
final class RecordColumns {
    /** The column of records that are bytes. */
    static final StructType BYTES = new StructType().add("byteArray", DataTypes.BinaryType);

    private RecordColumns() {}

    static boolean isVector(DataType type) {
        String name = type.getClass().getName();
        return name.equals("org.apache.spark.ml.linalg.VectorUDT") || name.equals("org.apache.spark.mllib.linalg.VectorUDT");
    }

    /** Whether some record can hold it. */
    static boolean canHold(DataType type) {
        return isVector(type) || canHold(type, 2);
    }

    private static boolean canHold(DataType type, int levels) {
        if (type instanceof UserDefinedType) {
            return !isVector(type) && canHold(((UserDefinedType<?>) type).sqlType(), levels);
        }
        if (type instanceof ArrayType) {
            DataType element = ((ArrayType) type).elementType();
            return levels > 0 && !(element instanceof StructType) && canHold(element, levels - 1);
        }
        if (type instanceof StructType) {
            for (StructField field : ((StructType) type).fields()) {
                if (!canHold(field.dataType(), levels)) {
                    return false;
                }
            }
            return true;
        }
        // Without names of classes that only some versions of Spark have: variant, geometry, geography.
        return !(type instanceof MapType || type instanceof NullType || type instanceof CalendarIntervalType)
                && !type.typeName().matches("variant|geometry.*|geography.*");
    }

    /** The schema with vectors as the lists that they become. */
    static StructType stored(StructType schema) {
        StructType stored = new StructType();
        for (StructField field : schema.fields()) {
            stored = isVector(field.dataType())
                    ? stored.add(field.name(), DataTypes.createArrayType(DataTypes.DoubleType, false), field.nullable(), field.metadata())
                    : stored.add(field);
        }
        return stored;
    }

    /** The Arrow schema of a schema that {@link #stored} gave; the caller closes it. */
    static NativeSchema arrow(StructType stored) {
        NativeSchema schema = new NativeSchema();
        try {
            ArrowNative.parseSchema(stored.json().getBytes(StandardCharsets.UTF_8), schema.address());
            return schema;
        } catch (RuntimeException error) {
            schema.close();
            throw error;
        }
    }

    /** Spark's schema of what a survey found. */
    static StructType spark(NativeSchema schema) {
        StructType type = new StructType();
        for (int i = 0; i < schema.childCount(); i++) {
            NativeSchema field = schema.child(i);
            type = type.add(field.name(), sparkType(field), true);
        }
        return type;
    }

    private static DataType sparkType(NativeSchema field) {
        switch (field.format()) {
            case "+l":
                return DataTypes.createArrayType(sparkType(field.child(0)), true);
            case "l":
                return DataTypes.LongType;
            case "f":
                return DataTypes.FloatType;
            case "u":
                return DataTypes.StringType;
            case "z":
                return DataTypes.BinaryType;
            default:
                throw new TfosException("UnsupportedError: java: feature " + field.name() + " has the Arrow format " + field.format());
        }
    }
}
