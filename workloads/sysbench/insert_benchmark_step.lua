-- One step of the Insert Benchmark. A client has one table and, by step, one to three connections,
-- each a thread with a role: it inserts, deletes, asks, or makes the indexes. Each role counts and
-- times its own statements and says so at the end in a line that begins with "insert-benchmark":
-- sysbench itself would throw roles together, and count as time what a role waits for its turn.

local ffi = require("ffi")
local clock = require("clock")
local schema = require("schema")
local insert_benchmark = require("insert_benchmark_schema")
local record = require("insert_benchmark_record")
local shared = require("insert_benchmark_shared")

local options = sysbench.cmdline.options
options.step = {"load, index, churn (inserts and deletes), or query", "load"}
options.connections = {"Connections of a client: 1 for load and index, 2 for churn, 3 for query", 1}
options.batch = {"Rows of a statement that inserts or deletes", 100}
options.share = {"Rows that churn inserts and deletes, as a share of --table-size", 0.8}
options.rows_per_second = {"Rows that query inserts and deletes, for each client", 100}
options.query = {"What query asks: range or point", "range"}

-- What the threads of a client do, by step.
local ROLES = {
  load = {"insert"},
  index = {"index"},
  churn = {"insert", "delete"},
  query = {"query", "insert", "delete"},
}
-- So many statements may inserts be ahead of deletes, so that the table keeps its size.
local AHEAD_MAX = 8
-- The lowest id is asked for again after so many deletes: that query shows what the server has
-- kept of the rows that are gone.
local RESYNCHRONISE_AFTER = 1000
local POINT_IDS = 10
local RANGE_ROWS = 10
local POLL_S = 0.0001

local connection
local role, number, mine

