-- The nine tables of the TPC-C like mix, and what loader and transactions share: names of people,
-- skewed random numbers, dates, and reading one row. Written from the TPC-C specification.

local schema = require("schema")

local options = sysbench.cmdline.options
options.scale = {"Warehouses to load", 1}
options.items = {"Items to load; the specification says 100000", 100000}
options.customers = {"Customers, and orders, of a district to load; the specification says 3000",
                     3000}
options.foreign_keys = {"Make foreign keys: on, off, or auto (off for MyRocks)", "auto"}
options.storage_engine = options.storage_engine or {"Storage engine; the server's where empty", ""}

local tpcc = {}

tpcc.DISTRICTS = 10
-- Of the orders of a district, the last 30 % are not delivered yet.
tpcc.UNDELIVERED = 0.3

-- Constants of the skewed numbers; the specification lets the tester choose them, and asks for
-- another one for last names when running than when loading.
local NAME_LOAD, NAME_RUN = 157, 223
local CUSTOMER, ITEM = 259, 7911

-- Statements that make the tables; DATE_TIME is the driver's type for a date with a time. Counters
-- and a warehouse's takings are wider than the specification asks: a small dataset runs for hours.
tpcc.TABLES = {
  {"item", [[
  i_id INT NOT NULL, i_im_id INT NOT NULL, i_name VARCHAR(24) NOT NULL,
  i_price DECIMAL(5,2) NOT NULL, i_data VARCHAR(50) NOT NULL,
  PRIMARY KEY (i_id)]]},
  {"warehouse", [[
  w_id SMALLINT NOT NULL, w_name VARCHAR(10) NOT NULL, w_street_1 VARCHAR(20) NOT NULL,
  w_street_2 VARCHAR(20) NOT NULL, w_city VARCHAR(20) NOT NULL, w_state CHAR(2) NOT NULL,
  w_zip CHAR(9) NOT NULL, w_tax DECIMAL(4,4) NOT NULL, w_ytd DECIMAL(14,2) NOT NULL,
  PRIMARY KEY (w_id)]]},
  {"stock", [[
  s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, s_quantity SMALLINT NOT NULL,
  s_dist_01 CHAR(24) NOT NULL, s_dist_02 CHAR(24) NOT NULL, s_dist_03 CHAR(24) NOT NULL,
  s_dist_04 CHAR(24) NOT NULL, s_dist_05 CHAR(24) NOT NULL, s_dist_06 CHAR(24) NOT NULL,
  s_dist_07 CHAR(24) NOT NULL, s_dist_08 CHAR(24) NOT NULL, s_dist_09 CHAR(24) NOT NULL,
  s_dist_10 CHAR(24) NOT NULL, s_ytd DECIMAL(8,0) NOT NULL, s_order_cnt INT NOT NULL,
  s_remote_cnt INT NOT NULL, s_data VARCHAR(50) NOT NULL,
  PRIMARY KEY (s_w_id, s_i_id)]]},
  {"district", [[
  d_id SMALLINT NOT NULL, d_w_id SMALLINT NOT NULL, d_name VARCHAR(10) NOT NULL,
  d_street_1 VARCHAR(20) NOT NULL, d_street_2 VARCHAR(20) NOT NULL, d_city VARCHAR(20) NOT NULL,
  d_state CHAR(2) NOT NULL, d_zip CHAR(9) NOT NULL, d_tax DECIMAL(4,4) NOT NULL,
  d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INT NOT NULL,
  PRIMARY KEY (d_w_id, d_id)]]},
  {"customer", [[
  c_id INT NOT NULL, c_d_id SMALLINT NOT NULL, c_w_id SMALLINT NOT NULL,
  c_first VARCHAR(16) NOT NULL, c_middle CHAR(2) NOT NULL, c_last VARCHAR(16) NOT NULL,
  c_street_1 VARCHAR(20) NOT NULL, c_street_2 VARCHAR(20) NOT NULL, c_city VARCHAR(20) NOT NULL,
  c_state CHAR(2) NOT NULL, c_zip CHAR(9) NOT NULL, c_phone CHAR(16) NOT NULL,
  c_since DATE_TIME NOT NULL, c_credit CHAR(2) NOT NULL, c_credit_lim DECIMAL(12,2) NOT NULL,
  c_discount DECIMAL(4,4) NOT NULL, c_balance DECIMAL(12,2) NOT NULL,
  c_ytd_payment DECIMAL(12,2) NOT NULL, c_payment_cnt INT NOT NULL,
  c_delivery_cnt INT NOT NULL, c_data VARCHAR(500) NOT NULL,
  PRIMARY KEY (c_w_id, c_d_id, c_id)]]},
  {"history", [[
  h_c_id INT NOT NULL, h_c_d_id SMALLINT NOT NULL, h_c_w_id SMALLINT NOT NULL,
  h_d_id SMALLINT NOT NULL, h_w_id SMALLINT NOT NULL, h_date DATE_TIME NOT NULL,
  h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL]]},
  {"orders", [[
  o_id INT NOT NULL, o_d_id SMALLINT NOT NULL, o_w_id SMALLINT NOT NULL, o_c_id INT NOT NULL,
  o_entry_d DATE_TIME NOT NULL, o_carrier_id SMALLINT, o_ol_cnt SMALLINT NOT NULL,
  o_all_local SMALLINT NOT NULL,
  PRIMARY KEY (o_w_id, o_d_id, o_id)]]},
  {"new_orders", [[
  no_o_id INT NOT NULL, no_d_id SMALLINT NOT NULL, no_w_id SMALLINT NOT NULL,
  PRIMARY KEY (no_w_id, no_d_id, no_o_id)]]},
  {"order_line", [[
  ol_o_id INT NOT NULL, ol_d_id SMALLINT NOT NULL, ol_w_id SMALLINT NOT NULL,
  ol_number SMALLINT NOT NULL, ol_i_id INT NOT NULL, ol_supply_w_id SMALLINT NOT NULL,
  ol_delivery_d DATE_TIME, ol_quantity SMALLINT NOT NULL, ol_amount DECIMAL(6,2) NOT NULL,
  ol_dist_info CHAR(24) NOT NULL,
  PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)]]},
}

