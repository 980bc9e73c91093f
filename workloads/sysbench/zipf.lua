-- Random numbers by Zipf's law, which sysbench 1.0 does not have: 1 is drawn most often, k with a
-- chance proportional to k ^ -exponent. By rejection-inversion (Hoermann & Derflinger, ACM TOMACS
-- 6(3), 1996): exact, without tables, and as fast for a billion numbers as for ten.

local zipf = {}

-- Returns a function that draws from 1 to `count`; the exponent is above 0 and not 1.
function zipf.sampler(count, exponent)
  local rest = 1 - exponent

  -- The integral of x ^ -exponent, and its inverse.
  local function area(x)
    return x ^ rest / rest
  end
  local function position(y)
    return (rest * y) ^ (1 / rest)
  end

  -- The first bar of the histogram is put beside the curve as it is: its area is its height, 1.
  local lowest = area(1.5) - 1
  local highest = area(count + 0.5)
  -- So near to the left of a number, a draw is accepted without a look at the curve.
  local surely = 2 - position(area(2.5) - 2 ^ -exponent)

  return function()
    while true do
      local y = highest + sysbench.rand.uniform_double() * (lowest - highest)
      local x = position(y)
      local number = math.min(math.max(math.floor(x + 0.5), 1), count)
      if number - x <= surely or y >= area(number + 0.5) - number ^ -exponent then
        return number
      end
    end
  end
end

return zipf
