-- Reads posts of an inbox, newest first: from where on there may be others, then of each post its member and time. Nothing unless the digest is its.
-- KEYS: inbox.
-- ARGV: the digest, the greatest time, how many, for how many ms it is kept, how many of these may have passed before that is renewed.
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1] or ''
local floor, digest = string.match(head, '^%d+ %d+ (%d+) (%S+)$')
if digest ~= ARGV[1] then
  return {}
end
if redis.call('PTTL', KEYS[1]) < ARGV[4] - ARGV[5] then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
local posts = redis.call('ZREVRANGEBYSCORE', KEYS[1], ARGV[2], '(' .. floor, 'WITHSCORES', 'LIMIT', 0, ARGV[3])
table.insert(posts, 1, #posts == 2 * ARGV[3] and posts[#posts] or floor)
return posts
