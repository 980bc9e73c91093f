-- The schema that every workload here works on, and the client's shared parts.
-- Tables sbtest1..sbtestN: id (primary key), k (indexed), c (119 digits and dashes), pad (59).

sysbench.cmdline.options = {
  tables = {"Number of tables", 1},
  table_size = {"Rows in each table", 10000},
  load_seed = {"Seed of the rows that are loaded", 1},
}

local schema = {}

schema.database = "sbtest"

function schema.table_name(number)
  return string.format("%s.sbtest%d", schema.database, number)
end

function schema.random_id()
  return sysbench.rand.uniform(1, sysbench.opt.table_size)
end

function schema.connect()
  return sysbench.sql.driver():connect()
end

-- Defines the events of a workload that runs one prepared statement per event, with a uniform id as
-- its only parameter. `text` holds %s where the table's name goes.
function schema.one_statement_by_id(text)
  local connection
  local prepared = {}

  function thread_init()
    connection = schema.connect()
    for number = 1, sysbench.opt.tables do
      local statement = connection:prepare(string.format(text, schema.table_name(number)))
      local id = statement:bind_create(sysbench.sql.type.INT)
      statement:bind_param(id)
      prepared[number] = {statement = statement, id = id}
    end
  end

  function event()
    local one = prepared[sysbench.rand.uniform(1, sysbench.opt.tables)]
    one.id:set(schema.random_id())
    one.statement:execute()
  end

  function thread_done()
    for _, one in ipairs(prepared) do
      one.statement:close()
    end
    connection:disconnect()
  end
end

return schema
