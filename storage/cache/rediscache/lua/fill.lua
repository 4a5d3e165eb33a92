-- Stores a value, in place of those of all forms, if the lease is still held and nothing newer is known. Otherwise it gives the lease
-- back, as with the version -1.
-- KEYS: one. ARGV: form, token, version, time to live in ms, value, counts.
local held = redis.call('HMGET', KEYS[1], 'l', 'v')
if held[1] ~= ARGV[2] then
  return
end
redis.call('HDEL', KEYS[1], 'l')
if tonumber(held[2] or 0) <= tonumber(ARGV[3]) then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'v', ARGV[3], 'd' .. ARGV[1], ARGV[5], 'c' .. ARGV[1], ARGV[6])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
