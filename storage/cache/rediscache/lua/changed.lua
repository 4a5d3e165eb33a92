-- Records that a user has a new version, in the user's profile and in those lists that have
-- changed. The same change may come late, twice and in any order.
--   user   If the profile in Redis has counts and is as of the version before the change or later,
--          only its counts are replaced. If the profile is given, it is replaced as well, from
--          whatever version. Otherwise the profile is removed. The version stays, so that no older
--          profile is stored.
--   lists  A list of an older version is removed. The version stays. A fill that is under way
--          loses its lease.
-- KEYS: user, lists…
-- ARGV: the version, the version before it, the counts, how long a bare version is kept in ms, the
-- version in 8 bytes, the profile as of the version or nothing.
local version = tonumber(ARGV[1])
local before = tonumber(ARGV[2])
local held = redis.call('HMGET', KEYS[1], 'p', 'v')
local known = tonumber(held[2] or 0)
if known < version then
  local counted = held[1] and math.floor(string.byte(held[1]) / 2) % 2 == 1 -- flagCounted
  if counted and ARGV[6] ~= '' then
    redis.call('HSET', KEYS[1], 'v', ARGV[1], 'c', ARGV[3], 'p', ARGV[6])
  elseif counted and known >= before then
    redis.call('HSET', KEYS[1], 'v', ARGV[1], 'c', ARGV[3])
  else
    redis.call('HDEL', KEYS[1], 'p', 'c', 'l')
    redis.call('HSET', KEYS[1], 'v', ARGV[1])
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
  end
end
for i = 2, #KEYS do
  local head = redis.call('GETRANGE', KEYS[i], 0, 8)
  if #head < 9 then
    redis.call('SET', KEYS[i], 'M' .. ARGV[5], 'PX', ARGV[4])
  elseif struct.unpack('>i8', head, 2) < version then
    redis.call('SET', KEYS[i], 'M' .. ARGV[5], 'PX', ARGV[4])
  end
end
return 1
