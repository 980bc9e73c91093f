"""The document: what the runner writes and the service reads.

Metrics, the run document and the identity of a series. This room knows neither statistics nor
databases; it defines words and a JSON format that both sides can rely on.
"""
