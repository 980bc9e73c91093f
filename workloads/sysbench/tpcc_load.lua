-- Loads the TPC-C like dataset: `sysbench tpcc_load.lua prepare`, and counts it: `count`. Rows come
-- from Lua's own generator with a fixed seed, and dates are fixed: equal calls load equal rows.

local clock = require("clock")
local schema = require("schema")
local tpcc = require("tpcc_schema")

local DATE = "'2026-01-01 00:00:00'"
local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
-- Random texts are pieces of one random text: drawing every letter would take most of the load.
local POOL_LENGTH = 65536

local random = math.random
local connection
local pool

local function letters(shortest, longest)
  local length = random(shortest, longest)
  local from = random(1, POOL_LENGTH - length)
  return pool:sub(from, from + length - 1)
end

local function digits(count)
  return (string.rep("#", count):gsub("#", function() return random(0, 9) end))
end

-- One text in ten holds the word that the specification's queries would look for.
local function data()
  local text = letters(26, 50)
  if random(1, 10) > 1 then
    return text
  end
  local at = random(1, #text - 8)
  return text:sub(1, at - 1) .. "ORIGINAL" .. text:sub(at + 8)
end

-- Street twice, city, state, zip.
local function address()
  return string.format("'%s','%s','%s','%s','%s11111'", letters(10, 20), letters(10, 20),
    letters(10, 20), letters(2, 2), digits(4))
end

-- Runs `fill` with a function that adds one row to the table, given as text without brackets.
local function filling(columns, fill)
  connection:bulk_insert_init("INSERT INTO " .. columns .. " VALUES")
  fill(function(row) connection:bulk_insert_next("(" .. row .. ")") end)
  connection:bulk_insert_done()
end

local function create_tables()
  local engine = sysbench.opt.storage_engine
  local ending = engine ~= "" and " ENGINE=" .. engine or ""
  for _, one in ipairs(tpcc.TABLES) do
    local columns = one[2]:gsub("DATE_TIME", schema.is_postgres() and "TIMESTAMP" or "DATETIME")
    connection:query(string.format("CREATE TABLE %s (%s)%s", one[1], columns, ending))
  end
end

local function load_items()
  filling("item (i_id, i_im_id, i_name, i_price, i_data)", function(add)
    for id = 1, sysbench.opt.items do
      add(string.format("%d,%d,'%s',%.2f,'%s'", id, random(1, 10000), letters(14, 24),
        random(100, 10000) / 100, data()))
    end
  end)
end

local function load_warehouse(w)
  filling("warehouse (w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd)",
    function(add)
      add(string.format("%d,'%s',%s,%.4f,%.2f", w, letters(6, 10), address(),
        random(0, 2000) / 10000, 30000 * tpcc.DISTRICTS))
    end)
end

local function load_stock(w)
  local columns = "stock (s_i_id, s_w_id, s_quantity, "
  for district = 1, tpcc.DISTRICTS do
    columns = columns .. string.format("s_dist_%02d, ", district)
  end
  filling(columns .. "s_ytd, s_order_cnt, s_remote_cnt, s_data)", function(add)
    for item = 1, sysbench.opt.items do
      local texts = {}
      for district = 1, tpcc.DISTRICTS do
        texts[district] = letters(24, 24)
      end
      add(string.format("%d,%d,%d,'%s',0,0,0,'%s'", item, w, random(10, 100),
        table.concat(texts, "','"), data()))
    end
  end)
end

local function load_districts(w)
  filling([[district (d_id, d_w_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax,
    d_ytd, d_next_o_id)]], function(add)
    for d = 1, tpcc.DISTRICTS do
      add(string.format("%d,%d,'%s',%s,%.4f,30000.00,%d", d, w, letters(6, 10), address(),
        random(0, 2000) / 10000, sysbench.opt.customers + 1))
    end
  end)
end

local function load_customers(w)
  filling([[customer (c_id, c_d_id, c_w_id, c_first, c_middle, c_last, c_street_1, c_street_2,
    c_city, c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance,
    c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data)]], function(add)
    for d = 1, tpcc.DISTRICTS do
      for c = 1, sysbench.opt.customers do
        -- Every name is there at least once, so that asking by name always finds somebody.
        local last = c <= 1000 and tpcc.last_name(c - 1)
          or tpcc.skewed_name(random, sysbench.opt.customers, true)
        local credit = random(1, 10) == 1 and "BC" or "GC"
        add(string.format(
          "%d,%d,%d,'%s','OE','%s',%s,'%s',%s,'%s',50000.00,%.4f,-10.00,10.00,1,0,'%s'",
          c, d, w, letters(8, 16), last, address(), digits(16), DATE, credit,
          random(0, 5000) / 10000, letters(300, 500)))
      end
    end
  end)
end

local function load_history(w)
  filling("history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)",
    function(add)
      for d = 1, tpcc.DISTRICTS do
        for c = 1, sysbench.opt.customers do
          add(string.format("%d,%d,%d,%d,%d,%s,10.00,'%s'", c, d, w, d, w, DATE, letters(12, 24)))
        end
      end
    end)
end

-- Returns 1 to count in random order.
local function shuffled(count)
  local numbers = {}
  for number = 1, count do
    numbers[number] = number
  end
  for number = count, 2, -1 do
    local other = random(1, number)
    numbers[number], numbers[other] = numbers[other], numbers[number]
  end
  return numbers
end

-- Returns the orders of a warehouse: for each district and order its customer, lines, and whether
-- it was delivered.
local function make_orders()
  local made = {}
  local delivered = math.floor(sysbench.opt.customers * (1 - tpcc.UNDELIVERED) + 0.5)
  for d = 1, tpcc.DISTRICTS do
    for o, customer in ipairs(shuffled(sysbench.opt.customers)) do
      made[#made + 1] = {d = d, o = o, customer = customer, lines = random(5, 15),
                         delivered = o <= delivered}
    end
  end
  return made
end

local function load_orders(w)
  local made = make_orders()
  filling("orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)",
    function(add)
      for _, order in ipairs(made) do
        add(string.format("%d,%d,%d,%d,%s,%s,%d,1", order.o, order.d, w, order.customer, DATE,
          order.delivered and random(1, 10) or "NULL", order.lines))
      end
    end)
  filling("new_orders (no_o_id, no_d_id, no_w_id)", function(add)
    for _, order in ipairs(made) do
      if not order.delivered then
        add(string.format("%d,%d,%d", order.o, order.d, w))
      end
    end
  end)
  filling([[order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
    ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)]], function(add)
    for _, order in ipairs(made) do
      for number = 1, order.lines do
        add(string.format("%d,%d,%d,%d,%d,%d,%s,5,%.2f,'%s'", order.o, order.d, w, number,
          random(1, sysbench.opt.items), w, order.delivered and DATE or "NULL",
          order.delivered and 0 or random(1, 999999) / 100, letters(24, 24)))
      end
    end
  end)