local function clients()
  local opt = sysbench.opt
  assert(#(ROLES[opt.step] or {}) == opt.connections, "--connections does not fit --step")
  assert(opt.threads % opt.connections == 0, "--threads is no multiple of --connections")
  assert(opt.threads / opt.connections == opt.tables, "every client needs a table of its own")
  return opt.tables
end

init = shared.allocate

function thread_init(thread_id)
  clients()
  number = math.floor(thread_id / sysbench.opt.connections) + 1
  role = ROLES[sysbench.opt.step][thread_id % sysbench.opt.connections + 1]
  mine = shared.of_client(number)
  connection = schema.connect()
  local table_name = insert_benchmark.table_name(number)
  if role == "insert" then
    mine.newest =
      insert_benchmark.number(connection, "SELECT MAX(transactionid) FROM " .. table_name) or 0
  elseif role == "delete" then
    mine.oldest =
      insert_benchmark.number(connection, "SELECT MIN(transactionid) FROM " .. table_name) or 1
  end
end

-- Runs one statement until the server takes it, and counts it.
local function execute(text, rows)
  ffi.C.sb_event_start(sysbench.tid)
  local began = clock.now()
  while true do
    local is_done, problem = pcall(connection.query, connection, text)
    if is_done then
      break
    end
    -- A deadlock or a lock that was waited for too long; one statement is one transaction.
    if type(problem) ~= "table" or problem.errcode ~= sysbench.error.RESTART_EVENT then
      error(problem, 0)
    end
    record.retry()
  end
  record.add(began, rows)
  ffi.C.sb_event_stop(sysbench.tid)
end

local function random_row(stamp)
  local random = sysbench.rand.uniform
  local length = random(10, 20)
  local drawn = math.floor(length / 2)
  return string.format("('%s',%d,%d,%d,%d,'%s%s')", stamp,
    random(1, insert_benchmark.REGISTERS), random(1, insert_benchmark.CUSTOMERS),
    random(1, insert_benchmark.PRODUCTS), random(1, insert_benchmark.PRICES),
    sysbench.rand.string(string.rep("@", drawn)), string.rep("a", length - drawn))
end

local function insert(rows)
  local values, stamp = {}, os.date("%Y-%m-%d %H:%M:%S")
  for at = 1, rows do
    values[at] = random_row(stamp)
  end
  execute(string.format(
    "INSERT INTO %s (dateandtime, cashregisterid, customerid, productid, price, data) VALUES %s",
    insert_benchmark.table_name(number), table.concat(values, ",")), rows)
  mine.newest = mine.newest + rows
  mine.inserted = mine.inserted + rows
end

local function delete(rows)
  local name = insert_benchmark.table_name(number)
  local oldest = string.format("WHERE transactionid >= %.0f ORDER BY transactionid LIMIT %d",
    mine.oldest, rows)
  if schema.is_postgres() then
    execute(string.format(
      "DELETE FROM %s WHERE transactionid IN (SELECT transactionid FROM %s %s)", name, name,
      oldest), rows)
  else
    execute(string.format("DELETE FROM %s %s", name, oldest), rows)
  end
  mine.oldest = mine.oldest + rows
  mine.deleted = mine.deleted + rows
  if record.statements() % RESYNCHRONISE_AFTER == 0 then
    mine.oldest =
      insert_benchmark.number(connection, "SELECT MIN(transactionid) FROM " .. name) or mine.oldest
  end
end

-- Waits until the other role of this client has come far enough; returns false where the time is up
-- or another thread has failed.
local function wait_for_turn(rows, is_over)
  while not is_over() do
    local ahead = mine.inserted - mine.deleted
    if role == "insert" and (ahead < AHEAD_MAX * sysbench.opt.batch or sysbench.opt.step == "load")
      or role == "delete" and ahead >= rows then
      return true
    end
    clock.sleep(POLL_S)
  end
  return false
end

local function change(rows)
  if role == "insert" then
    insert(rows)
  else
    delete(rows)
  end
end

-- Inserts or deletes so many rows as fast as the server takes them.
local function change_all(rows)
  local left = rows
  while left > 0 do
    local batch = math.min(left, sysbench.opt.batch)
    if not wait_for_turn(batch, shared.has_failed) then
      return
    end
    change(batch)
    left = left - batch
  end
end

-- Inserts or deletes so many rows in each second: all at its beginning, then it sleeps. What a
-- second did not manage is not made up for, or a stall would be followed by a burst.
local function change_by_second(rows, seconds)
  local second = 0
  while second < seconds and not shared.has_failed() do
    local ends = second + 1
    local function is_over()
      return record.passed() >= ends or shared.has_failed()
    end
    local left = rows
    while left > 0 do
      local batch = math.min(left, sysbench.opt.batch)
      if not wait_for_turn(batch, is_over) then
        break
      end
      change(batch)
      left = left - batch
    end
    clock.sleep(ends - record.passed())
    second = math.max(ends, math.floor(record.passed()))
  end
end

local function range_text(index, placeholder)
  local first = index[2]:match("^%w+")
  local force = schema.is_postgres() and ""
    or string.format("FORCE INDEX (%s) ", insert_benchmark.index_name(number, index))
  return string.format("SELECT %s FROM %s %sWHERE %s >= %s ORDER BY %s LIMIT %d", index[2],
    insert_benchmark.table_name(number), force, first, placeholder, index[2], RANGE_ROWS)
end

local function point_text(ids)
  return string.format("SELECT transactionid, productid, data FROM %s WHERE transactionid IN (%s)",
    insert_benchmark.table_name(number), table.concat(ids, ","))
end

-- Returns ids that are there and will be for a while: what is about to be deleted is left out.
local function live_ids()
  local newest = mine.newest
  local from = math.min(mine.oldest + (AHEAD_MAX + 2) * sysbench.opt.batch, newest)
  local ids = {}
  for at = 1, POINT_IDS do
    ids[at] = string.format("%.0f", from + sysbench.rand.uniform(0, newest - from))
  end
  return ids
end

-- Prepares a statement with integer parameters; PostgreSQL only, as the field runs it.
local function prepared(text, parameters)
  local statement = schema.prepare(connection, text)
  local bound = {}
  for at = 1, parameters do
    bound[at] = statement:bind_create(sysbench.sql.type.BIGINT)
  end
  assert(statement:bind_param(unpack(bound)) == 0, "the server does not take: " .. text)
  return function(values)
    for at, value in ipairs(values) do
      bound[at]:set(tonumber(value))
    end
    local began = clock.now()
    statement:execute()
    record.add(began, 1)
  end
end

-- Returns a function that asks once.
local function asking()
  local ask = {}
  if sysbench.opt.query == "point" then
    if schema.is_postgres() then
      local placeholders = {}
      for at = 1, POINT_IDS do
        placeholders[at] = "?"
      end
      local run = prepared(point_text(placeholders), POINT_IDS)
      return function() run(live_ids()) end
    end
    return function() execute(point_text(live_ids()), 1) end
  end
  for at, index in ipairs(insert_benchmark.INDEXES) do
    if schema.is_postgres() then
      local run = prepared(range_text(index, "?"), 1)
      ask[at] = function(value) run({value}) end
    else
      ask[at] = function(value) execute(range_text(index, tostring(value)), 1) end
    end
  end
  return function()
    local at = sysbench.rand.uniform(1, #ask)
    ask[at](sysbench.rand.uniform(1, insert_benchmark.INDEXES[at][3]))
  end
end

local function ask_until(seconds)
  local ask = asking()
  record.start()
  while record.passed() < seconds and not shared.has_failed() do
    ask()
  end
end

-- A hundred rows first, as the field does; then all that were loaded are indexed.
local function make_indexes()
  insert(sysbench.opt.batch)
  record.start()
  local began = clock.now()
  insert_benchmark.create_indexes(connection, number)
  record.add(began, sysbench.opt.table_size + sysbench.opt.batch)
end

local function work()
  local opt = sysbench.opt
  record.start()
  if role == "index" then
    make_indexes()
  elseif role == "query" then
    ask_until(opt.time)
  elseif opt.step == "query" then
    change_by_second(opt.rows_per_second, opt.time)
  elseif opt.step == "churn" then
    change_all(math.floor(opt.table_size * opt.share + 0.5))
  else
    change_all(opt.table_size)
  end
  record.stop()
end

-- Instead of sysbench's loop of events: load, index and churn end when their work is done and not
-- when --time is over.
function thread_run()
  local is_done, problem = pcall(work)
  if not is_done then
    shared.fail()
    error(problem, 0)
  end
end

-- The server must have done what it said.
local function check_deleted()
  local found = insert_benchmark.number(connection,
    "SELECT MIN(transactionid) FROM " .. insert_benchmark.table_name(number))
  assert(found == nil or found >= mine.oldest, string.format(
    "row %.0f is still there; the server said that all before %.0f were deleted", found or 0,
    mine.oldest))
end

function thread_done()
  if not shared.has_failed() then
    if role == "delete" then
      check_deleted()
    end
    record.print(role, number)
  end
  connection:disconnect()
end

-- Never called; sysbench looks whether it is there.
function event()
end
