-- update-nonindex, update-one, update-zipf: a new c for one row by primary key; no index changes.
-- --ids says which row: uniform, one (always the first), or zipf (low ids are hot).
-- Server-side prepared statement, autocommit.

local schema = require("schema")
local statements = require("statements")
local zipf = require("zipf")

sysbench.cmdline.options.ids = {"uniform, one or zipf", "uniform"}
sysbench.cmdline.options.exponent = {"Exponent of Zipf's law", "0.8"}

local CHOICES = {
  uniform = function() return schema.random_id end,
  one = function() return function() return 1 end end,
  zipf = function()
    return zipf.sampler(sysbench.opt.table_size, tonumber(sysbench.opt.exponent))
  end,
}
local next_id

local function describe()
  next_id = assert(CHOICES[sysbench.opt.ids], "no such choice of ids: " .. sysbench.opt.ids)()
  return "UPDATE %s SET c = ? WHERE id = ?", {statements.C, statements.NUMBER}
end

statements.one_per_event(describe, function(parameters)
  parameters[1]:set_rand_str(schema.C_TEMPLATE)
  parameters[2]:set(next_id())
end)
