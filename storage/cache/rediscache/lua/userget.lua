-- Returns a user as {profile, version, counts} if it is there. Otherwise it takes the lease and
-- returns 1, or returns 0 if somebody else has the lease.
-- KEYS: user.
-- ARGV: token, lease in ms.
local held = redis.call('HMGET', KEYS[1], 'p', 'v', 'c', 'l')
if held[1] then
  return {held[1], held[2], held[3]}
end
if held[4] then
  return 0
end
redis.call('HSET', KEYS[1], 'l', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
