-- Stores a user under a lease. Returns 1 if it was stored, 0 if the lease is no longer held, and
-- -1 if a newer version is known: so with the version -1 it only gives the lease back.
-- KEYS: user.
-- ARGV: token, version, TTL in ms, profile, counts.
local held = redis.call('HMGET', KEYS[1], 'l', 'v')
if held[1] ~= ARGV[1] then
  return 0
end
if tonumber(held[2] or 0) > tonumber(ARGV[2]) then
  redis.call('HDEL', KEYS[1], 'l')
  return -1
end
redis.call('DEL', KEYS[1]) -- values of other forms, too: they may be of another version
redis.call('HSET', KEYS[1], 'p', ARGV[4], 'v', ARGV[2], 'c', ARGV[5])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
