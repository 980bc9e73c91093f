-- Transactions: points, ranges and the four writes, as far as the options ask for them, all on one
-- random table. Every statement is a prepared one, BEGIN and COMMIT too.

local schema = require("schema")
local statements = require("statements")

sysbench.cmdline.options.point_selects = {"Points in a transaction", 10}
sysbench.cmdline.options.kinds = {"Ranges in a transaction, in order", "simple,sum,order,distinct"}
sysbench.cmdline.options.range = {"Rows in each range", 100}
sysbench.cmdline.options.writes = {"Change, delete and insert rows as well", false}
sysbench.cmdline.options.transaction = {"Between BEGIN and COMMIT", true}

local NUMBER, C, PAD = statements.NUMBER, statements.C, statements.PAD

local POINT = {"SELECT c FROM %s WHERE id = ?", NUMBER}
local RANGES = {
  simple = "SELECT c FROM %s WHERE id BETWEEN ? AND ?",
  sum = "SELECT SUM(k) FROM %s WHERE id BETWEEN ? AND ?",
  order = "SELECT c FROM %s WHERE id BETWEEN ? AND ? ORDER BY c",
  distinct = "SELECT DISTINCT c FROM %s WHERE id BETWEEN ? AND ? ORDER BY c",
  count = "SELECT COUNT(c) FROM %s WHERE id BETWEEN ? AND ?",
}
local UPDATE_K = {"UPDATE %s SET k = k + 1 WHERE id = ?", NUMBER}
local UPDATE_C = {"UPDATE %s SET c = ? WHERE id = ?", C, NUMBER}
local DELETE = {"DELETE FROM %s WHERE id = ?", NUMBER}
local INSERT = {"INSERT INTO %s (id, k, c, pad) VALUES (?, ?, ?, ?)", NUMBER, NUMBER, C, PAD}

local connection
-- Statements that have no table.
local begin, commit
-- In the order of the transaction: statements, how their parameters are set, how often they run.
local steps = {}

local function step(definition, fill, times)
  local kinds = {unpack(definition, 2)}
  steps[#steps + 1] = {
    prepared = statements.prepare(connection, definition[1], kinds),
    fill = fill,
    times = times or 1,
  }
end

local function any_id(parameters)
  parameters[1]:set(schema.random_id())
end

local function any_range(parameters)
  local range = sysbench.opt.range
  local first = sysbench.rand.uniform(1, sysbench.opt.table_size - range + 1)
  parameters[1]:set(first)
  parameters[2]:set(first + range - 1)
end

local function new_c(parameters)
  parameters[1]:set_rand_str(schema.C_TEMPLATE)
  parameters[2]:set(schema.random_id())
end

-- Adds the writes: the row that is deleted is inserted again with other values.
local function add_writes()
  local deleted
  step(UPDATE_K, any_id)
  step(UPDATE_C, new_c)
  step(DELETE, function(parameters)
    deleted = schema.random_id()
    parameters[1]:set(deleted)
  end)
  step(INSERT, function(parameters)
    parameters[1]:set(deleted)
    parameters[2]:set(schema.random_id())
    parameters[3]:set_rand_str(schema.C_TEMPLATE)
    parameters[4]:set_rand_str(schema.PAD_TEMPLATE)
  end)
end

function thread_init()
  connection = schema.connect()
  if sysbench.opt.transaction then
    begin = schema.prepare(connection, "BEGIN")
    commit = schema.prepare(connection, "COMMIT")
  end
  if sysbench.opt.point_selects > 0 then
    step(POINT, any_id, sysbench.opt.point_selects)
  end
  for kind in sysbench.opt.kinds:gmatch("%a+") do
    if kind ~= "none" then
      step({assert(RANGES[kind], "no such range: " .. kind), NUMBER, NUMBER}, any_range)
    end
  end
  if sysbench.opt.writes then
    add_writes()
  end
end

function event()
  local number = sysbench.rand.uniform(1, sysbench.opt.tables)
  if begin then
    begin:execute()
  end
  for _, one in ipairs(steps) do
    local prepared = one.prepared[number]
    for _ = 1, one.times do
      one.fill(prepared.parameters)
      prepared.statement:execute()
    end
  end
  if commit then
    commit:execute()
  end
end

-- After a lock wait that took too long, the next BEGIN would commit half of a transaction.
function sysbench.hooks.before_restart_event()
  connection:query("ROLLBACK")
end

function thread_done()
  for _, one in ipairs(steps) do
    statements.close(one.prepared)
  end
  if begin then
    begin:close()
    commit:close()
  end
  connection:disconnect()
end
