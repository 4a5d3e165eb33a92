-- Returns the intents that nobody has stood by, and has them come up again later. If there
-- are too many, they go, and 1 is returned.
-- KEYS: intents. ARGV: how long an intent may be alone in ms, how many are returned at most.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local later = string.format('%.0f', now + ARGV[1])
-- A score that is far ahead is of a clock that has gone back since.
local ahead = string.format('(%.0f', now + 2 * ARGV[1])
for _, range in ipairs({{'0', '0'}, {ahead, '+inf'}}) do
  for _, one in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], range[1], range[2], 'LIMIT', 0, 10 * ARGV[2])) do
    redis.call('ZADD', KEYS[1], later, one)
  end
end
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '(0', string.format('%.0f', now), 'LIMIT', 0, ARGV[2] + 1)
if #due > tonumber(ARGV[2]) then
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '(0', string.format('%.0f', now))
  return 1
end
for _, one in ipairs(due) do
  redis.call('ZADD', KEYS[1], later, one)
end
return due
