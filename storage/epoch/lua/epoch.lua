-- Returns the epoch of these runs of Redis. If there is none, or a new one is demanded, a new one begins.
-- KEYS: the epoch. ARGV: the runs, what to call a new epoch, 1 if one is demanded and 0 otherwise.
local held = redis.call('GET', KEYS[1])
if held and ARGV[3] == '0' and string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. '.' then
  return held
end
redis.call('SET', KEYS[1], ARGV[1] .. '.' .. ARGV[2])
return ARGV[1] .. '.' .. ARGV[2]
