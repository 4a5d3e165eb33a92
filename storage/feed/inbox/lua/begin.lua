-- Begins to build a user's inbox, in place of the one before. Returns 0 if that has the same digest, or if a build has begun a short while ago.
-- KEYS: inbox, lock.
-- ARGV: the build, the digest, how many ms until the next build may begin, how many this one may take.
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1] or ''
if string.match(head, '^%d+ %d+ %d+ (%S+)$') == ARGV[2] or not redis.call('SET', KEYS[2], '', 'NX', 'PX', ARGV[3]) then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[1], -1, ARGV[1] .. ' 0 -')
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
