-- insert: one row at the end of a random table, whose id the server makes. Text protocol, as the
-- field runs it, autocommit.

local schema = require("schema")

-- MySQL's family makes an id where it is given 0, PostgreSQL where it is given none.
local FOR_MYSQL = "INSERT INTO %s (id, k, c, pad) VALUES (0, %d, '%s', '%s')"
local FOR_POSTGRES = "INSERT INTO %s (k, c, pad) VALUES (%d, '%s', '%s')"
local connection
local text

function thread_init()
  connection = schema.connect()
  text = schema.is_postgres() and FOR_POSTGRES or FOR_MYSQL
end

function event()
  connection:query(string.format(text,
    schema.table_name(sysbench.rand.uniform(1, sysbench.opt.tables)),
    schema.random_id(),
    sysbench.rand.string(schema.C_TEMPLATE),
    sysbench.rand.string(schema.PAD_TEMPLATE)))
end

function thread_done()
  connection:disconnect()
end
