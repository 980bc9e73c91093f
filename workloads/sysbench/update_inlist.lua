-- update-inlist: one new c for the rows whose id is in a list of --range random ids.
-- Server-side prepared statement, autocommit.

local schema = require("schema")
local statements = require("statements")

sysbench.cmdline.options.range = {"Ids in the list", 10}

local function describe()
  local places, kinds = statements.numbers(sysbench.opt.range)
  table.insert(kinds, 1, statements.C)
  return string.format("UPDATE %%s SET c = ? WHERE id IN (%s)", places), kinds
end

local function fill(parameters)
  parameters[1]:set_rand_str(schema.C_TEMPLATE)
  for position = 2, #parameters do
    parameters[position]:set(schema.random_id())
  end
end

statements.one_per_event(describe, fill)
