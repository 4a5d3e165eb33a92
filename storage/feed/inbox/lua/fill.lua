-- Ends a build: adds the posts to those that have been delivered since it began, and makes the inbox readable. Returns 0
-- if that build has been given up.
-- KEYS: inbox.
-- ARGV: number of the inboxes, number of the build, floor, the followings' digest, for how many s, then of each post: time, member.
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not head then
  return 0
end
local number, build, floor, digest = string.match(head, '^(%d+) (%d+) (%d+) (.*)$')
if number ~= ARGV[1] or build ~= ARGV[2] or digest ~= '-' then
  return 0
end
if tonumber(floor) < tonumber(ARGV[3]) then
  floor = ARGV[3]
end
redis.call('ZREM', KEYS[1], head)
redis.call('ZADD', KEYS[1], -1, number .. ' ' .. build .. ' ' .. floor .. ' ' .. ARGV[4])
for i = 6, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 1
