-- Begins to build a user's inbox, in place of the one before. Returns the number of the build, which rises from one to
-- the next; 0 if one has begun a short while ago.
-- KEYS: inbox, lock.
-- ARGV: number of the inboxes, how many ms until the next build may begin (at least 2), how many this one may take.
local now = redis.call('TIME')
local build = string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000))
if not redis.call('SET', KEYS[2], '', 'NX', 'PX', ARGV[2]) then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[1], -1, ARGV[1] .. ' ' .. build .. ' 0 -')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return tonumber(build)