end

local function add_foreign_keys()
  local wanted = sysbench.opt.foreign_keys
  if wanted == "off" or (wanted == "auto" and sysbench.opt.storage_engine == "rocksdb") then
    return
  end
  if not schema.is_postgres() then
    -- With checks the table would be copied for every key; what was just loaded needs none.
    connection:query("SET foreign_key_checks = 0")
  end
  for number, one in ipairs(tpcc.FOREIGN_KEYS) do
    connection:query(string.format(
      "ALTER TABLE %s ADD CONSTRAINT tpcc_%d FOREIGN KEY (%s) REFERENCES %s (%s)",
      one[1], number, one[2], one[3], one[4]))
  end
end

local function gather_statistics()
  for _, one in ipairs(tpcc.TABLES) do
    connection:query((schema.is_postgres() and "VACUUM (ANALYZE) " or "ANALYZE TABLE ") .. one[1])
  end
end

local function make_pool()
  local drawn = {}
  for number = 1, POOL_LENGTH do
    local at = random(1, #LETTERS)
    drawn[number] = LETTERS:sub(at, at)
  end
  return table.concat(drawn)
end

local function load_rows()
  load_items()
  for w = 1, sysbench.opt.scale do
    for _, load in ipairs({load_warehouse, load_stock, load_districts, load_customers,
                           load_history, load_orders}) do
      load(w)
    end
  end
end

-- Runs a part of the load and returns the seconds that it took.
local function timed(part)
  local began = clock.now()
  part()
  return clock.now() - began
end

function prepare()
  assert(sysbench.opt.tables == 1, "TPC-C has one set of tables; choose warehouses with --scale")
  math.randomseed(sysbench.opt.load_seed)
  pool = make_pool()
  connection = tpcc.connect(true)
  create_tables()
  local rows_s = timed(load_rows)
  local indexes_s = timed(function()
    for _, statement in ipairs(tpcc.INDEXES) do
      connection:query(statement)
    end
    add_foreign_keys()
  end)
  gather_statistics()
  connection:disconnect()
  print(string.format("seconds of tpcc: %.3f for rows, %.3f for indexes", rows_s, indexes_s))
end

function count()
  connection = tpcc.connect()
  for _, one in ipairs(tpcc.TABLES) do
    print(string.format("rows of %s: %s", one[1],
      (tpcc.row(connection, "SELECT COUNT(*) FROM " .. one[1]))))
  end
  connection:disconnect()
end

sysbench.cmdline.commands = {prepare = {prepare}, count = {count}}
