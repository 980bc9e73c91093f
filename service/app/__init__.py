"""The application: where concrete parts are chosen, put together and run."""
