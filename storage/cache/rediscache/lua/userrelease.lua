-- Gives a lease back.
-- KEYS: user.
-- ARGV: token.
if redis.call('HGET', KEYS[1], 'l') == ARGV[1] then
  redis.call('HDEL', KEYS[1], 'l')
end
return 1
