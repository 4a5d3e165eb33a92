-- Stores a user under a lease: 1. Refused: 0 where the lease is not held any more, -1
-- where something newer is known.
-- KEYS: user. ARGV: token, version, profile, counts, life in ms.
local held = redis.call('HMGET', KEYS[1], 'l', 'v')
if held[1] ~= ARGV[1] then
  return 0
end
redis.call('HDEL', KEYS[1], 'l')
if tonumber(held[2] or 0) > tonumber(ARGV[2]) then
  return -1
end
redis.call('HSET', KEYS[1], 'p', ARGV[3], 'v', ARGV[2], 'c', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1
