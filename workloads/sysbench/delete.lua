-- delete: one row by primary key, a uniform id, so that it finds fewer and fewer rows.
-- Server-side prepared statement, autocommit.

require("schema").one_statement_by_id("DELETE FROM %s WHERE id = ?")
