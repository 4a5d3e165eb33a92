-- Stores a list under a lease. Returns 1 if it was stored, 0 if the lease is no longer held, and
-- -1 if a newer version is known: so with the version -1 it only gives the lease back.
-- KEYS: list.
-- ARGV: token, version, TTL in ms, list.
local held = redis.call('GETRANGE', KEYS[1], 0, 9 + #ARGV[1])
if string.sub(held, 1, 1) ~= 'M' or string.sub(held, 10) ~= ARGV[1] then
  return 0
end
if struct.unpack('>i8', held, 2) > tonumber(ARGV[2]) then
  redis.call('SET', KEYS[1], string.sub(held, 1, 9), 'KEEPTTL')
  return -1
end
redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[3])
return 1
