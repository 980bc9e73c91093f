"""Statistics for benchmark results: arrays in, signed changes and verdicts out.

    detectors.noise.estimate_noise(history)        how noisy a series is, level by level
    detectors.predictive.predict(history, run)     one new run against the stored baseline
    detectors.pairwise.compare(baseline, candidate)  two artifacts measured side by side
    detectors.verdict.decide(change, ...)          a change judged by a direction and a gate

This package knows numbers only. It never sees a row, a name, a clock or a socket, and takes its
random generator as an argument. Warnings are part of a result, never log lines; too little data is
a warning and an `inconclusive` verdict, never an exception. Bad input (infinities, zeros, negative
numbers, nothing at all) is refused at the door with `DataError`; NaN means a missing slice.
"""
