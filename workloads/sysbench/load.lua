-- Loads the dataset: `sysbench load.lua prepare`. Rows come from Lua's own generator with a fixed
-- seed, because sysbench leaves its generator unseeded outside of `run`: equal calls load equal rows.

local schema = require("schema")

-- Ten groups of eleven digits, and five: lengths 119 and 59.
local C_TEMPLATE = string.rep("###########", 10, "-")
local PAD_TEMPLATE = string.rep("###########", 5, "-")

local CREATE = [[CREATE TABLE %s (
  id INT NOT NULL AUTO_INCREMENT,
  k INT DEFAULT 0 NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  PRIMARY KEY (id))]]

-- Replaces each # of a template by a digit.
local function digits(template)
  return (template:gsub("#", function() return math.random(0, 9) end))
end

local function load_table(connection, number)
  local name = schema.table_name(number)
  connection:query(string.format(CREATE, name))
  connection:bulk_insert_init(string.format("INSERT INTO %s (k, c, pad) VALUES", name))
  for _ = 1, sysbench.opt.table_size do
    connection:bulk_insert_next(string.format("(%d, '%s', '%s')",
      math.random(1, sysbench.opt.table_size),
      digits(C_TEMPLATE),
      digits(PAD_TEMPLATE)))
  end
  connection:bulk_insert_done()
  connection:query(string.format("CREATE INDEX k_%d ON %s (k)", number, name))
  connection:query("ANALYZE TABLE " .. name)
end

function prepare()
  math.randomseed(sysbench.opt.load_seed)
  local connection = schema.connect()
  connection:query("CREATE DATABASE IF NOT EXISTS " .. schema.database)
  for number = 1, sysbench.opt.tables do
    load_table(connection, number)
  end
  connection:disconnect()
end

sysbench.cmdline.commands = {prepare = {prepare}}
