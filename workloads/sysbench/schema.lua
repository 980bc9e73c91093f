-- The schema that every workload here works on, and the client's shared parts.
-- Tables sbtest1..sbtestN: id (primary key), k (indexed), c (119 digits and dashes), pad (59).

sysbench.cmdline.options = {
  tables = {"Number of tables", 1},
  table_size = {"Rows in each table", 10000},
  load_seed = {"Seed of the rows that are loaded", 1},
}

local schema = {}

-- A database where the server is of MySQL's family, a schema where it is PostgreSQL.
schema.database = "sbtest"

-- Ten groups of eleven digits, and five: lengths 119 and 59. Each # becomes a digit.
schema.C_TEMPLATE = string.rep("###########", 10, "-")
schema.PAD_TEMPLATE = string.rep("###########", 5, "-")

local driver

-- Returns the client library, the same one every time.
function schema.driver()
  driver = driver or sysbench.sql.driver()
  return driver
end

function schema.is_postgres()
  return schema.driver():name() == "pgsql"
end

function schema.table_name(number)
  return string.format("%s.sbtest%d", schema.database, number)
end

function schema.random_id()
  return sysbench.rand.uniform(1, sysbench.opt.table_size)
end

function schema.connect()
  return schema.driver():connect()
end

-- Returns a prepared statement, or stops; the client library has said by then what the server said.
function schema.prepare(connection, text)
  local statement = connection:prepare(text)
  if statement == nil then
    error("the server does not take: " .. text)
  end
  return statement
end

-- Defines the events of a workload that runs one prepared statement per event, with a uniform id as
-- its only parameter. `text` holds %s where the table's name goes.
function schema.one_statement_by_id(text)
  local connection
  local prepared = {}

  function thread_init()
    connection = schema.connect()
    for number = 1, sysbench.opt.tables do
      local statement = schema.prepare(connection, string.format(text, schema.table_name(number)))
      local id = statement:bind_create(sysbench.sql.type.INT)
      assert(statement:bind_param(id) == 0, "the server does not take: " .. text)
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
