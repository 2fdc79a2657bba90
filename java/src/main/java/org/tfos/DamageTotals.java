// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Map;
import java.util.TreeMap;
import java.util.WeakHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.util.AccumulatorV2;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What the reads of a Spark application have passed over, by file. The driver's is made of those of the tasks that have succeeded. */
public final class DamageTotals extends AccumulatorV2<DamageTotals.Damage, String> {
    private static final long serialVersionUID = 1L;
    private static final int FILES_TOLD = 10; // of a job
    private static final Map<SparkContext, DamageTotals> APPLICATIONS = new WeakHashMap<>();

    private final TreeMap<String, long[]> files = new TreeMap<>(); // places, and bytes

    DamageTotals() {}

    /** What one reader has passed over in a file, or in a part of one. */
    static final class Damage {
        private final String file;
        private final long places;
        private final long size;

        /** @param size bytes, frames included; not the rest of a file that was left */
        Damage(String file, long places, long size) {
            this.file = file;
            this.places = places;
            this.size = size;
        }
    }

    /** The application's, on its driver. From the first call on, jobs that passed something over end with a warning in the driver's log. */
    public static DamageTotals of(SparkContext context) {
        synchronized (APPLICATIONS) {
            DamageTotals totals = APPLICATIONS.get(context);
            if (totals == null) {
                totals = new DamageTotals();
                context.register(totals);
                context.addSparkListener(new Teller(totals));
                APPLICATIONS.put(context, totals);
            }
            return totals;
        }
    }

    /** For each file its places, bytes and URI with a space between them and a NUL behind. */
    public synchronized String text() {
        StringBuilder text = new StringBuilder();
        files.forEach((file, sums) -> text.append(sums[0]).append(' ').append(sums[1]).append(' ').append(file).append('\0'));
        return text.toString();
    }

    @Override
    public synchronized boolean isZero() {
        return files.isEmpty();
    }

    @Override
    public synchronized DamageTotals copy() {
        DamageTotals copy = new DamageTotals();
        copy.merge(this);
        return copy;
    }

    @Override
    public synchronized void reset() {
        files.clear();
    }

    @Override
    public synchronized void add(Damage damage) {
        add(damage.file, damage.places, damage.size);
    }

    private void add(String file, long places, long size) {
        long[] sums = files.computeIfAbsent(file, name -> new long[2]);
        sums[0] += places;
        sums[1] += size;
    }

    @Override
    public synchronized void merge(AccumulatorV2<Damage, String> other) {
        ((DamageTotals) other).files.forEach((file, sums) -> add(file, sums[0], sums[1]));
    }

    /** In words. */
    @Override
    public synchronized String value() {
        long places = 0;
        long size = 0;
        for (long[] sums : files.values()) {
            places += sums[0];
            size += sums[1];
        }
        return places + " places, " + size + " bytes, in " + files.size() + " files";
    }

    /** What is in this and was not yet in {@code earlier}. */
    private synchronized DamageTotals since(DamageTotals earlier) {
        DamageTotals added = new DamageTotals();
        files.forEach((file, sums) -> {
            long[] known = earlier.files.getOrDefault(file, new long[2]);
            if (sums[0] > known[0]) {
                added.add(file, sums[0] - known[0], sums[1] - known[1]);
            }
        });
        return added;
    }

    /** Warns at the end of a job. Jobs that run at the same time are told of together. */
    private static final class Teller extends SparkListener {
        private static final Logger LOG = LoggerFactory.getLogger(DamageTotals.class);

        private final DamageTotals totals;
        private DamageTotals told = new DamageTotals();

        Teller(DamageTotals totals) {
            this.totals = totals;
        }

        @Override
        public void onJobEnd(SparkListenerJobEnd event) {
            DamageTotals present = totals.copy();
            DamageTotals added = present.since(told);
            told = present;
            if (!added.isZero()) {
                String names = String.join(", ", added.files.keySet().stream().limit(FILES_TOLD).toArray(String[]::new));
                LOG.warn("tfrecord: passed over damage: {}: {}{}", added.value(), names, added.files.size() > FILES_TOLD ? ", ..." : "");
            }
        }
    }
}
