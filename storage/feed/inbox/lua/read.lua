-- Reads posts of an inbox, newest first: its floor, then of each post its member and time. Nothing unless the inbox is
-- for these followings.
-- KEYS: inbox.
-- ARGV: number of the inboxes, the followings' digest, the greatest time or +inf, how many, for how many s it is kept,
--   how many of these may have passed before that is renewed.
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not head then
  return {}
end
local number, floor, digest = string.match(head, '^(%d+) %d+ (%d+) (.*)$')
if number ~= ARGV[1] or digest ~= ARGV[2] then
  return {}
end
if redis.call('TTL', KEYS[1]) < tonumber(ARGV[5]) - tonumber(ARGV[6]) then
  redis.call('EXPIRE', KEYS[1], ARGV[5])
end
local posts = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[3], '(' .. floor, 'WITHSCORES', 'LIMIT', 0, ARGV[4])
table.insert(posts, 1, floor)
return posts
