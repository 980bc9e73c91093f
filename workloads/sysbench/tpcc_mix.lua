-- tpcc: the mix of the TPC-C like transactions. One event is one transaction; of 23, ten are new
-- orders, ten payments, and one each asks for an order, delivers, and looks at the stock. No think
-- time, a random home warehouse for each transaction. Plain SQL texts, as the field runs it.

local tpcc = require("tpcc_schema")

local connection
local size = {}

local function random(low, high)
  return sysbench.rand.uniform(low, high)
end

local function run(text, ...)
  return connection:query(string.format(text, ...))
end

local function row(text, ...)
  return tpcc.row(connection, string.format(text, ...))
end

function thread_init()
  connection = tpcc.connect()
  -- What was loaded says how much there is; no option can contradict it.
  size.warehouses = tonumber((row("SELECT MAX(w_id) FROM warehouse")))
  size.items = tonumber((row("SELECT MAX(i_id) FROM item")))
  size.customers =
    tonumber((row("SELECT MAX(c_id) FROM customer WHERE c_w_id = 1 AND c_d_id = 1")))
end

local function any_warehouse()
  return random(1, size.warehouses)
end

local function any_district()
  return random(1, tpcc.DISTRICTS)
end

-- Returns another warehouse where there is one.
local function remote_warehouse(home)
  if size.warehouses == 1 then
    return home
  end
  local other = random(1, size.warehouses - 1)
  return other < home and other or other + 1
end

