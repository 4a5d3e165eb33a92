-- Records that a post has a new version, or that it has changed if the version is 0. A post that is
-- not as of this version is removed, and a fill that is under way loses its lease. The highest known
-- version stays, so that no older post is stored. The same change may come late, twice and in any
-- order.
-- KEYS: post.
-- ARGV: the version, how long a bare version is kept in ms, the version in 8 bytes.
local head = redis.call('GETRANGE', KEYS[1], 0, 8)
local known = #head == 9 and struct.unpack('>i8', head, 2) or 0
local version = tonumber(ARGV[1])
if version > known then
  redis.call('SET', KEYS[1], 'M' .. ARGV[3], 'PX', ARGV[2])
elseif version == 0 and #head == 9 then
  redis.call('SET', KEYS[1], 'M' .. string.sub(head, 2, 9), 'PX', ARGV[2])
end
return 1
