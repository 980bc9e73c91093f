-- scan: reads every row of one table and returns none. Text protocol, as the field runs it.

local schema = require("schema")
local connection
local number = 0

function thread_init()
  connection = schema.connect()
end

function event()
  number = number % sysbench.opt.tables + 1
  connection:query(string.format("SELECT * FROM %s WHERE LENGTH(c) < 0",
    schema.table_name(number)))
end

function thread_done()
  connection:disconnect()
end
