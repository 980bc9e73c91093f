-- Counts the rows of the dataset: `sysbench count.lua count` prints "rows of TABLE: N" per table.

local schema = require("schema")

function count()
  local connection = schema.connect()
  for number = 1, sysbench.opt.tables do
    local name = schema.table_name(number)
    local row = connection:query_row("SELECT COUNT(*) FROM " .. name)
    print(string.format("rows of %s: %d", name, row))
  end
  connection:disconnect()
end

sysbench.cmdline.commands = {count = {count}}
