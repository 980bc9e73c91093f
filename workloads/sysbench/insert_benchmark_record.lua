-- What one thread of the Insert Benchmark did: statements, rows of each second, response times.

local clock = require("clock")

-- Upper ends of the field's histogram in microseconds; what took longer is in one bucket more.
local BUCKETS_US = {256, 1e3, 4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6}
-- Buckets of the finer histogram for a doubling of the response time.
local FINE = 8

local record = {}
local began, elapsed, count
local rates, buckets, fine = {}, {}, {}

-- Forgets everything; seconds count from now.
function record.start()
  began = clock.now()
  count = {statements = 0, rows = 0, retries = 0, total_us = 0, max_us = 0}
  rates, fine = {}, {}
  for at = 1, #BUCKETS_US + 1 do
    buckets[at] = 0
  end
end

function record.passed()
  return clock.now() - began
end

function record.stop()
  elapsed = record.passed()
end

function record.statements()
  return count.statements
end

function record.retry()
  count.retries = count.retries + 1
end

-- Counts a statement that began then and has just ended.
function record.add(statement_began, rows)
  local ended = clock.now()
  local us = (ended - statement_began) * 1e6
  local second = math.floor(ended - began) + 1
  count.statements = count.statements + 1
  count.rows = count.rows + rows
  count.total_us = count.total_us + us
  count.max_us = math.max(count.max_us, us)
  rates[second] = (rates[second] or 0) + rows
  local at = 1
  while BUCKETS_US[at] and us > BUCKETS_US[at] do
    at = at + 1
  end
  buckets[at] = buckets[at] + 1
  local slot = us < 1 and 0 or math.floor(math.log(us) / math.log(2) * FINE)
  fine[slot] = (fine[slot] or 0) + 1
end

local function joined_rates()
  local last = math.max(1, math.ceil(elapsed))
  local shown = {}
  for second = 1, last do
    shown[second] = string.format("%.0f", rates[second] or 0)
  end
  return table.concat(shown, ",")
end

local function joined_fine()
  local slots = {}
  for slot in pairs(fine) do
    slots[#slots + 1] = slot
  end
  table.sort(slots)
  for at, slot in ipairs(slots) do
    slots[at] = string.format("%d:%d", slot, fine[slot])
  end
  return table.concat(slots, ",")
end

-- Prints everything as one line, in one call so that no other thread's line gets between.
function record.print(role, client)
  io.write(string.format(
    "insert-benchmark role=%s client=%d seconds=%.6f statements=%d rows=%.0f retries=%d "
      .. "total_us=%.0f max_us=%.0f rates=%s buckets=%s latency=%s\n",
    role, client, elapsed, count.statements, count.rows, count.retries, count.total_us,
    count.max_us, joined_rates(), table.concat(buckets, ","), joined_fine()))
  io.flush()
end

return record
