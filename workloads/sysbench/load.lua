-- Loads the dataset: `sysbench load.lua prepare`. Rows come from Lua's own generator with a fixed
-- seed, because sysbench leaves its generator unseeded outside of `run`: equal calls load equal rows.
-- With --primary-key=off an index that is not unique takes the primary key's place.

local ffi = require("ffi")
local schema = require("schema")

ffi.cdef[[
typedef struct { long seconds, nanoseconds; } forkwatch_moment;
int clock_gettime(int clock, forkwatch_moment *moment);
]]

sysbench.cmdline.options.storage_engine = {"Storage engine, the server's default if empty", ""}
sysbench.cmdline.options.primary_key = {"Make id the primary key", true}

local COLUMNS = [[CREATE TABLE %s (
  id %s,
  k INT DEFAULT 0 NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL%s)%s]]

-- Replaces each # of a template by a digit.
local function digits(template)
  return (template:gsub("#", function() return math.random(0, 9) end))
end

-- Returns the statement that makes a table in the dialect of MySQL's family.
local function create_for_mysql(number)
  local key = sysbench.opt.primary_key and "PRIMARY KEY" or string.format("KEY id_%d", number)
  local engine = sysbench.opt.storage_engine
  return string.format(COLUMNS,
    schema.table_name(number),
    "INT NOT NULL AUTO_INCREMENT",
    string.format(",\n  %s (id)", key),
    engine and engine ~= "" and " ENGINE = " .. engine or "")
end

-- Returns the statement that makes a table in PostgreSQL; it takes no plain index in there.
local function create_for_postgres(number)
  return string.format(COLUMNS,
    schema.table_name(number),
    "SERIAL NOT NULL",
    sysbench.opt.primary_key and ",\n  PRIMARY KEY (id)" or "",
    "")
end

-- Makes the indexes that are made after the rows.
local function create_indexes(connection, number)
  local name = schema.table_name(number)
  if schema.is_postgres() and not sysbench.opt.primary_key then
    connection:query(string.format("CREATE INDEX id_%d ON %s (id)", number, name))
  end
  connection:query(string.format("CREATE INDEX k_%d ON %s (k)", number, name))
end

-- Returns the time of the clock that nobody sets (CLOCK_MONOTONIC), in seconds.
local function now()
  local moment = ffi.new("forkwatch_moment")
  ffi.C.clock_gettime(1, moment)
  return tonumber(moment.seconds) + tonumber(moment.nanoseconds) / 1e9
end

local function load_table(connection, number)
  local name = schema.table_name(number)
  local postgres = schema.is_postgres()
  connection:query(postgres and create_for_postgres(number) or create_for_mysql(number))
  local began = now()
  connection:bulk_insert_init(string.format("INSERT INTO %s (k, c, pad) VALUES", name))
  for _ = 1, sysbench.opt.table_size do
    connection:bulk_insert_next(string.format("(%d, '%s', '%s')",
      math.random(1, sysbench.opt.table_size),
      digits(schema.C_TEMPLATE),
      digits(schema.PAD_TEMPLATE)))
  end
  connection:bulk_insert_done()
  local loaded = now()
  create_indexes(connection, number)
  print(string.format("seconds of %s: %.3f for rows, %.3f for indexes", name, loaded - began,
    now() - loaded))
  -- Without its map of visible rows, PostgreSQL would look into the table for every covered query.
  connection:query((postgres and "VACUUM (ANALYZE) " or "ANALYZE TABLE ") .. name)
end

function prepare()
  math.randomseed(sysbench.opt.load_seed)
  local connection = schema.connect()
  local kind = schema.is_postgres() and "SCHEMA" or "DATABASE"
  connection:query(string.format("CREATE %s IF NOT EXISTS %s", kind, schema.database))
  for number = 1, sysbench.opt.tables do
    load_table(connection, number)
  end
  connection:disconnect()
end

sysbench.cmdline.commands = {prepare = {prepare}}
