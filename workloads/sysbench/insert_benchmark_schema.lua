-- The tables of the Insert Benchmark, pi1..piN, one for each client: a primary key that grows with
-- time, and three secondary indexes that are added by a step of their own.

local schema = require("schema")

local options = sysbench.cmdline.options
options.storage_engine = options.storage_engine or {"Storage engine; the server's where empty", ""}

local insert_benchmark = {}

local COLUMNS = [[
  dateandtime DATE_TIME,
  cashregisterid INT NOT NULL,
  customerid INT NOT NULL,
  productid INT NOT NULL,
  price INT NOT NULL,
  data VARCHAR(4000)]]

-- How many different values a column has.
insert_benchmark.REGISTERS = 1000
insert_benchmark.PRODUCTS = 10000
insert_benchmark.CUSTOMERS = 100000
insert_benchmark.PRICES = 500

-- Name, columns, and the number of values of the first column.
insert_benchmark.INDEXES = {
  {"marketsegment", "productid, customerid, price", insert_benchmark.PRODUCTS},
  {"registersegment", "cashregisterid, customerid, price", insert_benchmark.REGISTERS},
  {"pdc", "price, dateandtime, customerid", insert_benchmark.PRICES},
}

function insert_benchmark.table_name(number)
  return string.format("%s.pi%d", schema.database, number)
end

-- PostgreSQL's indexes share one name space.
function insert_benchmark.index_name(number, index)
  return string.format("pi%d_%s", number, index[1])
end

function insert_benchmark.create(connection, number)
  local key = "transactionid BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"
  if schema.is_postgres() then
    key = "transactionid BIGSERIAL PRIMARY KEY"
  end
  local engine = sysbench.opt.storage_engine or ""
  connection:query(string.format("CREATE TABLE %s (%s,%s)%s", insert_benchmark.table_name(number),
    key, COLUMNS:gsub("DATE_TIME", schema.is_postgres() and "TIMESTAMP" or "DATETIME"),
    engine ~= "" and " ENGINE=" .. engine or ""))
end

-- Returns the first column of the first row as a number, or nil where there is none or it is NULL.
function insert_benchmark.number(connection, text)
  local result = connection:query(text)
  if result.nrows == 0 then
    return nil
  end
  return tonumber(result:fetch_row()[1])
end

local function is_rocksdb(connection, number)
  return insert_benchmark.number(connection, string.format(
    [[SELECT COUNT(*) FROM information_schema.tables
      WHERE table_schema = '%s' AND table_name = 'pi%d' AND engine = 'ROCKSDB']],
    schema.database, number)) > 0
end

-- Makes the three indexes: InnoDB in one statement, MyRocks and PostgreSQL one by one, as the field
-- does. The server is asked which it is: a step is not told how the tables were made.
function insert_benchmark.create_indexes(connection, number)
  local table_name = insert_benchmark.table_name(number)
  if schema.is_postgres() or is_rocksdb(connection, number) then
    for _, index in ipairs(insert_benchmark.INDEXES) do
      connection:query(string.format("CREATE INDEX %s ON %s (%s)",
        insert_benchmark.index_name(number, index), table_name, index[2]))
    end
    return
  end
  local parts = {}
  for at, index in ipairs(insert_benchmark.INDEXES) do
    parts[at] = string.format("ADD INDEX %s (%s)", insert_benchmark.index_name(number, index),
      index[2])
  end
  connection:query(string.format("ALTER TABLE %s %s", table_name, table.concat(parts, ", ")))
end

return insert_benchmark
