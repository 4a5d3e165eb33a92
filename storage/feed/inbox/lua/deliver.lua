-- Adds posts of an author to the inbox of a fan. Returns 0 if the user is no fan any more: it has no inbox, or that of a
-- later build, which has not added it to the author's fans.
-- KEYS: inbox.
-- ARGV: number of the inboxes, number of the build, how many posts an inbox has, then of each post: time, member.
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not head then
  return 0
end
local number, build, floor, digest = string.match(head, '^(%d+) (%d+) (%d+) (.*)$')
if number ~= ARGV[1] or tonumber(build) > tonumber(ARGV[2]) then
  return 0
end
for i = 4, #ARGV, 2 do
  if tonumber(ARGV[i]) > tonumber(floor) then
    redis.call('ZADD', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
local over = redis.call('ZCARD', KEYS[1]) - 1 - tonumber(ARGV[3])
if over > 0 then
  local newest = redis.call('ZRANGE', KEYS[1], over, over, 'WITHSCORES')[2]
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, over)
  redis.call('ZADD', KEYS[1], -1, string.format('%s %s %.0f %s', number, build, tonumber(newest), digest))
end
return 1
