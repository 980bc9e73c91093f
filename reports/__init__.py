"""The words: verdicts and numbers become tables, sentences and charts.

Formatting only. Values of `results`, `workloads` and `detectors` come in; text, Rich renderables
and Vega-Lite dictionaries go out. This room decides nothing, opens nothing and knows no store.
"""
