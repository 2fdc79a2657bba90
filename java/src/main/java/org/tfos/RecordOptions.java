// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.Serializable;
import java.util.Map;
import java.util.TreeMap;
import scala.Tuple2;
import scala.collection.Iterator;

/** The options of the data source; docs/spark_source.md lists them. Names are in any case. */
final class RecordOptions implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final int INFER_FILES = 10;
    private static final long INFER_RECORDS = 1000;

    final RecordType type;
    final RecordCompression compression; // for writing
    final int mode; // a number of ExampleReaderNative
    final boolean allowRounding;
    final boolean isSplittable;
    final boolean isLocal; // each executor writes to its own disk
    final boolean inferAll;
    final int inferFiles;
    final long inferRecords; // of a file

    /**
     * @param options as Spark gives them
     * @throws IllegalArgumentException names an option and what its value can be
     */
    RecordOptions(scala.collection.immutable.Map<String, String> options) {
        Map<String, String> values = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (Iterator<Tuple2<String, String>> entries = options.iterator(); entries.hasNext(); ) {
            Tuple2<String, String> entry = entries.next();
            values.put(entry._1(), entry._2());
        }
        type = RecordType.of(values.getOrDefault("recordType", "Example"));
        compression = compression(values);
        mode = mode(values.getOrDefault("mode", "strict"));
        allowRounding = isTrue(values, "allowRounding", false);
        isSplittable = isTrue(values, "splitFiles", true);
        isLocal = isLocal(values.getOrDefault("writeLocality", "distributed"));
        inferAll = isTrue(values, "inferAll", false);
        inferFiles = (int) atLeastOne(values, "inferFiles", INFER_FILES);
        inferRecords = atLeastOne(values, "inferRecords", INFER_RECORDS);
    }

    private static RecordCompression compression(Map<String, String> values) {
        RecordCompression codec = RecordCompression.of(values.getOrDefault("codec", ""));
        RecordCompression compression = RecordCompression.of(values.getOrDefault("compression", ""));
        if (values.containsKey("codec") && values.containsKey("compression") && codec != compression) {
            throw new IllegalArgumentException("tfrecord: codec is \"" + values.get("codec") + "\", but compression is \"" + values.get("compression")
                    + "\": give one of them");
        }
        return values.containsKey("codec") ? codec : compression;
    }

    private static int mode(String text) {
        switch (text.toLowerCase(java.util.Locale.ROOT)) {
            case "strict":
                return ExampleReaderNative.STRICT;
            case "skiprecord":
                return ExampleReaderNative.SKIP_RECORD;
            case "skipfile":
                return ExampleReaderNative.SKIP_FILE;
            default:
                throw new IllegalArgumentException("tfrecord: mode is \"" + text + "\", where it can be strict, skipRecord or skipFile");
        }
    }

    private static boolean isLocal(String text) {
        if (text.equalsIgnoreCase("local")) {
            return true;
        }
        if (text.equalsIgnoreCase("distributed")) {
            return false;
        }
        throw new IllegalArgumentException("tfrecord: writeLocality is \"" + text + "\", where it can be distributed or local");
    }

    private static boolean isTrue(Map<String, String> values, String name, boolean otherwise) {
        String text = values.getOrDefault(name, Boolean.toString(otherwise));
        if (text.equalsIgnoreCase("true") || text.equalsIgnoreCase("false")) {
            return Boolean.parseBoolean(text);
        }
        throw new IllegalArgumentException("tfrecord: " + name + " is \"" + text + "\", where it can be true or false");
    }

    private static long atLeastOne(Map<String, String> values, String name, long otherwise) {
        String text = values.getOrDefault(name, Long.toString(otherwise));
        try {
            long value = Long.parseLong(text.trim());
            if (value >= 1 && value <= Integer.MAX_VALUE) {
                return value;
            }
        } catch (NumberFormatException error) {
            // said below
        }
        throw new IllegalArgumentException("tfrecord: " + name + " is \"" + text + "\", where it can be a number from 1 to 2147483647");
    }
}
