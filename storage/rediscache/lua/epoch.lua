-- Agrees on the epoch of some runs of Redis: the one that is there, or a new one.
-- KEYS: epoch. ARGV: runs, a new name, whether it has to be new.
local held = redis.call('GET', KEYS[1])
if held and ARGV[3] == '0' and string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. '.' then
  return held
end
redis.call('SET', KEYS[1], ARGV[1] .. '.' .. ARGV[2])
return ARGV[1] .. '.' .. ARGV[2]
