-- Prepared statements of the workloads: one for each table, and events that run one of them.

local schema = require("schema")

local statements = {}

-- Kinds of parameters: a number, and the two texts of a row.
statements.NUMBER = "number"
statements.C = "c"
statements.PAD = "pad"

local function parameter(statement, kind)
  if kind == statements.NUMBER then
    return statement:bind_create(sysbench.sql.type.INT)
  end
  local length = kind == statements.C and #schema.C_TEMPLATE or #schema.PAD_TEMPLATE
  return statement:bind_create(sysbench.sql.type.CHAR, length)
end

-- Returns a list of placeholders, such as "?, ?, ?", and the kinds of that many numbers.
function statements.numbers(count)
  local kinds = {}
  for position = 1, count do
    kinds[position] = statements.NUMBER
  end
  return string.rep("?", count, ", "), kinds
end

-- Prepares `text`, which holds %s where the table's name goes, for every table. Returns, by the
-- table's number, the statement and its parameters in order.
function statements.prepare(connection, text, kinds)
  local prepared = {}
  for number = 1, sysbench.opt.tables do
    local statement = schema.prepare(connection, string.format(text, schema.table_name(number)))
    local parameters = {}
    for position, kind in ipairs(kinds) do
      parameters[position] = parameter(statement, kind)
    end
    if #parameters > 0 and statement:bind_param(unpack(parameters)) ~= 0 then
      -- PostgreSQL's driver prepares only now; it has said what the server thinks of it.
      error("the server does not take: " .. text)
    end
    prepared[number] = {statement = statement, parameters = parameters}
  end
  return prepared
end

function statements.close(prepared)
  for _, one in ipairs(prepared) do
    one.statement:close()
  end
end

-- Defines the events of a workload that runs one prepared statement per event, on a random table.
-- `describe` returns the statement's text and the kinds of its parameters, once the options are
-- known; `fill` sets the parameters.
function statements.one_per_event(describe, fill)
  local connection
  local prepared

  function thread_init()
    connection = schema.connect()
    prepared = statements.prepare(connection, describe())
  end

  function event()
    local one = prepared[sysbench.rand.uniform(1, sysbench.opt.tables)]
    fill(one.parameters)
    one.statement:execute()
  end

  function thread_done()
    statements.close(prepared)
    connection:disconnect()
  end
end

return statements
