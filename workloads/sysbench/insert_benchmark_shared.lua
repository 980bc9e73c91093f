-- What the threads of the Insert Benchmark know of each other. Every thread has a Lua of its own,
-- so this is memory of the process; its address goes through the environment. A field has one
-- writer, and a number of eight bytes is written at once.

local ffi = require("ffi")

ffi.cdef[[
typedef struct {
  volatile double inserted, newest;
  char apart[48];
  volatile double deleted, oldest;
  char apart_too[48];
} forkwatch_client;
typedef struct {
  volatile double failed;
  char apart[56];
  forkwatch_client clients[1025];
} forkwatch_shared;
void *calloc(size_t count, size_t size);
int setenv(const char *name, const char *value, int overwrite);
]]

local VARIABLE = "FORKWATCH_INSERT_BENCHMARK"

local shared = {}
local memory

local function everything()
  if memory == nil then
    local address = assert(tonumber(os.getenv(VARIABLE)), "the shared memory was not allocated")
    memory = ffi.cast("forkwatch_shared *", ffi.cast("uintptr_t", address))
  end
  return memory
end

-- Called once, before there are threads; the memory lives as long as the process.
function shared.allocate()
  local address = ffi.C.calloc(1, ffi.sizeof("forkwatch_shared"))
  assert(address ~= nil, "no memory")
  ffi.C.setenv(VARIABLE, string.format("%.0f", tonumber(ffi.cast("uintptr_t", address))), 1)
end

-- Returns the client's part: rows inserted and deleted in this step, its newest and oldest id.
function shared.of_client(number)
  assert(number <= 1024, "too many clients")
  return everything().clients[number]
end

function shared.fail()
  everything().failed = 1
end

function shared.has_failed()
  return everything().failed ~= 0
end

return shared
