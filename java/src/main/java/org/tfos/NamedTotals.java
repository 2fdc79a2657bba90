// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.WeakHashMap;
import java.util.function.Consumer;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.util.AccumulatorV2;
import org.apache.spark.util.CollectionAccumulator;

/**
 * Two sums for each name. The driver's are those of the tasks of an application that have succeeded. Tasks have a plain {@code CollectionAccumulator}
 * of {@link #item}s, because a driver of Spark Connect takes their results where the classes of a session's jars are not known.
 */
public final class NamedTotals extends CollectionAccumulator<String> {
    private static final long serialVersionUID = 1L;

    private final TreeMap<String, long[]> sums = new TreeMap<>();

    private NamedTotals() {}

    /** What a task adds to the sums of a name. */
    static String item(String name, long first, long second) {
        return first + " " + second + " " + name;
    }

    /** The totals of one kind, for each application on its driver. */
    static final class Kind {
        private final Map<SparkContext, NamedTotals> applications = new WeakHashMap<>();
        private final Consumer<NamedTotals> reporter;

        /** @param reporter is given what has been added at the end of each job that has added something; jobs at the same time count together */
        Kind(Consumer<NamedTotals> reporter) {
            this.reporter = reporter;
        }

        /** Those of an application; the reporter is called from the first call on. */
        synchronized NamedTotals of(SparkContext context) {
            NamedTotals totals = applications.get(context);
            if (totals == null) {
                totals = new NamedTotals();
                context.register(totals);
                context.addSparkListener(new Listener(totals, reporter));
                applications.put(context, totals);
            }
            return totals;
        }
    }

    /** For each name its two sums and itself, with a space between them and a NUL behind. */
    public synchronized String text() {
        StringBuilder text = new StringBuilder();
        sums.forEach((name, pair) -> text.append(pair[0]).append(' ').append(pair[1]).append(' ').append(name).append('\0'));
        return text.toString();
    }

    /** The sums by name, in the order of names; to be read only. */
    synchronized Map<String, long[]> sums() {
        return sums;
    }

    /** The sums over all names. */
    synchronized long[] total() {
        long[] total = new long[2];
        sums.values().forEach(pair -> {
            total[0] += pair[0];
            total[1] += pair[1];
        });
        return total;
    }

    @Override
    public synchronized boolean isZero() {
        return sums.isEmpty();
    }

    @Override
    public synchronized NamedTotals copy() {
        NamedTotals copy = new NamedTotals();
        sums.forEach((name, pair) -> copy.add(name, pair[0], pair[1]));
        return copy;
    }

    private void add(String name, long first, long second) {
        long[] pair = sums.computeIfAbsent(name, unused -> new long[2]);
        pair[0] += first;
        pair[1] += second;
    }

    /** Takes the items of a task. */
    @Override
    public synchronized void merge(AccumulatorV2<String, List<String>> task) {
        for (String item : task.value()) {
            String[] parts = item.split(" ", 3);
            add(parts[2], Long.parseLong(parts[0]), Long.parseLong(parts[1]));
        }
    }

    /** What is in this and was not yet in {@code earlier}. */
    private synchronized NamedTotals since(NamedTotals earlier) {
        NamedTotals added = new NamedTotals();
        sums.forEach((name, pair) -> {
            long[] known = earlier.sums.getOrDefault(name, new long[2]);
            if (pair[0] > known[0]) {
                added.add(name, pair[0] - known[0], pair[1] - known[1]);
            }
        });
        return added;
    }

    private static final class Listener extends SparkListener {
        private final NamedTotals totals;
        private final Consumer<NamedTotals> reporter;
        private NamedTotals reported = new NamedTotals();

        Listener(NamedTotals totals, Consumer<NamedTotals> reporter) {
            this.totals = totals;
            this.reporter = reporter;
        }

        @Override
        public void onJobEnd(SparkListenerJobEnd event) {
            NamedTotals present = totals.copy();
            NamedTotals added = present.since(reported);
            reported = present;
            if (!added.isZero()) {
                reporter.accept(added);
            }
        }
    }
}
