-- Gives a lease back. The version of the post stays.
-- KEYS: post.
-- ARGV: token.
local held = redis.call('GETRANGE', KEYS[1], 0, 17 + #ARGV[1])
if string.sub(held, 1, 1) == 'M' and string.sub(held, 18) == ARGV[1] then
  redis.call('SET', KEYS[1], string.sub(held, 1, 9), 'KEEPTTL')
end
return 1
