"""The store: tables, and one module of queries per noun; rows never leave this room."""
