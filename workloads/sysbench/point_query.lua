-- point-query: one row by primary key, server-side prepared statement, autocommit.

require("schema").one_statement_by_id("SELECT c FROM %s WHERE id = ?")
