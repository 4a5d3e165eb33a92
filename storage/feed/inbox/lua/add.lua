-- Adds posts to the inbox of a build, and keeps the newest. Returns 0 if the user has no inbox, or that of another build.
-- KEYS: inbox.
-- ARGV: the build, how many posts an inbox has, then what ends the build, or 0, 0, 0: floor, digest, for how many ms the inbox
--   is kept; then of each post: time, member.
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1] or ''
local build, floor, digest = string.match(head, '^(%d+ %d+) (%d+) (%S+)$')
if build ~= ARGV[1] then
  return 0
end
if ARGV[5] ~= '0' then
  floor, digest = math.max(floor, ARGV[3]), ARGV[4]
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
for i = 6, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1])
end
local over = redis.call('ZCARD', KEYS[1]) - 1 - ARGV[2]
if over > 0 then
  floor = math.max(floor, redis.call('ZRANGE', KEYS[1], over, over, 'WITHSCORES')[2])
  redis.call('ZREMRANGEBYRANK', KEYS[1], 1, over)
end
local now = string.format('%s %.0f %s', build, floor, digest)
if now ~= head then
  redis.call('ZADD', KEYS[1], -1, now) -- first: an empty key would lose its time to live
  redis.call('ZREM', KEYS[1], head)
end
return 1
