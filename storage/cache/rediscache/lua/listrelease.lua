-- Gives a lease back. The version of the list stays.
-- KEYS: list.
-- ARGV: token.
local held = redis.call('GETRANGE', KEYS[1], 0, 9 + #ARGV[1])
if string.sub(held, 1, 1) == 'M' and string.sub(held, 10) == ARGV[1] then
  redis.call('SET', KEYS[1], string.sub(held, 1, 9), 'KEEPTTL')
end
return 1
