-- Returns what is kept in a form, as {value, counts, version}. If there is nothing, it takes the lease and returns 1, or returns 0
-- if somebody else has it.
-- KEYS: one. ARGV: form, token, lease in ms.
local held = redis.call('HMGET', KEYS[1], 'd' .. ARGV[1], 'c' .. ARGV[1], 'v', 'l')
if held[1] then
  return {held[1], held[2], tonumber(held[3])}
end
if held[4] then
  return 0
end
redis.call('HSET', KEYS[1], 'l', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
