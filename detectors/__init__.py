"""Statistics for benchmark results: arrays in, signed changes and verdicts out.

    detectors.changepoints.find_changes(values)      where a history changed
    detectors.changepoints.examine(values)           the same with drift, spikes, noise, warnings
    detectors.streaming.ChangeStream()               the same, one more commit at a time
    detectors.noise.estimate_noise(history)          how noisy a series is, level by level
    detectors.shrinkage.prior_from(models)           what other workloads say of that
    detectors.replication.starts_for_pair(...)       how many starts an effect takes
    detectors.predictive.predict(history, run)       one new run against the stored baseline
    detectors.pairwise.compare(baseline, candidate)  two artifacts measured side by side
    detectors.sequential.look(baseline, candidate)   the same, looked at after every start
    detectors.confirmation.watch(...)                commits with re-runs of the suspicious ones
    detectors.multiplicity.adjust(p_values)          many tests at once
    detectors.pooling.pool(differences)              a suite as a whole
    detectors.bisection.Bisection(n_commits)         which commit it was
    detectors.verdict.decide(change, ...)            a change judged by a direction and a gate
    detectors.synthetic                              noise of every kind, for tests and benchmarks

This package knows numbers only. It never sees a row, a name, a clock or a socket, and takes its
random generator as an argument. Warnings are part of a result, never log lines; too little data is
a warning and an `inconclusive` verdict, never an exception. Bad input (infinities, zeros, negative
numbers, nothing at all) is refused at the door with `DataError`; NaN means a missing slice or run.
"""
