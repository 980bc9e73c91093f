-- Ranges: SELECT some columns of the rows whose key is between a random value and --range more.
-- Both ends are in it, and no range leaves the table, so that every one has the same length.

local statements = require("statements")

sysbench.cmdline.options.range = {"From the first to the last value", 100}
sysbench.cmdline.options.columns = {"Columns to select", "c"}
sysbench.cmdline.options.key = {"Column of the range", "id"}

local function describe()
  local text = string.format("SELECT %s FROM %%s WHERE %s BETWEEN ? AND ?",
    sysbench.opt.columns, sysbench.opt.key)
  return text, {statements.NUMBER, statements.NUMBER}
end

local function fill(parameters)
  local range = sysbench.opt.range
  local first = sysbench.rand.uniform(1, sysbench.opt.table_size - range)
  parameters[1]:set(first)
  parameters[2]:set(first + range)
end

statements.one_per_event(describe, fill)
