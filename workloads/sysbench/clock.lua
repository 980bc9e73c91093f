-- A clock that only goes forward, and sleep: Lua has neither in fractions of a second.

local ffi = require("ffi")

ffi.cdef[[
typedef struct { long seconds; long nanoseconds; } forkwatch_time;
int clock_gettime(int clock, forkwatch_time *time);
int nanosleep(const forkwatch_time *wanted, forkwatch_time *left);
]]

local MONOTONIC = 1

local clock = {}
local time = ffi.new("forkwatch_time")

-- Returns seconds since some moment, the same one in all threads.
function clock.now()
  ffi.C.clock_gettime(MONOTONIC, time)
  return tonumber(time.seconds) + tonumber(time.nanoseconds) / 1e9
end

-- Sleeps so many seconds; not at all where that is no time.
function clock.sleep(seconds)
  if seconds > 0 then
    local whole = math.floor(seconds)
    time.seconds, time.nanoseconds = whole, (seconds - whole) * 1e9
    ffi.C.nanosleep(time, nil)
  end
end

return clock
