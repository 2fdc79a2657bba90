// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/** The data source {@code tfrecords}: another name for the same. */
public class RecordsFormat extends RecordFormat {
    @Override
    public String shortName() {
        return "tfrecords";
    }
}
