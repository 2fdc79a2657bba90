// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.nio.charset.StandardCharsets;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.CalendarIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;

/** What Spark's columns are in records. MLlib's vectors are lists of doubles there, other user-defined types what they store. */
final class RecordColumns {
    /** The column of records that are bytes. */
    static final StructType BYTES = new StructType().add("byteArray", DataTypes.BinaryType);

    private static final String NAME = "tfos.name"; // as <tfos/example.h> has it
    static final String CASE_SENSITIVE = "spark.sql.caseSensitive";

    private RecordColumns() {}

    /** Whether names that differ in letter case are those of different columns. */
    static boolean isCaseSensitive(Configuration configuration) {
        return configuration.getBoolean(CASE_SENSITIVE, false);
    }

    /** Some columns, marked where the name of another one of all differs in letter case only. */
    static StructType named(StructType columns, StructType all) {
        TreeMap<String, Integer> counts = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (String name : all.fieldNames()) {
            counts.merge(name, 1, Integer::sum);
        }
        StructType named = new StructType();
        for (StructField field : columns.fields()) {
            boolean isAlone = counts.getOrDefault(field.name(), 0) <= 1;
            Metadata metadata = isAlone ? field.metadata() : new MetadataBuilder().withMetadata(field.metadata()).putString(NAME, "exact").build();
            named = named.add(field.name(), field.dataType(), field.nullable(), metadata);
        }
        return named;
    }

    /**
     * Checks names found in files.
     *
     * @throws IllegalArgumentException names two that differ in letter case only
     */
    static StructType distinct(StructType found) {
        TreeMap<String, String> names = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (String name : found.fieldNames()) {
            String other = names.put(name, name);
            if (other != null) {
                throw new IllegalArgumentException("tfrecord: the features " + other + " and " + name + " differ in letter case only: set "
                        + CASE_SENSITIVE + "=true to have both, or give a schema with one of them where no record has both");
            }
        }
        return found;
    }

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

    /** Spark's form of an inferred schema. */
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
                throw new TfosException("UnsupportedError: java: feature " + field.name() + ": records have no " + field.typeName());
        }
    }
}
