-- Points by a list: SELECT some columns of the rows whose key is in a list of --range values.
-- Uniform values, or with --hot=on always the same ones in a row, from the middle of the table.

local schema = require("schema")
local statements = require("statements")

sysbench.cmdline.options.range = {"Values in the list", 100}
sysbench.cmdline.options.columns = {"Columns to select", "c"}
sysbench.cmdline.options.key = {"Column of the list", "id"}
sysbench.cmdline.options.hot = {"The same values in a row for every query", false}

local function describe()
  local places, kinds = statements.numbers(sysbench.opt.range)
  local text = string.format("SELECT %s FROM %%s WHERE %s IN (%s)",
    sysbench.opt.columns, sysbench.opt.key, places)
  return text, kinds
end

local function fill(parameters)
  local middle = math.floor(sysbench.opt.table_size / 2)
  local hot = sysbench.opt.hot
  for position = 1, #parameters do
    parameters[position]:set(hot and middle + position or schema.random_id())
  end
end

statements.one_per_event(describe, fill)
