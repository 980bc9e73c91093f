-- update-index: changes an indexed column of one row by primary key, so the secondary index follows.
-- Server-side prepared statement, autocommit.

require("schema").one_statement_by_id("UPDATE %s SET k = k + 1 WHERE id = ?")
