"""The web: what people and runners see of the service over HTTP."""
