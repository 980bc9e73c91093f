-- Makes the empty tables of the Insert Benchmark: `sysbench insert_benchmark_load.lua prepare`. The
-- first measured step loads the rows. `count` prints "rows of TABLE: N".

local schema = require("schema")
local insert_benchmark = require("insert_benchmark_schema")

function prepare()
  local connection = schema.connect()
  connection:query(string.format("CREATE %s IF NOT EXISTS %s",
    schema.is_postgres() and "SCHEMA" or "DATABASE", schema.database))
  for number = 1, sysbench.opt.tables do
    insert_benchmark.create(connection, number)
  end
  connection:disconnect()
end

function count()
  local connection = schema.connect()
  for number = 1, sysbench.opt.tables do
    local name = insert_benchmark.table_name(number)
    print(string.format("rows of %s: %d", name,
      insert_benchmark.number(connection, "SELECT COUNT(*) FROM " .. name)))
  end
  connection:disconnect()
end

sysbench.cmdline.commands = {prepare = {prepare}, count = {count}}