-- Returns a customer's number: of ten, six ask by name and get the middle one of that name.
local function any_customer(w, d)
  if random(1, 10) > 6 then
    return tpcc.skewed_customer(random, size.customers)
  end
  local found = tpcc.rows(connection, string.format(
    [[SELECT c_id FROM customer WHERE c_w_id = %d AND c_d_id = %d AND c_last = '%s'
      ORDER BY c_first]],
    w, d, tpcc.skewed_name(random, size.customers, false)))
  return tonumber(found[math.ceil(#found / 2)][1])
end

-- Returns the lines of an order, by warehouse and item so that orders lock stock in one order.
-- The last item of one order in a hundred does not exist.
local function order_lines(w)
  local lines, is_local = {}, true
  for number = 1, random(5, 15) do
    local supply = random(1, 100) == 1 and remote_warehouse(w) or w
    is_local = is_local and supply == w
    lines[number] = {supply = supply, quantity = random(1, 10),
                     item = tpcc.skewed_item(random, size.items)}
  end
  table.sort(lines, function(one, other)
    if one.supply ~= other.supply then
      return one.supply < other.supply
    end
    return one.item < other.item
  end)
  if random(1, 100) == 1 then
    lines[#lines].item = size.items + 1
  end
  return lines, is_local
end

-- Takes one line's goods from the stock; returns false where there is no such item.
local function order_line(w, d, o, number, line)
  local price = row("SELECT i_price, i_name, i_data FROM item WHERE i_id = %d", line.item)
  if price == nil then
    return false
  end
  local quantity, info = row(
    [[SELECT s_quantity, s_dist_%02d, s_data FROM stock
      WHERE s_w_id = %d AND s_i_id = %d FOR UPDATE]], d, line.supply, line.item)
  local left = tonumber(quantity) - line.quantity
  run([[UPDATE stock SET s_quantity = %d, s_ytd = s_ytd + %d, s_order_cnt = s_order_cnt + 1,
      s_remote_cnt = s_remote_cnt + %d WHERE s_w_id = %d AND s_i_id = %d]],
    left >= 10 and left or left + 91, line.quantity, line.supply == w and 0 or 1, line.supply,
    line.item)
  run([[INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id,
      ol_quantity, ol_amount, ol_dist_info) VALUES (%d, %d, %d, %d, %d, %d, %d, %.2f, '%s')]],
    o, d, w, number, line.item, line.supply, line.quantity, line.quantity * tonumber(price), info)
  return true
end

local function new_order()
  local w, d = any_warehouse(), any_district()
  local c = tpcc.skewed_customer(random, size.customers)
  local lines, is_local = order_lines(w)
  run("BEGIN")
  row([[SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse
      WHERE w_id = %d AND c_w_id = w_id AND c_d_id = %d AND c_id = %d]], w, d, c)
  local o = tonumber((row(
    "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = %d AND d_id = %d FOR UPDATE", w, d)))
  run("UPDATE district SET d_next_o_id = %d WHERE d_w_id = %d AND d_id = %d", o + 1, w, d)
  run([[INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
      VALUES (%d, %d, %d, %d, NOW(), %d, %d)]], o, d, w, c, #lines, is_local and 1 or 0)
  run("INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (%d, %d, %d)", o, d, w)
  for number, line in ipairs(lines) do
    if not order_line(w, d, o, number, line) then
      run("ROLLBACK")
      return
    end
  end
  run("COMMIT")
end

local function payment()
  local w, d = any_warehouse(), any_district()
  local amount = random(100, 500000) / 100
  -- Fifteen customers in a hundred pay at another warehouse.
  local customer_w, customer_d = w, d
  if random(1, 100) > 85 then
    customer_w, customer_d = remote_warehouse(w), any_district()
  end
  run("BEGIN")
  run("UPDATE warehouse SET w_ytd = w_ytd + %.2f WHERE w_id = %d", amount, w)
  local w_name = row(
    [[SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse
      WHERE w_id = %d]], w)
  run("UPDATE district SET d_ytd = d_ytd + %.2f WHERE d_w_id = %d AND d_id = %d", amount, w, d)
  local d_name = row(
    [[SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district
      WHERE d_w_id = %d AND d_id = %d]], w, d)
  local c = any_customer(customer_w, customer_d)
  local place = string.format("c_w_id = %d AND c_d_id = %d AND c_id = %d", customer_w, customer_d,
    c)
  local credit, data = row(
    [[SELECT c_credit, c_data, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state,
      c_zip, c_phone, c_credit_lim, c_discount, c_balance, c_since FROM customer
      WHERE %s FOR UPDATE]], place)
  local more = ""
  if credit == "BC" then
    local entry = string.format("%d %d %d %d %d %.2f|", c, customer_d, customer_w, d, w, amount)
    more = string.format(", c_data = '%s'", (entry .. data):sub(1, 500))
  end
  run([[UPDATE customer SET c_balance = c_balance - %.2f, c_ytd_payment = c_ytd_payment + %.2f,
      c_payment_cnt = c_payment_cnt + 1%s WHERE %s]], amount, amount, more, place)
  run([[INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
      VALUES (%d, %d, %d, %d, %d, NOW(), %.2f, '%s    %s')]],
    c, customer_d, customer_w, d, w, amount, w_name, d_name)
  run("COMMIT")
end

local function order_status()
  local w, d = any_warehouse(), any_district()
  run("BEGIN")
  local c = any_customer(w, d)
  row([[SELECT c_balance, c_first, c_middle, c_last FROM customer
      WHERE c_w_id = %d AND c_d_id = %d AND c_id = %d]], w, d, c)
  local o = row([[SELECT o_id, o_carrier_id, o_entry_d FROM orders
      WHERE o_w_id = %d AND o_d_id = %d AND o_c_id = %d ORDER BY o_id DESC LIMIT 1]], w, d, c)
  run([[SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
      WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %s]], w, d, o)
  run("COMMIT")
end

-- Delivers the oldest order of one district, if there is one.
local function deliver(w, d, carrier)
  local o = row([[SELECT no_o_id FROM new_orders WHERE no_w_id = %d AND no_d_id = %d
      ORDER BY no_o_id LIMIT 1 FOR UPDATE]], w, d)
  if o == nil then
    return
  end
  local order = string.format("o_w_id = %d AND o_d_id = %d AND o_id = %s", w, d, o)
  local lines = string.format("ol_w_id = %d AND ol_d_id = %d AND ol_o_id = %s", w, d, o)
  run("DELETE FROM new_orders WHERE no_w_id = %d AND no_d_id = %d AND no_o_id = %s", w, d, o)
  run("UPDATE orders SET o_carrier_id = %d WHERE %s", carrier, order)
  -- After the UPDATE: an order younger than this transaction would not be seen before.
  local c = row("SELECT o_c_id FROM orders WHERE %s", order)
  run("UPDATE order_line SET ol_delivery_d = NOW() WHERE %s", lines)
  local amount = row("SELECT SUM(ol_amount) FROM order_line WHERE %s", lines)
  run([[UPDATE customer SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1
      WHERE c_w_id = %d AND c_d_id = %d AND c_id = %s]], amount, w, d, c)
end

local function delivery()
  local w, carrier = any_warehouse(), random(1, 10)
  run("BEGIN")
  for d = 1, tpcc.DISTRICTS do
    deliver(w, d, carrier)
  end
  run("COMMIT")
end

local function stock_level()
  local w, d = any_warehouse(), any_district()
  run("BEGIN")
  local next_o = tonumber((row(
    "SELECT d_next_o_id FROM district WHERE d_w_id = %d AND d_id = %d", w, d)))
  row([[SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock
      WHERE ol_w_id = %d AND ol_d_id = %d AND ol_o_id < %d AND ol_o_id >= %d
      AND s_w_id = %d AND s_i_id = ol_i_id AND s_quantity < %d]],
    w, d, next_o, next_o - 20, w, random(10, 20))
  run("COMMIT")
end

local RARE = {order_status, delivery, stock_level}

function event()
  local drawn = random(1, 23)
  if drawn <= 10 then
    new_order()
  elseif drawn <= 20 then
    payment()
  else
    RARE[drawn - 20]()
  end
end

-- A lock that was waited for too long ends its statement only; the rest of the transaction would
-- be committed by the next BEGIN.
function sysbench.hooks.before_restart_event()
  connection:query("ROLLBACK")
end

function thread_done()
  connection:disconnect()
end