tpcc.INDEXES = {
  "CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first)",
  "CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
}

-- Table, its columns, the table they refer to, the columns there.
tpcc.FOREIGN_KEYS = {
  {"stock", "s_w_id", "warehouse", "w_id"},
  {"stock", "s_i_id", "item", "i_id"},
  {"district", "d_w_id", "warehouse", "w_id"},
  {"customer", "c_w_id, c_d_id", "district", "d_w_id, d_id"},
  {"history", "h_c_w_id, h_c_d_id, h_c_id", "customer", "c_w_id, c_d_id, c_id"},
  {"history", "h_w_id, h_d_id", "district", "d_w_id, d_id"},
  {"orders", "o_w_id, o_d_id, o_c_id", "customer", "c_w_id, c_d_id, c_id"},
  {"new_orders", "no_w_id, no_d_id, no_o_id", "orders", "o_w_id, o_d_id, o_id"},
  {"order_line", "ol_w_id, ol_d_id, ol_o_id", "orders", "o_w_id, o_d_id, o_id"},
  {"order_line", "ol_supply_w_id, ol_i_id", "stock", "s_w_id, s_i_id"},
}

-- Returns a connection that finds the tables by their plain names. `make` makes their database.
function tpcc.connect(make)
  local connection = schema.connect()
  if make then
    local kind = schema.is_postgres() and "SCHEMA" or "DATABASE"
    connection:query(string.format("CREATE %s IF NOT EXISTS %s", kind, schema.database))
  end
  connection:query((schema.is_postgres() and "SET search_path TO " or "USE ") .. schema.database)
  return connection
end

-- Returns the rows of a query as a list. Only as many are fetched as there are: PostgreSQL's driver
-- does not say where they end.
function tpcc.rows(connection, text)
  local result = connection:query(text)
  local rows = {columns = result.nfields}
  for number = 1, result.nrows do
    rows[number] = result:fetch_row()
  end
  return rows
end

-- Returns the columns of the first row, or nothing where there is none.
function tpcc.row(connection, text)
  local rows = tpcc.rows(connection, text)
  if rows[1] then
    return unpack(rows[1], 1, rows.columns)
  end
end

-- Returns a number from low to high, some far more often than others; `random` draws evenly.
local function skewed(random, mask, constant, low, high)
  local drawn = bit.bor(random(0, mask), random(low, high)) + constant
  return drawn % (high - low + 1) + low
end

function tpcc.skewed_customer(random, customers)
  return skewed(random, 1023, CUSTOMER, 1, customers)
end

function tpcc.skewed_item(random, items)
  return skewed(random, 8191, ITEM, 1, items)
end

local SYLLABLES = {[0] = "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION",
                   "EING"}

function tpcc.last_name(number)
  return SYLLABLES[math.floor(number / 100) % 10] .. SYLLABLES[math.floor(number / 10) % 10]
    .. SYLLABLES[number % 10]
end

-- Names are numbered 0 to 999; a small dataset has only the first of them.
function tpcc.skewed_name(random, customers, loading)
  local last = math.min(customers, 1000) - 1
  return tpcc.last_name(skewed(random, 255, loading and NAME_LOAD or NAME_RUN, 0, last))
end

return tpcc
