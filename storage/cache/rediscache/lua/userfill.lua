-- Stores a user under a lease. Returns 1 if it was stored, 0 if the lease is no longer held, and
-- -1 if a newer version is known.
-- KEYS: user.
-- ARGV: token, version, profile, counts, TTL in ms.
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
